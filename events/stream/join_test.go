package stream_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/stream"
	"github.com/kvscout/kvscout/events/zmq"
	"github.com/kvscout/kvscout/events/zmq/zmqtest"
)

func TestJoinFromTheBeginning(t *testing.T) {
	p := zmqtest.Start(t)
	at := p.Do("open", nil)
	d, _ := follow(t, source(at.Pub, ""), quick())
	p.Do("wait", nil)
	d.state(t, events.StateUnknown) // connected, and nothing is known
	p.Do("publish", zmqtest.Args{"n": 3})
	d.seen(t, "2=0:2", events.StateLive)
	d.reads(t, "joined 0 complete", "0..2 of 0")
}

// TestCase50_LateJoinWithoutReplay: the history that was missed is told.
func TestCase50_LateJoinWithoutReplay(t *testing.T) {
	p := zmqtest.Start(t)
	at := p.Do("open", nil)
	p.Do("publish", zmqtest.Args{"n": 3})
	d, _ := follow(t, source(at.Pub, ""), quick())
	p.Do("wait", nil)
	p.Do("publish", zmqtest.Args{"n": 2})
	d.seen(t, "4=0:4", events.StateLive)
	d.reads(t, "joined 3 partial", "3..4 of 0")
}

// TestCase49_Case57_LateJoinWithReplay: what was published before is fetched, in both layouts, with and without topic.
func TestCase49_Case57_LateJoinWithReplay(t *testing.T) {
	for _, layout := range []string{"new", "old"} {
		for _, topic := range []string{"kv", ""} {
			t.Run(layout+" "+topic, func(t *testing.T) {
				p, at := engine(t, zmqtest.Args{"layout": layout, "topic": topic})
				p.Do("publish", zmqtest.Args{"n": 5})
				src := source(at.Pub, at.Replay)
				src.Topic = topic
				d, _ := follow(t, src, quick())
				p.Do("wait", nil)
				d.seen(t, "4=0:4", events.StateLive)
				p.Do("publish", zmqtest.Args{"n": 2})
				d.seen(t, "6=0:6", events.StateLive)
				d.reads(t, "joined 0 complete", "0..6 of 0")
				if d.replayed != 5 {
					t.Errorf("%d replayed, want 5", d.replayed)
				}
			})
		}
	}
}

// TestRule13_SilentEngineIsKnownToBeEmpty: a replay of nothing is proof.
func TestRule13_SilentEngineIsKnownToBeEmpty(t *testing.T) {
	p, at := engine(t, nil)
	d, _ := follow(t, source(at.Pub, at.Replay), quick())
	d.seen(t, "joined 0 complete", events.StateLive)
	p.Do("wait", nil)
	p.Do("publish", nil)
	d.seen(t, "0=0:0", events.StateLive)
	d.reads(t, "joined 0 complete", "0..0 of 0")
}

// TestSlowJoiner: batches published after the replay and before the subscription took hold are fetched once they show.
func TestSlowJoiner(t *testing.T) {
	p, at := engine(t, nil)
	d, _ := follow(t, source(at.Pub, at.Replay), quick())
	d.seen(t, "joined 0 complete", events.StateLive)
	p.Do("wait", nil)
	p.Do("publish", zmqtest.Args{"n": 3, "live": false})
	p.Do("publish", nil)
	d.seen(t, "3=0:3", events.StateLive)
	d.reads(t, "joined 0 complete", "0..3 of 0")
}

// Publishers that count from 1 look like those that lost their first batch: never complete, however often they are asked.
func TestRule13_PublishersThatCountFromOne(t *testing.T) {
	p, at := engine(t, zmqtest.Args{"start": 1})
	p.Do("publish", zmqtest.Args{"n": 2})
	d, _ := follow(t, source(at.Pub, at.Replay), quick())
	d.seen(t, "2=0:2", events.StateLive)
	d.wait(t, "the second replay", func() bool { return len(d.entries) == 7 })
	d.state(t, events.StateLive)
	p.Do("wait", nil)
	p.Do("publish", nil)
	d.seen(t, "3=0:3", events.StateLive)
	d.reads(t, "joined 1 partial", "1..2 of 0", "reset", "joined 1 partial", "1..3 of 0")
	asked(t, p, 0, 0)

	p, at = engine(t, zmqtest.Args{"start": 1})
	o := quick()
	o.ReplayCooldown = 50 * time.Millisecond
	d, _ = follow(t, source(at.Pub, at.Replay), o)
	d.seen(t, "joined 0 complete", events.StateLive)
	p.Do("wait", nil)
	p.Do("publish", nil)
	d.wait(t, "the second replay", func() bool { return len(d.entries) == 7 })
	p.Do("publish", nil)
	d.seen(t, "2=0:2", events.StateLive)
	d.reads(t, "joined 0 complete", "gap 0-0", "joined 1 partial", "1..1 of 0", "reset", "joined 1 partial", "1..2 of 0")

	p = zmqtest.Start(t)
	at = p.Do("open", zmqtest.Args{"start": 1})
	d, _ = follow(t, source(at.Pub, ""), quick())
	p.Do("wait", nil)
	p.Do("publish", nil)
	d.seen(t, "1=0:1", events.StateLive)
	d.reads(t, "joined 1 partial", "1..1 of 0")
}

// TestEndpointThatKeepsNothing: a publisher whose buffer holds nothing is not taken for an empty one.
func TestEndpointThatKeepsNothing(t *testing.T) {
	p, at := engine(t, zmqtest.Args{"ring": 0})
	d, _ := follow(t, source(at.Pub, at.Replay), quick())
	d.seen(t, "joined 0 complete", events.StateLive)
	p.Do("wait", nil)
	p.Do("publish", zmqtest.Args{"n": 4, "live": false})
	p.Do("publish", zmqtest.Args{"n": 2})
	d.seen(t, "5=0:5", events.StateGap)
	d.reads(t, "joined 0 complete", "gap 0-3", "joined 4 partial", "4..5 of 0")
}

// TestCase120_BadFrames: malformed messages are counted, the connection stays, and no gap arises.
func TestCase120_BadFrames(t *testing.T) {
	p := zmqtest.Start(t)
	at := p.Do("open", zmqtest.Args{"topic": ""})
	d, _ := follow(t, source(at.Pub, ""), quick())
	p.Do("wait", nil)
	p.Do("publish", nil)
	for _, frames := range [][]string{
		{"70"}, {"6b76", "70"}, {"6b76", "00000001", "70"}, {"6b76", "ffffffffffffffff", "70"}, {"", "", "", ""},
	} {
		p.Do("raw", zmqtest.Args{"frames": frames})
	}
	p.Do("raw", zmqtest.Args{"frames": []string{"6b76", "0000000000000001", "303a31"}})
	d.seen(t, "1=0:1", events.StateLive)
	d.reads(t, "joined 0 complete", "0..1 of 0")
	d.rejected(t, events.ReasonBadFrames, 3)
	d.rejected(t, events.ReasonBadSequence, 2)
}

func TestNewValidates(t *testing.T) {
	for _, tc := range []struct {
		name string
		src  events.Source
		o    stream.Options
		want error
	}{
		{"no endpoint", source("", ""), stream.Options{}, events.ErrSource},
		{"bad endpoint", source("udp://h:1", ""), stream.Options{}, events.ErrSource},
		{"replay to bind", source("tcp://h:1", "tcp://*:2"), stream.Options{}, events.ErrSource},
		{"no worker", events.Source{Engine: "vllm", Events: "tcp://h:1"}, stream.Options{}, events.ErrSource},
		{"negative", source("tcp://h:1", ""), stream.Options{StaleAfter: -1}, zmq.ErrOptions},
		{"no room", source("tcp://h:1", ""), stream.Options{Replays: make(chan struct{})}, zmq.ErrOptions},
	} {
		if _, err := stream.New(tc.src, newDiary(), tc.o); !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.name, err, tc.want)
		}
	}
}

// TestTrackerReach: what the stream assumes of events.Tracker.
func TestTrackerReach(t *testing.T) {
	var tr events.Tracker
	for n := range uint64(3000) {
		tr.Accept(n, nil)
	}
	got := []bool{tr.Recognises(2999-stream.TrackerReach, nil), tr.Recognises(3000-stream.TrackerReach, nil)}
	if d := cmp.Diff([]bool{false, true}, got); d != "" {
		t.Error(d)
	}
}
