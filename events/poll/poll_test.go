package poll

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/discover"
)

var fast = Options{Interval: time.Millisecond, MaxInterval: 5 * time.Millisecond, BackoffMax: 20 * time.Millisecond}

// Rules 8 and 13: events arrive in order, once; history is complete from number 0 on.
func TestRule8_Rule13_InOrderFromTheStart(t *testing.T) {
	e := serve(t, "0")
	sink := start(t, e, fast)
	sink.is(t, "unknown") // nothing was heard: unknown is not empty
	e.push(0, 1, 2)
	e.push(3)
	sink.has(t, "joined 0 true", "apply 0", "apply 1", "apply 2", "apply 3")
	sink.is(t, "live")
}

// Rule 13: who joins late, or was preceded by another poller, does not know what came before.
func TestRule13_JoinedLate(t *testing.T) {
	e := serve(t, "0")
	e.push(7, 8)
	sink := start(t, e, fast)
	sink.has(t, "joined 7 false", "apply 7", "apply 8")
	sink.is(t, "live")
}

// Rule 11: numbers that skip are a gap, numbers that do not rise a new life, even with the content of the old one.
func TestRule11_GapAndRestart(t *testing.T) {
	e := serve(t, "0")
	sink := start(t, e, fast)
	e.push(0, 1, 5)
	sink.has(t, "apply 1", "gap 2..4", "joined 5 false", "apply 5")
	sink.is(t, "gap")
	e.push(6)
	sink.has(t, "apply 6")
	sink.is(t, "gap")
	e.push(0)
	sink.has(t, "reset", "joined 0 true", "apply 0")
	sink.is(t, "live")
	e.push(0)
	sink.has(t, "reset", "joined 0 true", "apply 0", "reset", "joined 0 true", "apply 0")
}

// Attention-DP ranks number their events independently (kvCacheEventManager.cpp).
func TestRanks(t *testing.T) {
	e := serve(t, "0")
	sink := start(t, e, fast)
	of := func(rank, id int) {
		e.do(`push {"event_id": %d, "data": {"type": "removed", "block_hashes": []}, "attention_dp_rank": %d}`, id, rank)
	}
	of(0, 0)
	of(1, 0)
	of(1, 1)
	of(0, 1)
	sink.has(t, "joined 0 true", "apply 0: 0 of 0", "apply 1: 0 of 1", "apply 2: 1 of 1", "apply 3: 1 of 0")
	of(2, 4)
	sink.has(t, "gap 4..7", "joined 8 false", "apply 8: 4 of 2")
	of(1, 3)
	sink.has(t, "gap 9..9", "joined 10 false", "apply 10: 3 of 1")
}

// Rule 13: an answer that broke off may have held events. The next number tells.
func TestRule13_LostAnswer(t *testing.T) {
	e := serve(t, "0")
	sink := start(t, e, fast)
	e.push(0)
	sink.has(t, "joined 0 true", "apply 0")
	for i, mode := range []string{"cut", "error", "page"} {
		sink.is(t, "live")
		e.do("mode %s", mode)
		sink.is(t, "connecting")
		e.do("mode drain")
		sink.is(t, "unsure")
		e.push(i + 1)
		sink.has(t, fmt.Sprintf("apply %d", i), fmt.Sprintf("apply %d", i+1))
	}
	e.do("mode hang") // now with events in it
	e.push(4, 5, 6)
	e.do("mode error")
	sink.is(t, "connecting")
	e.do("mode drain")
	sink.is(t, "unsure")
	e.push(7)
	sink.has(t, "gap 4..6", "joined 7 false", "apply 7")
	sink.is(t, "gap")
}

// What came of an answer before it broke off counts.
func TestRule8_CutAnswer(t *testing.T) {
	e := serve(t, "0")
	sink := start(t, e, fast)
	e.push(0)
	sink.has(t, "joined 0 true", "apply 0")
	e.do("mode hang")
	e.push(1, 2, 3, 4)
	e.do("mode cut")
	sink.has(t, "apply 0", "apply 1", "apply 2")
	e.do("mode drain")
	sink.is(t, "unsure")
	e.push(5)
	sink.has(t, "gap 3..4", "joined 5 false", "apply 5")
}

// Rules 11 and 12: an engine that is gone goes stale; one that comes back is not taken for the old one until it speaks.
func TestRule12_DeathAndRestart(t *testing.T) {
	e := serve(t, "0")
	o := fast
	o.StaleAfter = 300 * time.Millisecond
	sink := start(t, e, o)
	e.push(0, 1)
	sink.has(t, "apply 0", "apply 1")
	e.kill()
	sink.is(t, "connecting")
	sink.is(t, "stale")
	next := serve(t, e.port)
	sink.is(t, "unsure")
	next.push(0)
	sink.has(t, "reset", "joined 0 true", "apply 0")
	sink.is(t, "live")
}

// Rule 12: an engine that accepts and never answers goes stale too.
func TestRule12_Hang(t *testing.T) {
	e := serve(t, "0")
	o := fast
	o.StaleAfter, o.Timeout = 200*time.Millisecond, 50*time.Millisecond
	sink := start(t, e, o)
	e.push(0)
	sink.has(t, "apply 0")
	e.do("mode hang")
	sink.is(t, "stale")
	e.do("mode drain")
	sink.is(t, "unsure")
}

// An endpoint that only answers GET is asked by it.
func TestGet(t *testing.T) {
	e := serve(t, "0")
	e.do("mode get")
	e.push(0)
	sink := start(t, e, fast)
	sink.has(t, "joined 0 true", "apply 0")
	sink.is(t, "live")
}

// Rule 17: an event over its bound is counted and leaves a hole; the rest applies.
func TestRule17_LargeEvent(t *testing.T) {
	e := serve(t, "0")
	o := fast
	o.MaxEvent = 200
	sink := start(t, e, o)
	e.push(0)
	sink.has(t, "apply 0")
	e.do("mode hang")
	e.do(`push {"event_id": 1, "data": {"type": "removed", "block_hashes": [%s1]}}`, strings.Repeat("1,", 200))
	e.push(2)
	e.do("mode drain")
	sink.has(t, "reject too_large", "gap 1..1", "joined 2 false", "apply 2")
}

// What is no event is counted. {} is what the engine sends for none.
func TestRejects(t *testing.T) {
	e := serve(t, "0")
	sink := start(t, e, fast)
	e.push(0)
	sink.has(t, "apply 0")
	e.do("mode hang")
	for _, text := range []string{"{}", "null", "7", `{"data": {}}`, `"a]"`} {
		e.do("push %s", text)
	}
	e.push(1)
	e.do("mode drain")
	sink.has(t, "apply 0", "reject bad_payload", "reject bad_payload", "reject bad_sequence", "reject bad_payload", "apply 1")
}

func TestTaken(t *testing.T) {
	e := serve(t, "0")
	o := fast
	o.Claims = new(Claims)
	start(t, e, o).is(t, "unknown")
	p, err := New(events.Source{Worker: "v", Engine: events.EngineTRTLLM, Events: e.url()}, newTrace(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Run(context.Background()); !errors.Is(err, ErrTaken) {
		t.Errorf("a second stream: %v", err)
	}
}

func TestNew_Refused(t *testing.T) {
	good := events.Source{Worker: "w", Engine: events.EngineTRTLLM, Events: "http://h/kv_cache_events"}
	for name, edit := range map[string]func(*events.Source, *Options){
		"engine":      func(s *events.Source, _ *Options) { s.Engine = events.EngineVLLM },
		"replay":      func(s *events.Source, _ *Options) { s.Replay = "tcp://h:1" },
		"scheme":      func(s *events.Source, _ *Options) { s.Events = "tcp://h:1" },
		"no host":     func(s *events.Source, _ *Options) { s.Events = "http:///kv_cache_events" },
		"credentials": func(s *events.Source, _ *Options) { s.Events = "http://user:secret@h/" },
		"options":     func(_ *events.Source, o *Options) { o.Timeout = -1 },
	} {
		src, o := good, Options{}
		edit(&src, &o)
		_, err := New(src, newTrace(), o)
		if !errors.Is(err, events.ErrSource) && !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error repeats the password", name)
		}
	}
}

// No metadata service is asked, whatever a call registers, nor anything outside of the allowed networks.
func TestPolicy(t *testing.T) {
	e := serve(t, "0")
	e.push(0)
	inside, err := discover.ParsePolicy([]string{"10.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	for url, policy := range map[string]discover.Policy{
		e.url(): inside, "http://169.254.169.254/latest/meta-data": {}, "http://[::ffff:169.254.169.254]/": {}, "http://100.100.100.200/": {},
	} {
		o := fast
		o.Policy = policy
		sink := startAt(t, url, o)
		sink.wait(t, func() bool { return strings.Contains(sink.why, discover.ErrRefused.Error()) }, "a refusal of "+url)
		if len(sink.calls) > 0 {
			t.Errorf("%s: told %q", url, sink.calls)
		}
	}
	if n := e.do("id"); n != "0" {
		t.Errorf("%s polls were answered", n)
	}
}
