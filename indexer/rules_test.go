package indexer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events"
)

func TestRule01_Case12_StopsAtTheFirstHole(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", chainOf(101, 7))
	r.held("w1", span(1, 28), 28)
	r.apply("w1", remove(103))
	r.held("w1", span(1, 28), 8)
	r.apply("w1", store(hashes(103), 102, sequence(9, 12), 4))
	r.held("w1", span(1, 28), 28)
}

func TestRule01_Case24_BlockBelongsToItsPrefix(t *testing.T) {
	r := newRig(t, "w1", "w2")
	r.apply("w1", store(hashes(101, 102), nil, []uint32{9, 9, 9, 9, 1, 2, 3, 4}, 4))
	r.apply("w2", store(hashes(201), nil, []uint32{5, 6, 7, 8}, 4))
	r.held("w1", span(1, 4), 0)
	r.held("w2", span(1, 4), 0)
	both := prompt(5, 6, 7, 8, 1, 2, 3, 4)
	r.held("w2", both, 4)
	r.held("w1", both, 0)
}

// A history that is tokenised again may be other tokens than the engine sampled: nothing matches but the same ones.
func TestRule01_Case160_OtherSplitOfTheSameText(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", chainOf(101, 2)) // 1..8, of which the engine sampled 7 and 8
	r.held("w1", prompt(1, 2, 3, 4, 5, 6, 9, 10), 4)
	r.held("w1", prompt(1, 2, 3, 4, 5, 6, 9), 4)
	r.held("w1", span(1, 8), 8)
}

func TestRule01_Case124_ShortPrompts(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", store(hashes(101, 102), nil, sequence(1, 32), 16))
	for n, want := range map[int]int{0: 0, 15: 0, 16: 16, 31: 16, 32: 32} {
		r.held("w1", span(1, n), want)
	}
}

func TestRule01_Case125_EachSourceItsOwn(t *testing.T) {
	r := newRig(t, "w1", "w2", "w3", "w4")
	r.apply("w1", chainOf(101, 3))
	r.apply("w2", chainOf(101, 2))
	r.apply("w3", store(hashes(101), nil, sequence(50, 53), 4))
	list, err := r.x.Lookup(context.Background(), span(1, 12))
	if err != nil || len(list) != 4 {
		t.Fatalf("%d answers, error %v; want all four sources", len(list), err)
	}
	for id, want := range map[string]int{"w1": 12, "w2": 8, "w3": 0, "w4": 0} {
		r.held(id, span(1, 12), want)
	}
}

func TestRule02_Case4_EngineHashesAreHandles(t *testing.T) {
	r := newRig(t, "w1", "w2")
	r.apply("w1", chainOf(101, 1))
	r.apply("w2", chainOf(777, 1))
	r.held("w1", span(1, 4), 4)
	r.held("w2", span(1, 4), 4)
	if n := r.x.Stats().Blocks; n != 1 {
		t.Errorf("%d blocks, want one that both hold", n)
	}
	r.apply("w1", remove(101))
	r.held("w1", span(1, 4), 0)
	r.held("w2", span(1, 4), 4)
}

func TestRule02_Case10_RemovalIsOneSourcesOwn(t *testing.T) {
	r := newRig(t, "w1", "w2", "w3")
	for _, id := range []string{"w1", "w2", "w3"} {
		r.apply(id, chainOf(101, 1))
	}
	r.apply("w2", remove(101))
	for id, want := range map[string]int{"w1": 4, "w2": 0, "w3": 4} {
		r.held(id, span(1, 4), want)
	}
}

func TestRule04_Case15_BlockSizesOfAPool(t *testing.T) {
	r := newRig(t, "w1", "w2", "w3")
	for id, size := range map[string]int{"w1": 4, "w2": 8, "w3": 3} {
		var list []any
		for i := range 24 / size {
			list = append(list, 101+i)
		}
		r.apply(id, store(list, nil, sequence(1, 24), size))
	}
	for id, want := range map[string][2]int{"w1": {24, 8}, "w2": {24, 8}, "w3": {24, 9}} {
		r.held(id, span(1, 24), want[0])
		r.held(id, span(1, 10), want[1])
	}
}

func TestRule04_Case148_AnswersAreInTokens(t *testing.T) {
	r := newRig(t, "w1", "w2")
	r.apply("w1", chainOf(101, 4))
	r.apply("w2", store(hashes(101), nil, sequence(1, 16), 16))
	for id, size := range map[string]int{"w1": 4, "w2": 16} {
		m := r.match(id, span(1, 16))
		if m.Held != 16 || m.BlockSize != size {
			t.Errorf("%s: %d tokens in blocks of %d, want 16 in blocks of %d", id, m.Held, m.BlockSize, size)
		}
	}
}

func TestRule07_Case139_LastTokenIsComputed(t *testing.T) {
	r := newRig(t, "w1")
	r.open("w2", events.Source{Worker: "w2", Engine: events.EngineVLLM, Model: "m", SpeculativeEAGLE: true})
	r.apply("w1", chainOf(101, 2))
	r.apply("w2", chainOf(101, 2))
	tests := []struct {
		id                   string
		tokens               int
		held, reusable, host int
	}{
		{"w1", 8, 8, 4, 4}, {"w1", 9, 8, 8, 8}, {"w1", 4, 4, 0, 0}, {"w1", 7, 4, 4, 4}, {"w1", 1, 0, 0, 0},
		{"w2", 8, 8, 0, 0}, {"w2", 9, 8, 4, 4}, {"w2", 4, 4, 0, 0},
	}
	for _, tt := range tests {
		m := r.match(tt.id, span(1, tt.tokens))
		if m.Held != tt.held || m.Reusable != tt.reusable || m.With[events.TierHost] != tt.host {
			t.Errorf("%s, %d tokens: held %d, reusable %d, with host %d; want %d, %d, %d", tt.id, tt.tokens,
				m.Held, m.Reusable, m.With[events.TierHost], tt.held, tt.reusable, tt.host)
		}
	}
}

func TestRule11_Case8_ResetDropsTheOldLife(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", chainOf(101, 2))
	r.w["w1"].Reset()
	r.held("w1", span(1, 8), 0)
	if b := r.match("w1", span(1, 8)).Bound; b.Kind != Lower {
		t.Errorf("after a reset, before the start is known: %v", b)
	}
	r.w["w1"].Joined(0, true)
	r.apply("w1", store(hashes(101), nil, sequence(21, 24), 4)) // the old hash, with another meaning
	r.held("w1", span(21, 24), 4)
	if s := r.w["w1"].Ledger().Stats(); s.Resets != 1 || s.Bound.Kind != Exact {
		t.Errorf("resets %d, bound %v", s.Resets, s.Bound)
	}
}

func TestRule11_GapDropsOrKeepsAndFlags(t *testing.T) {
	for _, keep := range []bool{false, true} {
		x := New(Options{KeepOnGap: keep})
		l, err := x.Open(events.Source{Worker: "w1", Engine: events.EngineVLLM, Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		l.Joined(true)
		l.Apply(&events.Batch{Events: []events.Event{dense(1, 0, sequence(1, 8), 4)}})
		l.Gap(3)
		l.Joined(false)
		list, _ := x.Lookup(context.Background(), span(1, 8))
		want, kind := 0, Lower
		if keep {
			want, kind = 8, Estimate
		}
		if m := list[0]; m.Held != want || m.Bound.Kind != kind {
			t.Errorf("keep %v: held %d, bound %v", keep, m.Held, m.Bound)
		}
		if s := l.Stats(); s.Gaps != 1 || s.Lost != 3 {
			t.Errorf("keep %v: gaps %d, lost %d, want 1, 3", keep, s.Gaps, s.Lost)
		}
		l.Apply(&events.Batch{Events: []events.Event{{Kind: events.Cleared}}})
		if b := l.Stats().Bound; b.Kind != Exact {
			t.Errorf("keep %v: after a clear the state is known, bound %v", keep, b)
		}
		l.Close()
	}
}

// dense is a store of blocks named first, first+1, ... under parent, 0 for none.
func dense(first, parent uint64, tokens []uint32, size int) events.Event {
	e := events.Event{Kind: events.Stored, Tokens: tokens, BlockSize: size}
	for i := range len(tokens) / size {
		e.Hashes = append(e.Hashes, events.HashInt(first+uint64(i)))
	}
	if parent != 0 {
		e.Parent, e.HasParent = events.HashInt(parent), true
	}
	return e
}

func TestRule12_SilentSourceIsFlaggedClosedOneIsGone(t *testing.T) {
	r := newRig(t, "w1", "w2")
	r.apply("w1", chainOf(101, 1))
	r.w["w1"].State(events.StateStale, errors.New("nothing heard"))
	m := r.match("w1", span(1, 4))
	if m.Bound.Kind != Estimate || m.Freshness.State != events.StateStale || m.Freshness.Why != "nothing heard" {
		t.Errorf("stale source answers %v, %+v", m.Bound, m.Freshness)
	}
	r.w["w1"].Close()
	if _, ok := r.find("w1", span(1, 4)); ok {
		t.Error("closed source is still credited")
	}
	r.held("w2", span(1, 4), 0)
}

func TestRule13_UnknownIsNotZero(t *testing.T) {
	x := New(Options{})
	src := events.Source{Worker: "w1", Engine: events.EngineVLLM, Model: "m"}
	w, err := x.NewWriter(src, events.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ask := func() Match {
		list, err := x.Lookup(context.Background(), span(1, 8))
		if err != nil || len(list) != 1 {
			t.Fatalf("%d answers, error %v", len(list), err)
		}
		return list[0]
	}
	if m := ask(); m.Freshness.State != events.StateUnknown || m.Bound.Kind != Lower || m.Freshness.HasSequence {
		t.Errorf("source that said nothing answers %v, %+v", m.Bound, m.Freshness)
	}
	w.Joined(7, false)
	w.State(events.StateLive, nil)
	w.Apply(7, []byte{0x92, 0x01, 0x90}, time.Unix(5, 0)) // [1, []]
	if m := ask(); m.Freshness.State != events.StateLive || m.Freshness.LastSequence != 7 || m.Bound.Kind != Lower ||
		!m.Freshness.LastEvent.Equal(time.Unix(5, 0)) {
		t.Errorf("late joiner answers %v, %+v", m.Bound, m.Freshness)
	}
	w.Joined(0, true)
	if m := ask(); m.Bound.Kind != Exact {
		t.Errorf("whole history known, still %v", m.Bound)
	}
}

func TestRule13_BoundsNameTheirReasons(t *testing.T) {
	r := newRig(t)
	w := r.open("w1", events.Source{Worker: "w1", Engine: events.EngineSGLang, Model: "m",
		Unpublished: []events.Hidden{events.HiddenWindow, events.HiddenNamespace}})
	m := r.match("w1", span(1, 4))
	got := m.Bound.Reasons()
	if m.Bound.Kind != Upper || len(got) != 2 || got[0] != "hidden_namespace" || got[1] != "hidden_window" {
		t.Errorf("bound %v, reasons %q", m.Bound, got)
	}
	w.Joined(9, false)
	if b := r.match("w1", span(1, 4)).Bound; b.Kind != Estimate {
		t.Errorf("reasons for more and for less make %v", b)
	}
}

// A writer that holds a lock of the index, however long, delays no lookup.
func TestRule16_LookupWaitsForNoWriter(t *testing.T) {
	r := newRig(t, "w1", "w2")
	r.apply("w1", chainOf(101, 3))
	done := make(chan int)
	mu := &r.w["w1"].main.x.mu
	mu.Lock()
	go func() { // ends by itself; the test waits for it below
		list, _ := r.x.Lookup(context.Background(), span(1, 12))
		best := -1
		for _, m := range list {
			best = max(best, m.Held)
		}
		done <- best
	}()
	select {
	case got := <-done:
		mu.Unlock()
		if got != 12 {
			t.Errorf("best answer %d tokens, want 12", got)
		}
	case <-time.After(10 * time.Second):
		mu.Unlock()
		<-done
		t.Fatal("lookup waited for a writer")
	}
}

func TestRule17_OrphansAreBounded(t *testing.T) {
	x := New(Options{MaxOrphanBlocks: 8})
	l, err := x.Open(events.Source{Worker: "w1", Engine: events.EngineVLLM, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	put := func(e events.Event) { l.Apply(&events.Batch{Events: []events.Event{e}}) }
	for i := range uint64(10) {
		put(dense(100+10*i, 1+i, sequence(1, 8), 4)) // two blocks each
	}
	s := l.Stats()
	if s.OrphanBlocks != 8 || s.OrphanStores != 4 || s.OrphansDropped != 6 ||
		s.Rejected[events.ReasonOrphanDropped] != 6 {
		t.Errorf("%d blocks of %d stores wait, %d dropped; want 8, 4, 6", s.OrphanBlocks, s.OrphanStores, s.OrphansDropped)
	}
	put(dense(1000, 999, sequence(1, 36), 4)) // nine blocks: more than fit at all
	if s := l.Stats(); s.OrphanBlocks != 8 || s.OrphansDropped != 7 {
		t.Errorf("after one too large: %d blocks wait, %d dropped", s.OrphanBlocks, s.OrphansDropped)
	}
	put(dense(2000, 999, make([]uint32, 2048), 2048)) // one block, with the tokens of many
	put(dense(3000, 999, make([]uint32, 2049), 2049))
	if s := l.Stats(); s.OrphansDropped < 9 || l.orphans.bytes > 8*orphanBytes {
		t.Errorf("content is not bounded: %d bytes wait, %d dropped", l.orphans.bytes, s.OrphansDropped)
	}
	if n := len(l.orphans.age); n > 2*8+64 {
		t.Errorf("%d stores are remembered, 8 blocks may wait", n)
	}
}

// Waiting stores that leave by being adopted leave no trace.
func TestRule17_AdoptedOrphansAreForgotten(t *testing.T) {
	r := newRig(t, "w1")
	for range 500 {
		r.apply("w1", store(hashes(102), 101, sequence(5, 8), 4))
		r.apply("w1", store(hashes(101), nil, sequence(1, 4), 4))
		r.held("w1", span(1, 8), 8)
		r.apply("w1", remove(101, 102))
	}
	o := &r.w["w1"].Ledger().orphans
	if len(o.age) > 64+1 || len(o.byHash)+len(o.byParent) != 0 || o.blocks != 0 || o.bytes != 0 || o.stores != 0 {
		t.Errorf("%d remembered, %d hashes, %d parents, %d blocks", len(o.age), len(o.byHash), len(o.byParent), o.blocks)
	}
}

func TestLookup_Case159_HonoursItsDeadline(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", store(hashes(seqInts(1, 5000)...), nil, sequence(1, 5000), 1))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.x.Lookup(ctx, span(1, 5000)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

func seqInts(from, to int) []int {
	var out []int
	for i := from; i <= to; i++ {
		out = append(out, i)
	}
	return out
}

// A source that is cleared between the two halves of a lookup is judged by nothing it held before: positions of groups
// change their meaning with a clear.
func TestRule01_ClearDuringALookup(t *testing.T) {
	r := newRig(t, "w1")
	l := r.w["w1"].Ledger()
	r.apply("w1", extended(chainOf(101, 1), atGroup, 0, "full_attention"))
	r.apply("w1", extended(store(hashes(101, 102, 103), nil, sequence(1, 12), 4), atGroup, 1, "sliding_window", 4))
	q := span(1, 13)
	reader := r.x.NewReader()
	reader.turn("m")
	if err := reader.collect(context.Background(), &q, false); err != nil {
		t.Fatal(err)
	}
	r.apply("w1", cleared(), // group 1 now comes first
		extended(store(hashes(201), nil, sequence(51, 54), 4), atGroup, 1, "full_attention"))
	var m Match
	reader.match(l, &m)
	reader.end()
	if m.Held != 0 || m.Reusable != 0 || m.With != [events.TierCount]int{} {
		t.Errorf("held %d, reusable %d after the clear, want nothing", m.Held, m.Reusable)
	}
}

// A caller that sends keys of a part of its prompt only gets a fact about that part, and no fact about the prompt.
func TestRule13_KeysThatEndBeforeThePrompt(t *testing.T) {
	r := newRig(t, "w1")
	r.w["w1"].Joined(0, true)
	r.apply("w1", chainOf(101, 2))
	keys := Keys(sequence(1, 8), nil, 4, false, Namespace{})
	for prompt, want := range map[int]BoundKind{0: Exact, 8: Exact, 11: Exact, 12: Lower, 100: Lower} {
		m := r.match("w1", Query{Model: "m", Keys: keys, KeySize: 4, PromptTokens: prompt})
		if m.Held != 8 || m.Bound.Kind != want {
			t.Errorf("prompt of %d tokens: held %d, bound %v %v, want %v", prompt, m.Held, m.Bound.Kind, m.Bound.Reasons(), want)
		}
	}
	other := Keys(sequence(2, 9), nil, 4, false, Namespace{})
	if m := r.match("w1", Query{Model: "m", Keys: other, KeySize: 4, PromptTokens: 100}); m.Bound.Kind != Exact {
		t.Errorf("a miss within the keys is a fact, not %v", m.Bound.Reasons())
	}
}
