package e2e

import (
	"syscall"
	"testing"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"

	"github.com/kvscout/kvscout/test/testport"
)

func resets(n uint64) func(*kvscoutv1.SourceStats) bool {
	return func(st *kvscoutv1.SourceStats) bool { return st.Resets == n }
}

// Case8 and case 20: the engine is killed and comes back on its port. Without a replay endpoint its first batch tells.
func TestCase8_RestartWithoutReplay(t *testing.T) {
	for _, dial := range []bool{false, true} {
		t.Run(map[bool]string{false: "kvscout dials", true: "engine dials"}[dial], func(t *testing.T) {
			t.Parallel()
			e := startEngine(t, engineConfig{id: "w1", dial: dial})
			s := serveFleet(t, []*engine{e})
			for life := range uint64(3) {
				first := uint32(100 * life)
				before := e.hello(s)
				s.reached(t, "w1", 0, e.serve(span(first+1, first+9)).Seq)
				st := s.reached(t, "w1", 0, e.serve(span(first+21, first+29)).Seq)
				if st.Resets != life || st.Connections < life+1 || st.Gaps != 0 {
					t.Errorf("life %d: %v", life, st)
				}
				if life > 0 {
					same(t, "the old life", s.score(t, "w1", span(first-99, first-91)), answer{0, 0, exact, ""})
				}
				same(t, "this life", s.score(t, "w1", span(first+1, first+9)), answer{8, 8, exact, ""})
				if before.Bytes > st.Bytes {
					t.Errorf("bytes fell from %d to %d", before.Bytes, st.Bytes)
				}
				e.restart()
			}
		})
	}
}

// Case8 with a replay endpoint: the restart is seen before the new engine publishes anything.
func TestCase8_RestartWithReplay(t *testing.T) {
	for _, dial := range []bool{false, true} {
		t.Run(map[bool]string{false: "kvscout dials", true: "engine dials"}[dial], func(t *testing.T) {
			t.Parallel()
			e := startEngine(t, engineConfig{id: "w1", replay: true, dial: dial})
			s := serveFleet(t, []*engine{e})
			s.inState(t, "w1", 0, stateLive)
			e.hello(s)
			s.reached(t, "w1", 0, e.serve(span(1, 9)).Seq)
			same(t, "first life", s.score(t, "w1", span(1, 9)), answer{8, 8, exact, ""})
			e.restart()
			s.await(t, "restart seen", "w1", 0, resets(1))
			s.inState(t, "w1", 0, stateLive)
			same(t, "nothing of the first life", s.score(t, "w1", span(1, 9)), answer{0, 0, exact, ""})
			e.hello(s)
			r := e.serve(span(21, 29))
			s.await(t, "first store of the next life", "w1", 0, func(st *kvscoutv1.SourceStats) bool { return st.StoredEvents == 2 })
			s.reached(t, "w1", 0, r.Seq)
			same(t, "second life", s.score(t, "w1", span(21, 29)), answer{8, 8, exact, ""})
		})
	}
}

// Case95: while the server hears nothing the engine is killed, started again, and publishes past the old number. The
// answers of the old life may not stay facts.
func TestCase95_RestartWithHigherNumbers(t *testing.T) {
	t.Parallel()
	for _, replay := range []bool{true, false} {
		t.Run(map[bool]string{true: "replay", false: "no replay"}[replay], func(t *testing.T) {
			t.Parallel()
			e := startEngine(t, engineConfig{id: "w1", replay: replay})
			s := serveFleet(t, []*engine{e})
			if replay {
				s.inState(t, "w1", 0, stateLive)
			}
			e.hello(s)
			for i := range uint32(3) {
				s.reached(t, "w1", 0, e.serve(span(1, 5+4*i)).Seq)
			}
			same(t, "first life", s.score(t, "w1", span(1, 13)), answer{12, 12, exact, ""})

			s.signal(t, syscall.SIGSTOP)
			e.restart()
			for i := range uint32(8) {
				e.serve(span(41, 45+4*i))
			}
			s.signal(t, syscall.SIGCONT)

			if replay { // rebuilt from number 0 of the new life
				s.reached(t, "w1", 0, 7)
				st := s.await(t, "restart seen", "w1", 0, resets(1))
				if st.Gaps != 0 || st.ReplayedBatches < 8 {
					t.Errorf("8 batches by replay and no gap wanted: %v", st)
				}
				same(t, "old life", s.score(t, "w1", span(1, 13)), answer{0, 0, exact, ""})
				same(t, "new life", s.score(t, "w1", span(41, 73)), answer{32, 32, exact, ""})
				return
			}
			e.hello(s)
			r := e.serve(span(81, 89)) // number 8: a hole, as far as anyone can see
			st := s.reached(t, "w1", 0, r.Seq, stateGap)
			if st.Gaps != 1 {
				t.Errorf("one gap wanted: %v", st)
			}
			same(t, "old life", s.score(t, "w1", span(1, 13)), answer{0, 0, lower, "HISTORY_MISSING"})
			same(t, "after the hole", s.score(t, "w1", span(81, 89)), answer{8, 8, lower, "HISTORY_MISSING"})
		})
	}
}

// Rule 12, cases 107 and 116: a publisher that hangs without closing its connection is found out, and says so; its
// neighbour and a worker that never spoke keep their own answers.
func TestRule12_HungPublisherIsStale(t *testing.T) {
	t.Parallel()
	hung := startEngine(t, engineConfig{id: "hung", replay: true})
	well := startEngine(t, engineConfig{id: "well"})
	mute := startEngine(t, engineConfig{id: "mute"})
	absent := &engine{engineConfig: engineConfig{id: "absent", form: "vllm", model: "m", port: testport.Free(t, 1)}}
	s := serveFleet(t, []*engine{hung, well, mute, absent}, "--stale-after", "1s")
	s.inState(t, "hung", 0, stateLive)
	hung.hello(s)
	well.hello(s)
	s.reached(t, "hung", 0, hung.serve(span(1, 9)).Seq)
	s.reached(t, "well", 0, well.serve(span(1, 5)).Seq)

	hung.stop()
	n := uint32(5)
	stale := s.await(t, "stale", "hung", 0, func(st *kvscoutv1.SourceStats) bool {
		n = min(n+4, 2000)
		s.reached(t, "well", 0, well.serve(span(1, n)).Seq)
		same(t, "well, meanwhile", s.score(t, "well", span(1, n)), answer{n - 1, n - 1, exact, ""})
		return st.Freshness.State == stateStale
	})
	if stale.Freshness.AgeSeconds == nil || *stale.Freshness.AgeSeconds <= 0 {
		t.Errorf("no age: %v", stale)
	}
	w := s.score(t, "hung", span(1, 9))
	same(t, "hung: the last that was known", w, answer{8, 8, estimate, "STALE"})
	if w.Score != 0 || w.Freshness.State != stateStale {
		t.Errorf("a stale worker is credited: %v", w)
	}
	w = s.score(t, "mute", span(1, 9))
	same(t, "mute: no data, which is not an empty cache", w, answer{0, 0, lower, "HISTORY_MISSING"})
	if w.Freshness.State != stateUnknown || w.Freshness.LastSequence != nil {
		t.Errorf("mute: %v", w.Freshness)
	}
	w = s.score(t, "absent", span(1, 9))
	same(t, "absent", w, answer{0, 0, estimate, "HISTORY_MISSING STALE"})

	hung.cont()
	s.inState(t, "hung", 0, stateLive)
	same(t, "hung is back, and the same", s.score(t, "hung", span(1, 9)), answer{8, 8, exact, ""})
}
