package stream_test

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/stream"
	"github.com/kvscout/kvscout/events/zmq/zmqtest"
)

// dialler starts a publisher that dials our port.
func dialler(t *testing.T, port, topic string) *zmqtest.Publisher {
	t.Helper()
	p := zmqtest.Start(t)
	p.Do("open", zmqtest.Args{"pub": "tcp://127.0.0.1:" + port, "connect": true, "topic": topic})
	return p
}

func TestBindMode(t *testing.T) {
	port := freePort(t)
	d, _ := follow(t, source("tcp://*:"+port, ""), quick())
	p := dialler(t, port, "kv")
	p.Do("wait", nil)
	p.Do("publish", zmqtest.Args{"n": 3})
	d.seen(t, "2=0:2", events.StateLive)
	p.Kill()
	d.state(t, events.StateConnecting)
	p = dialler(t, port, "kv")
	p.Do("wait", nil)
	p.Do("publish", nil)
	d.wait(t, "second life", func() bool { return len(d.entries) == 7 })
	d.reads(t, "joined 0 complete", "0..2 of 0", "reset", "joined 0 complete", "0..0 of 0")
}

// TestCase29_NewestConnectionOwnsTheSource: what an older connection still sends is not applied, until the newer is gone.
func TestCase29_NewestConnectionOwnsTheSource(t *testing.T) {
	port := freePort(t)
	d, _ := follow(t, source("tcp://*:"+port, ""), quick())
	old := dialler(t, port, "kv")
	old.Do("wait", nil)
	old.Do("publish", zmqtest.Args{"n": 3})
	d.seen(t, "2=0:2", events.StateLive)
	young := dialler(t, port, "kv")
	young.Do("wait", nil)
	young.Do("set", zmqtest.Args{"life": 1})
	young.Do("publish", nil)
	d.seen(t, "0=1:0", events.StateLive)
	old.Do("publish", zmqtest.Args{"n": 2})
	d.wait(t, "rejection", func() bool { return d.rejects[events.ReasonStalePublisher] == 2 })
	young.Do("publish", nil)
	d.seen(t, "1=1:1", events.StateLive)
	d.reads(t, "joined 0 complete", "0..2 of 0", "reset", "joined 0 complete", "0..1 of 1")
	young.Kill()
	d.state(t, events.StateConnecting)
	old.Do("publish", nil)
	d.seen(t, "5=0:5", events.StateGap)
}

// TestBindModeWithReplay: a new connection is verified by the replay endpoint.
func TestBindModeWithReplay(t *testing.T) {
	port := freePort(t)
	p := zmqtest.Start(t)
	args := zmqtest.Args{"pub": "tcp://127.0.0.1:" + port, "connect": true, "replay": "tcp://127.0.0.1:*"}
	at := p.Do("open", args)
	p.Do("publish", zmqtest.Args{"n": 2, "live": false})
	d, _ := follow(t, source("tcp://*:"+port, at.Replay), quick())
	d.seen(t, "1=0:1", events.StateLive)
	p.Do("wait", nil)
	p.Do("publish", nil)
	d.seen(t, "2=0:2", events.StateLive)
	args["replay"] = at.Replay
	p.Do("open", args)
	d.wait(t, "reset", func() bool { return len(d.entries) == 6 })
	p.Do("wait", nil)
	p.Do("publish", nil)
	d.seen(t, "0=1:0", events.StateLive)
	d.reads(t, "joined 0 complete", "0..2 of 0", "reset", "joined 0 complete", "0..0 of 1")
}

// TestCase96_SharedEndpoint: two sources on one bound port, told apart by topic, each with numbers of its own.
func TestCase96_SharedEndpoint(t *testing.T) {
	port := freePort(t)
	o := quick()
	o.Listeners = stream.NewListeners()
	var ds []*diary
	var ps []*zmqtest.Publisher
	for i, topic := range []string{"kv@w1@m", "kv@w2"} {
		src := source("tcp://*:"+port, "")
		src.Worker, src.Topic = fmt.Sprint("w", i), topic
		d, _ := follow(t, src, o)
		ds = append(ds, d)
	}
	for _, topic := range []string{"kv@w1@m", "kv@w2@m", "kv@w3@m"} {
		p := dialler(t, port, topic)
		p.Do("wait", nil)
		ps = append(ps, p)
	}
	for n := range 3 {
		for _, p := range ps {
			p.Do("publish", nil)
		}
		for _, d := range ds {
			d.seen(t, fmt.Sprintf("%d=0:%d", n, n), events.StateLive)
		}
	}
	ps[0].Kill()
	ds[0].state(t, events.StateConnecting)
	ps[1].Do("publish", nil)
	ds[1].seen(t, "3=0:3", events.StateLive)
	ps[2].Do("publish", nil)
	ds[0].reads(t, "joined 0 complete", "0..2 of 0")
	ds[1].reads(t, "joined 0 complete", "0..3 of 0")
	waitFor(t, "4 mismatches", func() bool { return o.Listeners.Mismatched() == 4 })
}

// TestOneConnectionForTwoSources: a relay that carries two topics serves both sources.
func TestOneConnectionForTwoSources(t *testing.T) {
	port := freePort(t)
	o := quick()
	o.Listeners = stream.NewListeners()
	p := dialler(t, port, "a")
	var ds []*diary
	for _, topic := range []string{"a", "b"} {
		src := source("tcp://*:"+port, "")
		src.Worker, src.Topic = topic, topic
		d, _ := follow(t, src, o)
		ds = append(ds, d)
	}
	p.Do("wait", nil)
	p.Do("publish", zmqtest.Args{"n": 2})
	ds[0].seen(t, "1=0:1", events.StateLive)
	ds[1].state(t, events.StateConnecting) // the connection turned out to be the other's
	p.Do("raw", zmqtest.Args{"frames": []string{"62", "0000000000000000", "303a30"}})
	ds[1].seen(t, "0=0:0", events.StateLive)
	ds[0].reads(t, "joined 0 complete", "0..1 of 0")
}

// TestTopicOfNobody: what a publisher of another topic sends is counted, and its connection is not taken for the source's.
func TestTopicOfNobody(t *testing.T) {
	port := freePort(t)
	src := source("tcp://*:"+port, "")
	src.Topic = "kv@w1"
	d, _ := follow(t, src, quick())
	p := dialler(t, port, "kv@w2")
	p.Do("wait", nil)
	d.state(t, events.StateUnknown)
	p.Do("publish", zmqtest.Args{"n": 2})
	d.wait(t, "rejections", func() bool { return d.rejects[events.ReasonTopicMismatch] == 2 })
	d.state(t, events.StateConnecting)
	d.reads(t)
}

func TestTopicTaken(t *testing.T) {
	src := source("tcp://*:"+freePort(t), "")
	o := quick()
	o.Listeners = stream.NewListeners()
	d, stop := follow(t, src, o)
	p := dialler(t, src.Events[len("tcp://*:"):], "")
	p.Do("wait", nil)
	second, err := stream.New(src, newDiary(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context()); !errors.Is(err, stream.ErrTopicTaken) {
		t.Errorf("got %v, want %v", err, stream.ErrTopicTaken)
	}
	p.Do("publish", nil)
	d.seen(t, "0=0:0", events.StateLive)
	stop()
	follow(t, src, o) // free again
}

// TestRule17_HostilePeersDoNotDisturb: attacks on a bound port and from a dialled one, while a publisher on the bound port
// is heard in full.
func TestRule17_HostilePeersDoNotDisturb(t *testing.T) {
	port := freePort(t)
	d, _ := follow(t, source("tcp://*:"+port, ""), quick())
	p := dialler(t, port, "kv")
	p.Do("wait", nil)
	var wg sync.WaitGroup
	for _, a := range zmqtest.Attacks("PUB") {
		wg.Go(func() {
			if !zmqtest.Strike(t, "tcp", "127.0.0.1:"+port, a, 10*time.Second) {
				t.Errorf("%s: connection stays open", a.Name)
			}
		})
	}
	p.Do("publish", zmqtest.Args{"n": 500})
	d.seen(t, "499=0:499", events.StateLive)
	wg.Wait()
	p.Do("publish", nil)
	d.seen(t, "500=0:500", events.StateLive)
	d.reads(t, "joined 0 complete", "0..500 of 0")
}

// TestCase143_RegisterAndCancel runs and ends a stream again and again while its publisher sends, in both modes; goleak
// finds goroutines that stay, and file descriptors are counted.
func TestCase143_RegisterAndCancel(t *testing.T) {
	p, at := engine(t, nil)
	src := source(at.Pub, at.Replay)
	port := freePort(t)
	bound := source("tcp://*:"+port, at.Replay)
	turn := func() {
		for _, s := range []events.Source{src, bound} {
			d, stop := follow(t, s, quick())
			p.Do("publish", nil)
			if s.Events == src.Events {
				d.wait(t, "a batch", func() bool { return len(d.entries) > 1 })
			}
			began := time.Now()
			stop()
			if took := time.Since(began); took > time.Second {
				t.Errorf("end took %v", took)
			}
		}
	}
	turn()
	before := descriptors(t)
	for range 200 {
		turn()
	}
	waitFor(t, "descriptors to be freed", func() bool { return descriptors(t) <= before })
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// waitFor polls what has no signal of its own.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
