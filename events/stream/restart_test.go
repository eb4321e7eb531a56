package stream_test

import (
	"slices"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/zmq/zmqtest"
)

// TestCase8_RestartOnOneConnection: numbers that fall back are a new life, with and without replay.
func TestCase8_RestartOnOneConnection(t *testing.T) {
	for _, replay := range []string{"", "tcp://127.0.0.1:*"} {
		t.Run("replay "+replay, func(t *testing.T) {
			p := zmqtest.Start(t)
			at := p.Do("open", zmqtest.Args{"replay": replay})
			d, _ := follow(t, source(at.Pub, at.Replay), quick())
			p.Do("wait", nil)
			p.Do("publish", zmqtest.Args{"n": 6})
			d.seen(t, "5=0:5", events.StateLive)
			p.Do("rewind", nil)
			p.Do("publish", zmqtest.Args{"n": 2})
			d.seen(t, "1=1:1", events.StateLive)
			d.reads(t, "joined 0 complete", "0..5 of 0", "reset", "joined 0 complete", "0..1 of 1")
		})
	}
}

// TestRestartOnOneConnectionMissed: the fallen number is not the first of its life.
func TestRestartOnOneConnectionMissed(t *testing.T) {
	p, _, d := joined(t, 6, nil)
	p.Do("rewind", nil)
	p.Do("publish", zmqtest.Args{"n": 2, "live": false})
	p.Do("publish", nil)
	d.seen(t, "2=1:2", events.StateLive)
	d.reads(t, "joined 0 complete", "0..5 of 0", "reset", "joined 0 complete", "0..2 of 1")
}

// TestTwoPublishersOnOneConnection: numbers that fall back for ever ask for one replay, not for one each time.
func TestTwoPublishersOnOneConnection(t *testing.T) {
	p, _, d := joined(t, 6, nil)
	for life := range 5 {
		p.Do("rewind", zmqtest.Args{"seq": 2})
		p.Do("publish", nil)
		entry := "2=" + string(rune('1'+life)) + ":2"
		d.wait(t, entry, func() bool { return slices.Contains(d.entries, entry) })
	}
	asked(t, p, 0, 0)
}

// TestCase8_RestartWithoutReplay: a process that comes back on its port is a new life even if it publishes the very same
// bytes.
func TestCase8_RestartWithoutReplay(t *testing.T) {
	p := zmqtest.Start(t)
	at := p.Do("open", nil)
	d, _ := follow(t, source(at.Pub, ""), quick())
	p.Do("wait", nil)
	p.Do("publish", zmqtest.Args{"n": 3})
	d.seen(t, "2=0:2", events.StateLive)
	p.Do("set", zmqtest.Args{"life": -1}) // the next life has the same payloads
	p.Do("open", zmqtest.Args{"pub": at.Pub})
	p.Do("wait", nil)
	p.Do("publish", zmqtest.Args{"n": 2})
	d.wait(t, "second life", func() bool { return len(d.entries) >= 8 })
	d.reads(t, "joined 0 complete", "0..2 of 0", "reset", "joined 0 complete", "0..1 of 0")
}

// TestRestartWithReplay: the new life is seen by the replay, before it publishes anything or after.
func TestRestartWithReplay(t *testing.T) {
	p, at, d := joined(t, 6, nil)
	again(p, at)
	d.wait(t, "reset", func() bool { return slices.Contains(d.entries, "reset") })
	d.wait(t, "joined", func() bool { return len(d.entries) >= 9 })
	d.state(t, events.StateLive)
	p.Do("wait", nil)
	p.Do("publish", zmqtest.Args{"n": 2})
	d.seen(t, "1=1:1", events.StateLive)
	d.reads(t, "joined 0 complete", "0..5 of 0", "reset", "joined 0 complete", "0..1 of 1")
}

// TestCase95_RestartHiddenInAGap: the new life has passed the old numbers before we see it.
func TestCase95_RestartHiddenInAGap(t *testing.T) {
	p, at := engine(t, nil)
	px := newProxy(t, at.Pub)
	d, _ := follow(t, source(px.endpoint(), at.Replay), quick())
	p.Do("wait", nil)
	d.seen(t, "joined 0 complete", events.StateLive)
	p.Do("publish", zmqtest.Args{"n": 6})
	d.seen(t, "5=0:5", events.StateLive)
	p.Do("rewind", nil) // a new life, and nothing of it is seen until it is past the old number
	p.Do("publish", zmqtest.Args{"n": 8, "live": false})
	px.cut()
	d.wait(t, "new life", func() bool { return slices.Contains(d.entries, "7=1:7") })
	p.Do("wait", nil)
	p.Do("publish", nil)
	d.seen(t, "8=1:8", events.StateLive)
	d.reads(t, "joined 0 complete", "0..5 of 0", "reset", "joined 0 complete", "0..8 of 1")
}

// TestCase95_RestartHiddenInAGapOfOneConnection: the same without a lost connection.
func TestCase95_RestartHiddenInAGapOfOneConnection(t *testing.T) {
	p, _, d := joined(t, 6, nil)
	p.Do("rewind", nil)
	p.Do("publish", zmqtest.Args{"n": 8, "live": false})
	p.Do("publish", nil)
	d.seen(t, "8=1:8", events.StateLive)
	d.reads(t, "joined 0 complete", "0..5 of 0", "reset", "joined 0 complete", "0..8 of 1")
}

// TestNetworkBlip: after a lost connection to the same life, what was missed is fetched and nothing is dropped.
func TestNetworkBlip(t *testing.T) {
	p, at := engine(t, nil)
	px := newProxy(t, at.Pub)
	d, _ := follow(t, source(px.endpoint(), at.Replay), quick())
	p.Do("wait", nil)
	d.seen(t, "joined 0 complete", events.StateLive)
	p.Do("publish", zmqtest.Args{"n": 3})
	d.seen(t, "2=0:2", events.StateLive)
	for n := range 3 {
		p.Do("publish", zmqtest.Args{"n": 2, "live": false})
		px.cut()
		last := 4 + 2*n
		d.wait(t, "missed batches", func() bool { return len(d.entries) == last+2 })
		d.state(t, events.StateLive)
	}
	d.reads(t, "joined 0 complete", "0..8 of 0")
	asked(t, p, 0, 2, 4, 6)
}

// TestNetworkBlipBeyondTheBuffer: the batch we had last has left the buffer, so nothing shows that the life is the same.
func TestNetworkBlipBeyondTheBuffer(t *testing.T) {
	for _, tc := range []struct {
		name   string
		missed int
		told   string
	}{{"next", 3, "reset"}, {"later", 5, "gap 3-4"}} {
		t.Run(tc.name, func(t *testing.T) {
			p, at := engine(t, zmqtest.Args{"ring": 3})
			px := newProxy(t, at.Pub)
			d, _ := follow(t, source(px.endpoint(), at.Replay), quick())
			p.Do("wait", nil)
			d.seen(t, "joined 0 complete", events.StateLive)
			p.Do("publish", zmqtest.Args{"n": 3})
			d.seen(t, "2=0:2", events.StateLive)
			p.Do("publish", zmqtest.Args{"n": tc.missed, "live": false})
			px.cut()
			d.wait(t, "the rest", func() bool { return len(d.entries) == 9 })
			first := string(rune('0' + tc.missed))
			d.reads(t, "joined 0 complete", "0..2 of 0", tc.told, "joined "+first+" partial",
				first+".."+string(rune('2'+tc.missed))+" of 0")
		})
	}
}

// TestBlipWithoutReplay: the next number is accepted, and one that leaves a gap is not.
func TestBlipWithoutReplay(t *testing.T) {
	p := zmqtest.Start(t)
	at := p.Do("open", nil)
	px := newProxy(t, at.Pub)
	d, _ := follow(t, source(px.endpoint(), ""), quick())
	p.Do("wait", nil)
	p.Do("publish", nil)
	d.seen(t, "0=0:0", events.StateLive)
	for n := range 2 {
		p.Do("publish", zmqtest.Args{"n": n, "live": false})
		px.cut()
		p.Do("drained", nil)
		p.Do("wait", nil)
		p.Do("publish", nil)
		d.wait(t, "the batch after the blip", func() bool { return len(d.entries) >= 3+n })
	}
	d.seen(t, "3=0:3", events.StateGap)
	d.reads(t, "joined 0 complete", "0..1 of 0", "gap 2-2", "joined 3 partial", "3..3 of 0")
}

// TestEpochs: another publisher id is another life, whatever the numbers say.
func TestEpochs(t *testing.T) {
	p, _, d := joined(t, 2, zmqtest.Args{"epoch": "01020304050607080910111213141516"})
	p.Do("raw", zmqtest.Args{"frames": []string{"6b76", "0000000000000002aabbccddeeff00112233445566778899", "313a32"}})
	d.seen(t, "2=1:2", events.StateLive)
	d.locked(func() {
		if d.entries[3] != "reset" {
			t.Errorf("got %q", d.entries)
		}
	})
}

// TestKillAndRestart: the process dies and another takes its ports.
func TestKillAndRestart(t *testing.T) {
	p, at, d := joined(t, 4, nil)
	p.Kill()
	d.state(t, events.StateConnecting)
	p = zmqtest.Start(t)
	p.Do("set", zmqtest.Args{"life": 6})
	again(p, at)
	p.Do("wait", nil)
	p.Do("publish", zmqtest.Args{"n": 2})
	d.seen(t, "1=7:1", events.StateLive)
	d.reads(t, "joined 0 complete", "0..3 of 0", "reset", "joined 0 complete", "0..1 of 7")
}

// TestCase116_Rule12_SilentDeath: a frozen publisher is told stale, and live again when it comes back, with nothing lost
// and nothing dropped.
func TestCase116_Rule12_SilentDeath(t *testing.T) {
	p, at := engine(t, nil)
	o := quick()
	o.Idle, o.StaleAfter = 50*time.Millisecond, 300*time.Millisecond
	d, _ := follow(t, source(at.Pub, at.Replay), o)
	p.Do("wait", nil)
	p.Do("publish", zmqtest.Args{"n": 3})
	d.seen(t, "2=0:2", events.StateLive)
	d.locked(func() { d.states = nil })
	p.Freeze()
	d.state(t, events.StateStale)
	d.locked(func() {
		if d.states[0] != events.StateConnecting {
			t.Errorf("states %v, want connecting first", d.states)
		}
	})
	p.Thaw()
	d.state(t, events.StateLive)
	p.Do("publish", nil)
	d.seen(t, "3=0:3", events.StateLive)
	d.reads(t, "joined 0 complete", "0..3 of 0")
}

// TestLongOutageWithoutReplay: a publisher that comes back after a long time is not called live before it speaks.
func TestLongOutageWithoutReplay(t *testing.T) {
	p := zmqtest.Start(t)
	at := p.Do("open", nil)
	o := quick()
	o.StaleAfter = 100 * time.Millisecond
	d, _ := follow(t, source(at.Pub, ""), o)
	p.Do("wait", nil)
	p.Do("publish", nil)
	d.seen(t, "0=0:0", events.StateLive)
	p.Do("close", nil)
	d.state(t, events.StateStale)
	p.Do("open", zmqtest.Args{"pub": at.Pub})
	p.Do("wait", nil)
	d.locked(func() {
		if d.now() != events.StateStale {
			t.Errorf("state is %v", d.now())
		}
	})
	p.Do("publish", nil)
	d.seen(t, "0=1:0", events.StateLive)
	d.reads(t, "joined 0 complete", "0..0 of 0", "reset", "joined 0 complete", "0..0 of 1")
}

// TestRule12_LongOutageThenShort: a second, short outage proves nothing about a publisher that has not spoken since a long
// one.
func TestRule12_LongOutageThenShort(t *testing.T) {
	p := zmqtest.Start(t)
	at := p.Do("open", nil)
	o := quick()
	o.StaleAfter = time.Second
	px := newProxy(t, at.Pub)
	d, _ := follow(t, source(px.endpoint(), ""), o)
	p.Do("wait", nil)
	p.Do("publish", nil)
	d.seen(t, "0=0:0", events.StateLive)
	p.Do("close", nil)
	px.cut()
	d.state(t, events.StateStale)
	p.Do("open", zmqtest.Args{"pub": at.Pub})
	p.Do("wait", nil)
	d.locked(func() { d.states = []events.State{events.StateStale} })
	px.cut()
	p.Do("drained", nil)
	p.Do("wait", nil)
	d.wait(t, "connected again", func() bool { return len(d.states) > 2 && d.now() != events.StateConnecting })
	d.locked(func() {
		if d.now() != events.StateStale {
			t.Errorf("state is %v", d.now())
		}
	})
}

// TestRule12_LongOutageAndFailedReplay: a replay that fails proves no more than none.
func TestRule12_LongOutageAndFailedReplay(t *testing.T) {
	p, at := engine(t, nil)
	o := quick()
	o.StaleAfter, o.ReplayIdle = 100*time.Millisecond, 100*time.Millisecond
	d, _ := follow(t, source(at.Pub, at.Replay), o)
	p.Do("wait", nil)
	p.Do("publish", nil)
	d.seen(t, "0=0:0", events.StateLive)
	p.Do("close", nil)
	d.state(t, events.StateStale)
	p.Do("open", zmqtest.Args{"pub": at.Pub})
	p.Do("wait", nil)
	d.wait(t, "a replay that failed", func() bool { n := len(d.states); return n > 1 && d.states[n-2] == events.StateReplaying })
	d.locked(func() {
		if d.now() != events.StateStale {
			t.Errorf("state is %v", d.now())
		}
	})
	p.Do("publish", nil)
	d.wait(t, "the next life", func() bool { return d.entries[len(d.entries)-1] == "0=1:0" })
	d.state(t, events.StateLive)
}
