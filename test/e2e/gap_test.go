package e2e

import (
	"testing"
)

// hole publishes the batches of case 9; numbers 2 and 3 go where to says.
func hole(e *engine, to string) (last uint64) {
	e.do(publish(stored(101, nil, span(1, 4))))
	e.do(publish(stored(102, 101, span(5, 8))))
	lost := publish(obj{"type": "removed", "block_hashes": []int{102}})
	lost["to"] = to
	e.do(lost)
	lost = publish(stored(103, 101, span(9, 12)))
	lost["to"] = to
	e.do(lost)
	return e.do(publish(stored(104, 103, span(13, 16)))).Seq
}

func pathA() []uint32 { return append(span(1, 4), span(9, 17)...) }

// Case9: lost batches are fetched and applied in their place.
func TestCase9_GapFilledByReplay(t *testing.T) {
	for name, c := range map[string]engineConfig{
		"replies with a topic":    {id: "w1", replay: true},
		"replies without a topic": {id: "w1", replay: true, form: "vllm-array"}, // case 57
		"engine dials":            {id: "w1", replay: true, dial: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := startEngine(t, c)
			s := serveFleet(t, []*engine{e})
			e.hello(s)
			st := s.reached(t, "w1", 0, hole(e, "replay"))
			same(t, "around the filled hole", s.score(t, "w1", pathA()), answer{12, 12, exact, ""})
			same(t, "removed in the hole", s.score(t, "w1", span(1, 9)), answer{4, 4, exact, ""})
			if st.Gaps != 0 || st.Resets != 0 || st.ReplayedBatches < 2 || st.Batches != 5 {
				t.Errorf("5 batches, of them 2 or more replayed, and no gap wanted: %v", st)
			}
		})
	}
}

// Rule 11: what cannot be fetched costs the state, and every answer says so, until the engine clears its cache.
func TestRule11_GapNotFilled(t *testing.T) {
	tests := []struct {
		name string
		c    engineConfig
		to   string
	}{
		{"no replay endpoint", engineConfig{id: "w1"}, "none"},
		{"lost in the engine too", engineConfig{id: "w1", replay: true}, "none"},
		{"fell out of the buffer", engineConfig{id: "w1", replay: true, buffer: 1}, "replay"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := startEngine(t, tt.c)
			s := serveFleet(t, []*engine{e})
			e.hello(s)
			st := s.reached(t, "w1", 0, hole(e, tt.to), stateGap)
			if st.Gaps != 1 || st.OrphansWaiting != 1 || st.HistoryComplete {
				t.Errorf("a gap and an orphan wanted: %v", st)
			}
			w := s.score(t, "w1", pathA())
			same(t, "dropped", w, answer{0, 0, lower, "HISTORY_MISSING ORPHANS_WAITING"})
			if w.Freshness.State != stateGap {
				t.Errorf("the answer is %v", w.Freshness)
			}
			r := e.do(publish(stored(201, nil, span(1, 8))))
			s.reached(t, "w1", 0, r.Seq, stateGap)
			same(t, "after the gap", s.score(t, "w1", span(1, 9)), answer{8, 8, lower, "HISTORY_MISSING ORPHANS_WAITING"})
			e.do(obj{"op": "clear"})
			r = e.do(publish(stored(301, nil, span(1, 4))))
			s.await(t, "cleared", "w1", 0, lastIs(r.Seq))
			same(t, "cleared", s.score(t, "w1", span(1, 9)), answer{4, 4, exact, ""})
		})
	}
}

// Rule 11, the option: the state is kept and flagged.
func TestRule11_KeepOnGap(t *testing.T) {
	t.Parallel()
	e := startEngine(t, engineConfig{id: "w1"})
	s := serveFleet(t, []*engine{e}, "--keep-on-gap")
	e.hello(s)
	st := s.reached(t, "w1", 0, hole(e, "none"), stateGap)
	if st.Gaps != 1 {
		t.Errorf("one gap wanted: %v", st)
	}
	same(t, "kept", s.score(t, "w1", span(1, 9)), answer{8, 8, estimate, "GAP_KEPT HISTORY_MISSING ORPHANS_WAITING"})
}

// Case49: batches published before the server was there are fetched.
func TestCase49_LateJoinWithReplay(t *testing.T) {
	for _, form := range []string{"vllm", "vllm-array", "sglang"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			e := startEngine(t, engineConfig{id: "w1", form: form, replay: true})
			var last result
			for i := range uint32(50) {
				last = e.serve(span(1, 5+4*i))
			}
			s := serveFleet(t, []*engine{e})
			st := s.reached(t, "w1", 0, last.Seq)
			if st.Gaps != 0 || !st.HistoryComplete || st.ReplayedBatches != last.Seq+1 {
				t.Errorf("%d replayed batches wanted: %v", last.Seq+1, st)
			}
			same(t, "all of it", s.score(t, "w1", span(1, 201)), answer{200, 200, exact, ""})
			e.hello(s)
			s.reached(t, "w1", 0, e.serve(span(1, 301)).Seq)
			same(t, "and on", s.score(t, "w1", span(1, 301)), answer{300, 300, exact, ""})
		})
	}
}

// A buffer that does not reach back to the first batch is no whole history.
func TestCase49_LateJoinShortBuffer(t *testing.T) {
	t.Parallel()
	e := startEngine(t, engineConfig{id: "w1", replay: true, buffer: 2})
	var last result
	for i := range uint32(5) {
		last = e.serve(span(1000*i+1, 1000*i+9))
	}
	s := serveFleet(t, []*engine{e})
	st := s.reached(t, "w1", 0, last.Seq)
	if st.HistoryComplete {
		t.Errorf("history is called complete: %v", st)
	}
	same(t, "in the buffer", s.score(t, "w1", span(4001, 4009)), answer{8, 8, lower, "HISTORY_MISSING"})
	same(t, "before the buffer", s.score(t, "w1", span(1, 9)), answer{0, 0, lower, "HISTORY_MISSING"})
}

// Case50: joined late without a replay, children of unknown parents wait, say so, and are no root.
func TestCase50_LateJoinWithoutReplay(t *testing.T) {
	t.Parallel()
	e := startEngine(t, engineConfig{id: "w1"})
	e.do(publish(stored(101, nil, span(1, 12))))
	s := serveFleet(t, []*engine{e})
	e.hello(s)
	e.do(publish(stored(104, 103, span(13, 16))))
	r := e.do(publish(stored(105, 104, span(17, 20))))
	st := s.await(t, "joined", "w1", 0, lastIs(r.Seq))
	if st.OrphansWaiting != 2 || st.HistoryComplete || st.Gaps != 0 {
		t.Errorf("two orphans, joined late, wanted: %v", st)
	}
	same(t, "the chain", s.score(t, "w1", span(1, 21)), answer{0, 0, lower, "HISTORY_MISSING ORPHANS_WAITING"})
	same(t, "an orphan is no root", s.score(t, "w1", span(13, 21)), answer{0, 0, lower, "HISTORY_MISSING ORPHANS_WAITING"})
	e.do(obj{"op": "clear"})
	r = e.do(publish(stored(201, nil, span(1, 8))))
	st = s.await(t, "cleared", "w1", 0, lastIs(r.Seq))
	if st.OrphansWaiting != 0 {
		t.Errorf("orphans of the cleared cache wait: %v", st)
	}
	same(t, "after the clear", s.score(t, "w1", span(1, 9)), answer{8, 8, exact, ""})
}
