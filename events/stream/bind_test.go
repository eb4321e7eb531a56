package stream_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
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

// stranger dials our port from a host, finishes the handshake as a publisher and stays silent.
func stranger(t *testing.T, host, port string) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}}
	c, err := d.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { // ends when c is closed; waited for in the cleanup
		buf := make([]byte, 1024)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			if bytes.Contains(buf[:n], []byte("PING")) {
				if _, err := c.Write([]byte("\x04\x05\x04PONG")); err != nil {
					return
				}
			}
		}
	})
	t.Cleanup(func() {
		c.Close()
		wg.Wait()
	})
	if _, err := c.Write(zmqtest.Hello("PUB")); err != nil {
		t.Fatal(err)
	}
}

// visitors come and go until done, and fail the test if that takes too long.
func visitors(t *testing.T, port string, limit time.Duration, done func() bool) {
	t.Helper()
	for began := time.Now(); !done(); {
		if time.Since(began) > limit {
			t.Fatalf("not stale after %v of visitors", limit)
		}
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(zmqtest.Hello("PUB"))
		time.Sleep(50 * time.Millisecond) // a short visit
		c.Close()
	}
}

// TestRule12_SilentStrangers: neither a stranger that came before the engine died nor one that comes after keeps it from
// being called stale, from another host or from its own; heartbeats answered or not.
func TestRule12_SilentStrangers(t *testing.T) {
	for name, hosts := range map[string]struct{ before, after string }{
		"before":    {"127.0.0.2", ""},
		"after":     {"", "127.0.0.2"},
		"same host": {"127.0.0.1", "127.0.0.1"},
		"visitors":  {"", "visitors"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			port := freePort(t)
			o := quick()
			o.StaleAfter, o.Idle = 400*time.Millisecond, 100*time.Millisecond
			d, _ := follow(t, source("tcp://*:"+port, ""), o)
			p := dialler(t, port, "kv")
			p.Do("wait", nil)
			p.Do("publish", nil)
			d.seen(t, "0=0:0", events.StateLive)
			if hosts.before != "" {
				stranger(t, hosts.before, port)
			}
			p.Kill()
			switch hosts.after {
			case "":
			case "visitors": // one after the other, none for long
				visitors(t, port, 8*o.StaleAfter, func() (stale bool) {
					d.locked(func() { stale = d.now() == events.StateStale })
					return stale
				})
			default:
				stranger(t, hosts.after, port)
			}
			d.state(t, events.StateStale)
			d.liveOnce(t)
			next := dialler(t, port, "kv")
			next.Do("wait", nil)
			next.Do("publish", nil)
			d.wait(t, "the next life", func() bool { return len(d.entries) == 5 && d.now() == events.StateLive })
		})
	}
}

// TestIdleEngineComesBack: an engine with a replay endpoint that dials again and has nothing to say stays live; one
// without is called stale until it speaks, for it could be anyone.
func TestIdleEngineComesBack(t *testing.T) {
	for name, c := range map[string]struct {
		replay bool
		want   events.State
	}{"replay": {true, events.StateLive}, "no replay": {false, events.StateStale}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			port := freePort(t)
			px := newProxy(t, "tcp://127.0.0.1:"+port)
			p := zmqtest.Start(t)
			args := zmqtest.Args{"pub": px.endpoint(), "connect": true}
			if c.replay {
				args["replay"] = "tcp://127.0.0.1:*"
			}
			at := p.Do("open", args)
			o := quick()
			o.StaleAfter = 300 * time.Millisecond
			d, _ := follow(t, source("tcp://*:"+port, at.Replay), o)
			p.Do("wait", nil)
			p.Do("publish", nil)
			d.seen(t, "0=0:0", events.StateLive)
			d.locked(func() { d.states = nil })
			px.cut()
			d.wait(t, "a new session", func() bool { return len(d.states) > 1 })
			time.Sleep(2 * o.StaleAfter) // the time after which it would be stale
			d.state(t, c.want)
			p.Do("wait", nil)
			p.Do("publish", nil)
			d.seen(t, "1=0:1", events.StateLive)
		})
	}
}

func TestPeers(t *testing.T) {
	port := freePort(t)
	o := quick()
	o.Peers = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	d, _ := follow(t, source("tcp://*:"+port, ""), o)
	p := dialler(t, port, "kv")
	p.Do("wait", nil)
	c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}).Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if !zmqtest.Play(c, zmqtest.Attack{Bytes: zmqtest.Hello("PUB")}, 10*time.Second) {
		t.Error("a peer from elsewhere stays connected")
	}
	p.Do("publish", nil)
	d.seen(t, "0=0:0", events.StateLive)
}
