package stream_test

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/zmq/zmqtest"
)

// joined starts an engine, follows it, and publishes n batches.
func joined(t *testing.T, n int, args zmqtest.Args) (p *zmqtest.Publisher, at zmqtest.Answer, d *diary) {
	t.Helper()
	p, at = engine(t, args)
	d, _ = follow(t, source(at.Pub, at.Replay), quick())
	d.seen(t, "joined 0 complete", events.StateLive)
	p.Do("wait", nil)
	p.Do("publish", zmqtest.Args{"n": n})
	d.seen(t, fmt.Sprintf("%d=0:%d", n-1, n-1), events.StateLive)
	return p, at, d
}

// asked compares the start numbers of the replays so far.
func asked(t *testing.T, p *zmqtest.Publisher, want ...uint64) {
	t.Helper()
	if got := p.Do("state", nil).Asked; !slices.Equal(got, want) {
		t.Errorf("asked from %v, want %v", got, want)
	}
}

// TestCase9_Rule8_GapIsFilled: what was lost is fetched and applied before what showed the loss, with one question.
func TestCase9_Rule8_GapIsFilled(t *testing.T) {
	p, _, d := joined(t, 2, nil)
	p.Do("publish", zmqtest.Args{"n": 2, "live": false})
	p.Do("publish", nil)
	d.seen(t, "4=0:4", events.StateLive)
	p.Do("publish", nil)
	d.seen(t, "5=0:5", events.StateLive)
	d.reads(t, "joined 0 complete", "0..5 of 0")
	asked(t, p, 0, 1) // case 97: one recovery
}

// TestCase35_LiveDuringReplay: live batches that the replay brings too are applied once, in order.
func TestCase35_LiveDuringReplay(t *testing.T) {
	p, _, d := joined(t, 2, nil)
	p.Do("publish", zmqtest.Args{"n": 3, "live": false})
	p.Do("set", zmqtest.Args{"during": 2})
	p.Do("publish", nil)
	d.seen(t, "7=0:7", events.StateLive)
	p.Do("publish", nil)
	d.seen(t, "8=0:8", events.StateLive)
	d.reads(t, "joined 0 complete", "0..8 of 0")
	d.rejected(t, events.ReasonDuplicate, 3) // 5, 6 and 7
}

// TestCase32_Rule11_GapBeyondTheBuffer: the loss is told, what is left is applied, and no second question is asked.
func TestCase32_Rule11_GapBeyondTheBuffer(t *testing.T) {
	p, _, d := joined(t, 3, zmqtest.Args{"ring": 3})
	p.Do("publish", zmqtest.Args{"n": 6, "live": false})
	p.Do("publish", nil)
	d.seen(t, "9=0:9", events.StateGap)
	d.reads(t, "joined 0 complete", "0..2 of 0", "gap 3-6", "joined 7 partial", "7..9 of 0")
	asked(t, p, 0, 2)

	p.Do("publish", zmqtest.Args{"live": false}) // within the cool-down
	p.Do("publish", nil)
	d.seen(t, "11=0:11", events.StateGap)
	asked(t, p, 0, 2)
	d.reads(t, "joined 0 complete", "0..2 of 0", "gap 3-6", "joined 7 partial", "7..9 of 0",
		"gap 10-10", "joined 11 partial", "11..11 of 0")
}

func TestRule11_GapWithoutReplay(t *testing.T) {
	p := zmqtest.Start(t)
	at := p.Do("open", nil)
	d, _ := follow(t, source(at.Pub, ""), quick())
	p.Do("wait", nil)
	p.Do("publish", zmqtest.Args{"n": 2})
	p.Do("publish", zmqtest.Args{"n": 2, "live": false})
	p.Do("publish", nil)
	d.seen(t, "4=0:4", events.StateGap)
	d.reads(t, "joined 0 complete", "0..1 of 0", "gap 2-3", "joined 4 partial", "4..4 of 0")
}

// TestHoleThatIsInTheBufferToo: engines that fail to send a batch lose its number for good. It is asked for once more
// and then told.
func TestHoleThatIsInTheBufferToo(t *testing.T) {
	p, at := engine(t, nil)
	p.Do("publish", zmqtest.Args{"n": 2})
	p.Do("publish", zmqtest.Args{"live": false, "ring": false})
	p.Do("publish", zmqtest.Args{"n": 2})
	d, _ := follow(t, source(at.Pub, at.Replay), quick())
	d.seen(t, "4=0:4", events.StateGap)
	d.reads(t, "joined 0 complete", "0..1 of 0", "gap 2-2", "joined 3 partial", "3..4 of 0")
	asked(t, p, 0, 1)
}

// TestCase48_Case128_BrokenReplays: an answer that stops, or leaves batches out, is continued where it broke.
func TestCase48_Case128_BrokenReplays(t *testing.T) {
	for _, tc := range []struct {
		name  string
		set   zmqtest.Args
		asked []uint64
	}{
		{"cut", zmqtest.Args{"cut": 3}, []uint64{0, 2}},
		{"hole", zmqtest.Args{"omit": []int{4}}, []uint64{0, 3}},
		{"two holes", zmqtest.Args{"omit": []int{2, 3, 7}}, []uint64{0, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, at := engine(t, nil)
			p.Do("publish", zmqtest.Args{"n": 10})
			p.Do("set", tc.set)
			d, _ := follow(t, source(at.Pub, at.Replay), quick())
			d.seen(t, "9=0:9", events.StateLive)
			d.reads(t, "joined 0 complete", "0..9 of 0")
			asked(t, p, tc.asked...)
		})
	}
}

// TestReplayWithoutEnd: a publisher that never says END brings everything all the same.
func TestReplayWithoutEnd(t *testing.T) {
	p, at := engine(t, nil)
	p.Do("publish", zmqtest.Args{"n": 3})
	p.Do("set", zmqtest.Args{"no_end": true})
	o := quick()
	o.ReplayCooldown = 50 * time.Millisecond
	d, _ := follow(t, source(at.Pub, at.Replay), o)
	p.Do("wait", nil)
	d.seen(t, "2=0:2", events.StateLive)
	p.Do("publish", nil)
	d.seen(t, "3=0:3", events.StateLive)
	d.reads(t, "joined 0 complete", "0..3 of 0")
	asked(t, p, 0, 2)
}

// TestMuteReplay: without an answer the stream goes on from where it is, and rebuilds when the publisher answers again.
func TestMuteReplay(t *testing.T) {
	p, at := engine(t, nil)
	p.Do("publish", zmqtest.Args{"n": 3})
	p.Do("set", zmqtest.Args{"mute": true})
	o := quick()
	o.ReplayIdle, o.ReplayCooldown = 100*time.Millisecond, 300*time.Millisecond
	d, _ := follow(t, source(at.Pub, at.Replay), o)
	p.Do("wait", nil)
	p.Do("publish", nil)
	d.seen(t, "3=0:3", events.StateLive)
	d.reads(t, "joined 3 partial", "3..3 of 0")
	p.Do("set", zmqtest.Args{"mute": false})
	d.seen(t, "joined 0 complete", events.StateLive)
	d.reads(t, "joined 3 partial", "3..3 of 0", "reset", "joined 0 complete", "0..3 of 0")
}

// TestNoReplayServer: an endpoint at which nobody listens costs the history, not the stream.
func TestNoReplayServer(t *testing.T) {
	p := zmqtest.Start(t)
	at := p.Do("open", nil)
	p.Do("publish", nil)
	d, _ := follow(t, source(at.Pub, "tcp://127.0.0.1:"+freePort(t)), quick())
	p.Do("wait", nil)
	p.Do("publish", nil)
	d.seen(t, "1=0:1", events.StateLive)
	d.reads(t, "joined 1 partial", "1..1 of 0")
}

// TestRule17_HeldQueueOverflows: what does not fit during a replay is fetched afterwards.
func TestRule17_HeldQueueOverflows(t *testing.T) {
	p, at := engine(t, nil)
	p.Do("publish", zmqtest.Args{"n": 10})
	p.Do("set", zmqtest.Args{"during": 200, "mute": true})
	o := quick()
	o.QueueMessages, o.ReplayIdle, o.ReplayCooldown = 4, 200*time.Millisecond, 200*time.Millisecond
	d, _ := follow(t, source(at.Pub, at.Replay), o)
	p.Do("wait", nil)
	d.state(t, events.StateReplaying)
	p.Do("publish", zmqtest.Args{"n": 100})
	p.Do("set", zmqtest.Args{"mute": false})
	d.wait(t, "everything from 0", func() bool {
		n := len(d.entries)
		return slices.Contains(d.entries, "joined 0 complete") && d.entries[n-1] == "309=0:309"
	})
	d.locked(func() {
		from := slices.Index(d.entries, "joined 0 complete")
		for i, e := range d.entries[from+1:] {
			if e != fmt.Sprintf("%d=0:%d", i, i) {
				t.Fatalf("entry %d after joining is %s", i, e)
			}
		}
	})
}

// slow is a sink that takes nothing before its gate opens, and notes numbers only.
type slow struct {
	*diary
	gate chan struct{}
}

func (s slow) Apply(seq uint64, _ []byte, _ time.Time) {
	<-s.gate
	s.note("%d", seq)
}

// TestCase110_Rule17_SlowSink: while a sink takes nothing, memory stays within the queues, a second source is served, and
// what its publisher dropped meanwhile is fetched afterwards.
func TestCase110_Rule17_SlowSink(t *testing.T) {
	const batches, size = 3000, 20_000
	p, at := engine(t, zmqtest.Args{"hwm": 50})
	o := quick()
	o.QueueBytes = 2 << 20
	s := slow{newDiary(), make(chan struct{})}
	feed(t, source(at.Pub, at.Replay), s, o)
	s.wait(t, "joined", func() bool { return len(s.entries) == 1 })
	_, _, other := joined(t, 1, nil)
	p.Do("wait", nil)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	p.Do("publish", zmqtest.Args{"n": batches, "size": size}) // 60 MB, of which the publisher drops the most
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("%d bytes are held", grown)
	}
	other.reads(t, "joined 0 complete", "0=0:0")
	close(s.gate)
	waitFor(t, "a number of the live stream that shows the loss", func() bool {
		p.Do("publish", nil)
		return len(p.Do("state", nil).Asked) > 1
	})
	s.state(t, events.StateLive)
	end := fmt.Sprint(p.Do("publish", nil).Seq - 1)
	s.wait(t, "batch "+end, func() bool { return s.entries[len(s.entries)-1] == end })
	s.locked(func() {
		for i, e := range s.entries[1:] {
			if e != fmt.Sprint(i) {
				t.Fatalf("entry %d is %q", i, e)
			}
		}
	})
}

// TestRule8_LongReplayAndLive: a replay longer than anything remembers, with a fast live stream all the while.
func TestRule8_LongReplayAndLive(t *testing.T) {
	p, at := engine(t, nil)
	p.Do("publish", zmqtest.Args{"n": 6000})
	p.Do("set", zmqtest.Args{"during": 3000})
	d, _ := follow(t, source(at.Pub, at.Replay), quick())
	p.Do("wait", nil)
	d.wait(t, "8999", func() bool { return len(d.entries) > 0 && d.entries[len(d.entries)-1] == "8999=0:8999" })
	p.Do("publish", nil)
	d.seen(t, "9000=0:9000", events.StateLive)
	d.reads(t, "joined 0 complete", "0..9000 of 0")
}

// TestHighWaterMark: a ROUTER that drops at its high-water mark, END included, is asked until all is there.
func TestHighWaterMark(t *testing.T) {
	p, at := engine(t, zmqtest.Args{"router_hwm": 200})
	p.Do("publish", zmqtest.Args{"n": 3000, "size": 4000})
	d, _ := follow(t, source(at.Pub, at.Replay), quick())
	d.wait(t, "3000 batches", func() bool { return len(d.entries) >= 3001 })
	d.state(t, events.StateLive)
	d.locked(func() {
		for i, e := range d.entries[1:] {
			if want := fmt.Sprintf("%d=0:%d.", i, i); len(e) < len(want) || e[:len(want)] != want {
				t.Fatalf("entry %d is %.20s, want %s", i, e, want)
			}
		}
	})
	if got := p.Do("state", nil).Asked; len(got) < 2 {
		t.Errorf("asked from %v: the publisher dropped nothing", got)
	}
}

// TestCase128_FewReplaysAtOnce: streams that all need a replay wait for each other.
func TestCase128_FewReplaysAtOnce(t *testing.T) {
	p := zmqtest.Start(t)
	at := p.Do("open", nil)
	var mu sync.Mutex // guards asked
	var asked []time.Time
	silent := zmqtest.Each(t, func(_ int, c net.Conn) { // a replay endpoint that never answers, until the client gives up
		mu.Lock()
		asked = append(asked, time.Now())
		mu.Unlock()
		_, _ = io.Copy(io.Discard, c)
	})
	o := quick()
	o.Replays, o.ReplayTotal = make(chan struct{}, 2), 200*time.Millisecond
	var ds []*diary
	for range 6 {
		d, _ := follow(t, source(at.Pub, "tcp://"+silent), o)
		ds = append(ds, d)
	}
	p.Do("wait", zmqtest.Args{"subs": 6})
	p.Do("publish", nil)
	for _, d := range ds {
		d.seen(t, "0=0:0", events.StateLive)
		d.reads(t, "joined 0 complete", "0..0 of 0")
	}
	mu.Lock()
	defer mu.Unlock()
	// Each holds its place for ReplayTotal, so the fifth comes two of these after the first.
	if len(asked) != 6 || asked[4].Sub(asked[0]) < o.ReplayTotal*3/2 {
		t.Errorf("asked at %v", asked)
	}
}
