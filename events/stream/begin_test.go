package stream_test

import (
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/zmq/zmqtest"
)

// answers plays a PUB that says nothing and a ROUTER whose n-th answer the n-th function writes, the last one again for
// all that follow; each is ended properly. asked counts the questions.
func answers(t *testing.T, list ...func(net.Conn)) (src events.Source, asked func() int) {
	t.Helper()
	count := make(chan int, 1)
	count <- 0
	pub := serve(t, "PUB", func(int, net.Conn) bool { return true })
	router := serve(t, "ROUTER", func(n int, c net.Conn) bool {
		count <- 1 + <-count
		list[min(n, len(list)-1)](c)
		end(c)
		return true
	})
	return source(pub, router), func() int {
		n := <-count
		count <- n
		return n
	}
}

// Rules 11 and 13: a replay from 0 that does not begin with 0 is not the whole history, and one more shows whether its
// beginning was lost on the way.
func TestRule13_ReplayThatLacksItsBeginning(t *testing.T) {
	from := func(first uint64) func(net.Conn) { return func(c net.Conn) { replies(c, 0, first, 3) } }
	junk := func(first uint64) func(net.Conn) {
		return func(c net.Conn) {
			_, _ = c.Write(zmtp("junk"))
			replies(c, 0, first, 3)
		}
	}
	for _, tc := range []struct {
		name    string
		answers []func(net.Conn)
		want    []string
		asked   int
	}{
		{"the first batch is lost once", []func(net.Conn){from(1), from(0)},
			[]string{"joined 1 partial", "1..3 of 0", "reset", "joined 0 complete", "0..3 of 0"}, 2},
		{"the first batch is lost each time", []func(net.Conn){from(1)},
			[]string{"joined 1 partial", "1..3 of 0", "reset", "joined 1 partial", "1..3 of 0"}, 2},
		{"the first reply cannot be read", []func(net.Conn){junk(1), from(0)},
			[]string{"joined 1 partial", "1..3 of 0", "reset", "joined 0 complete", "0..3 of 0"}, 2},
		{"several cannot be read", []func(net.Conn){junk(2), from(0)},
			[]string{"joined 2 partial", "2..3 of 0", "reset", "joined 0 complete", "0..3 of 0"}, 2},
		{"they never can", []func(net.Conn){junk(2)},
			[]string{"joined 2 partial", "2..3 of 0", "reset", "joined 2 partial", "2..3 of 0"}, 2},
		{"the buffer begins later", []func(net.Conn){from(2)}, []string{"joined 2 partial", "2..3 of 0"}, 1},
		{"one that cannot be read beside all", []func(net.Conn){junk(0)}, []string{"joined 0 complete", "0..3 of 0"}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			src, asked := answers(t, tc.answers...)
			o := quick()
			o.Idle = time.Hour // what serve plays answers no heartbeat
			d, _ := follow(t, src, o)
			d.wait(t, "all entries", func() bool { return len(d.entries) >= len(spelt(tc.want)) && d.now() == events.StateLive })
			time.Sleep(50 * time.Millisecond) // for what must not follow
			d.reads(t, tc.want...)
			if n := asked(); n != tc.asked {
				t.Errorf("asked %d times, want %d", n, tc.asked)
			}
		})
	}
}

// The first batch is lost live and in the reply, behind the word that nothing had been published yet.
func TestRule13_FirstBatchLostAfterAnEmptyReplay(t *testing.T) {
	empty := make(chan struct{})
	pub := serve(t, "PUB", func(_ int, c net.Conn) bool {
		<-empty
		lives(c, 0, 1, 1)
		return true
	})
	router := serve(t, "ROUTER", func(n int, c net.Conn) bool {
		if n > 0 {
			replies(c, 0, []uint64{1, 0}[n-1], 1)
		}
		end(c)
		return true
	})
	o := quick()
	o.ReplayCooldown, o.Idle = 50*time.Millisecond, time.Hour
	d, _ := follow(t, source(pub, router), o)
	d.seen(t, "joined 0 complete", events.StateLive)
	close(empty)
	d.seen(t, "0=0:0", events.StateLive)
	d.reads(t, "joined 0 complete", "gap 0-0", "joined 1 partial", "1=0:1", "reset", "joined 0 complete", "0..1 of 0")
}

// A buffer that has just lost its first batch looks like that of a publisher that counts from 1.
func TestRule13_BufferThatLostItsFirstBatch(t *testing.T) {
	p, at := engine(t, zmqtest.Args{"ring": 3})
	p.Do("publish", zmqtest.Args{"n": 4, "live": false})
	d, _ := follow(t, source(at.Pub, at.Replay), quick())
	d.wait(t, "the second replay", func() bool { return len(d.entries) == 9 && d.now() == events.StateLive })
	p.Do("wait", nil)
	p.Do("publish", nil)
	d.seen(t, "4=0:4", events.StateLive)
	d.reads(t, "joined 1 partial", "1..3 of 0", "reset", "joined 1 partial", "1..4 of 0")
	asked(t, p, 0, 0)
}

// Rule 11: a live number that the publisher does not know when asked is wrong, or its answer is. What came under it may be
// an old batch and is not applied, and everything is asked for again.
func TestRule11_NumberThatThePublisherDoesNotKnow(t *testing.T) {
	ready := make(chan struct{})
	pub := serve(t, "PUB", func(_ int, c net.Conn) bool {
		<-ready
		_, _ = c.Write(zmtp("kv", number(1<<49), "0:2"))
		return true
	})
	router := serve(t, "ROUTER", func(n int, c net.Conn) bool {
		replies(c, 0, []uint64{0, 2, 0}[n], 2)
		end(c)
		return true
	})
	o := quick()
	o.ReplayCooldown, o.Idle = 50*time.Millisecond, time.Hour
	d, _ := follow(t, source(pub, router), o)
	d.seen(t, "2=0:2", events.StateLive)
	close(ready)
	d.wait(t, "the rebuild", func() bool { return slices.Contains(d.entries, "reset") })
	d.state(t, events.StateLive)
	d.reads(t, "joined 0 complete", "0..2 of 0", "gap 3-562949953421312", "joined 562949953421313 partial",
		"reset", "joined 0 complete", "0..2 of 0")
	d.rejected(t, events.ReasonBadSequence, 1)
}

// Rule 13: an endpoint that did not know what the stream had just brought keeps nothing. That it answers with nothing
// shows neither that the publisher started again nor that it is empty.
func TestRule13_SilenceOfAnEndpointThatKeepsNothing(t *testing.T) {
	p, at := engine(t, zmqtest.Args{"ring": 0})
	px := newProxy(t, at.Pub)
	o := quick()
	o.ReplayCooldown = 50 * time.Millisecond
	d, _ := follow(t, source(px.endpoint(), at.Replay), o)
	d.seen(t, "joined 0 complete", events.StateLive)
	p.Do("wait", nil)
	p.Do("publish", zmqtest.Args{"n": 2, "live": false})
	p.Do("publish", nil)
	d.seen(t, "2=0:2", events.StateGap)
	px.cut()
	d.wait(t, "another session", func() bool {
		n := len(d.states)
		i := slices.Index(d.states, events.StateGap)
		return slices.Contains(d.states[i:], events.StateConnecting) && d.states[n-1] == events.StateGap
	})
	p.Do("wait", nil)
	p.Do("publish", nil)
	d.seen(t, "3=0:3", events.StateGap)
	d.reads(t, "joined 0 complete", "gap 0-1", "joined 2 partial", "2..3 of 0")

	p.Do("rewind", nil) // a new life is seen by its numbers, and its endpoint is believed as soon as it brings something
	p.Do("publish", nil)
	d.seen(t, "0=1:0", events.StateLive)
}

// The same after an outage: nothing is known until the publisher speaks (rule 12).
func TestRule12_SilenceOfAnEndpointThatKeepsNothing(t *testing.T) {
	joined, again := make(chan struct{}), make(chan struct{})
	pub := serve(t, "PUB", func(n int, c net.Conn) bool {
		if n == 0 {
			<-joined
			lives(c, 0, 3, 3)
			_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
			_, _ = io.Copy(io.Discard, c)
			return false
		}
		<-again
		lives(c, 0, 4, 4)
		return true
	})
	src, _ := answers(t, func(net.Conn) {})
	src.Events = pub
	o := quick()
	o.StaleAfter, o.Idle, o.BackoffMin, o.BackoffMax = time.Millisecond, time.Hour, 20*time.Millisecond, 20*time.Millisecond
	d, _ := follow(t, src, o)
	d.seen(t, "joined 0 complete", events.StateLive)
	close(joined)
	d.wait(t, "stale after the outage", func() bool {
		i := slices.Index(d.entries, "3=0:3")
		n := len(d.states)
		return i >= 0 && n > 1 && d.states[n-2] == events.StateReplaying && d.states[n-1] == events.StateStale
	})
	close(again)
	d.seen(t, "4=0:4", events.StateGap)
	d.reads(t, "joined 0 complete", "gap 0-2", "joined 3 partial", "3..4 of 0")
}
