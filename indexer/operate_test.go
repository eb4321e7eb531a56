package indexer

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events"
)

// Each group of a hybrid model is told apart, with what it keeps; what lies on an unknown medium ends a run.
func TestExplain_Groups(t *testing.T) {
	r := newRig(t, "w")
	q := Query{Model: "m", Tokens: sequence(1, 13)}
	full := map[string]any{"type": "BlockStored", "block_hashes": []any{1, 2, 3}, "parent_block_hash": nil, "token_ids": sequence(1, 12),
		"block_size": 4, "medium": "GPU", "group_idx": 0, "kv_cache_spec_kind": "full_attention"}
	window := map[string]any{"type": "BlockStored", "block_hashes": []any{3}, "parent_block_hash": nil, "token_ids": sequence(1, 12),
		"block_size": 4, "medium": "GPU", "group_idx": 1, "kv_cache_spec_kind": "sliding_window", "kv_cache_spec_sliding_window": 5}
	r.apply("w", window, full)
	want := []GroupHolding{
		{ID: 1, Spec: events.SpecSlidingWindow, Window: 5, BlockSize: 4, Runs: []Run{{events.TierDevice, 2, 1}}, End: EndNotHeld},
		{ID: 0, Spec: events.SpecFull, BlockSize: 4, Runs: []Run{{events.TierDevice, 0, 3}}, Leading: 3, End: EndPrompt},
	}
	list, err := r.x.Explain(context.Background(), q)
	if err != nil || len(list) != 1 || list[0].Source.Worker != "w" {
		t.Fatalf("%+v, %v", list, err)
	}
	byID := cmp.Transformer("byID", func(list []GroupHolding) map[int]GroupHolding {
		out := make(map[int]GroupHolding)
		for _, g := range list {
			out[g.ID] = g
		}
		return out
	})
	if diff := cmp.Diff(want, list[0].Groups, byID); diff != "" {
		t.Error(diff)
	}
}

func TestRule05_ExplainUnknownTier(t *testing.T) {
	r := newRig(t, "w")
	r.apply("w",
		[]any{"BlockStored", []any{1, 2}, nil, sequence(1, 8), 4, nil, "GPU"},
		[]any{"BlockStored", []any{3}, 2, sequence(9, 12), 4, nil, "TAPE"})
	list, err := r.x.Explain(context.Background(), Query{Model: "m", Tokens: sequence(1, 16)})
	if err != nil {
		t.Fatal(err)
	}
	g := list[0].Groups[0]
	if g.Leading != 2 || g.End != EndUnknownTier || len(g.Runs) != 2 || g.Runs[1] != (Run{events.TierUnknown, 2, 1}) {
		t.Errorf("%+v", g)
	}
}

// A prompt is found in the namespace that holds it, if that is of the same model and source, and as long as is asked.
func TestElsewhere(t *testing.T) {
	r := newRig(t, "w", "v")
	salted := func(salt string) []any {
		return []any{"BlockStored", []any{1, 2}, nil, sequence(1, 8), 4, nil, "GPU", nil, []any{[]any{salt}, nil}}
	}
	r.apply("w", salted("s"))
	r.apply("v", []any{"BlockStored", []any{1}, nil, sequence(1, 4), 4, nil, "GPU"})
	w, _ := r.x.Find("w", 0)
	v, _ := r.x.Find("v", 0)
	for _, tt := range []struct {
		name   string
		l      *Ledger
		ns     Namespace
		tokens int
		want   bool
	}{
		{"unsalted", w, Namespace{}, 8, true},
		{"other salt", w, Namespace{Salt: "t"}, 8, true},
		{"its own salt", w, Namespace{Salt: "s"}, 8, false},
		{"longer", w, Namespace{}, 12, false},
		{"other source", v, Namespace{}, 4, false},
		{"salted, held unsalted", v, Namespace{Salt: "s"}, 4, true},
	} {
		got, err := r.x.Elsewhere(context.Background(), tt.l, Query{Model: "m", Namespace: tt.ns, Tokens: sequence(1, 20)}, tt.tokens)
		if err != nil || got != tt.want {
			t.Errorf("%s: %v, %v", tt.name, got, err)
		}
	}
	if _, ok := r.x.Find("w", 1); ok {
		t.Error("a rank that is not there was found")
	}
}

// What is forgotten is credited no more, and answers say that history is missing until the engine clears its cache.
func TestForget(t *testing.T) {
	r := newRig(t, "w", "v")
	for _, id := range []string{"w", "v"} {
		r.apply(id, []any{"BlockStored", []any{1, 2}, nil, sequence(1, 8), 4, nil, "GPU"}, []any{"BlockStored", []any{2}, 1, sequence(5, 8), 4, nil, "CPU"})
	}
	l, _ := r.x.Find("w", 0)
	q := Query{Model: "m", Tokens: sequence(1, 12)}
	if n := l.Forget(); n != 2 {
		t.Errorf("forgot %d blocks", n)
	}
	if m := r.match("w", q); m.Held != 0 || m.Bound.Kind != Lower || m.Bound.Doubt != DoubtHistory {
		t.Errorf("%+v", m)
	}
	r.held("v", q, 8)
	r.apply("w", []any{"AllBlocksCleared"}, []any{"BlockStored", []any{1}, nil, sequence(1, 4), 4, nil, "GPU"})
	if m := r.match("w", q); m.Held != 4 || m.Bound.Doubt&DoubtHistory != 0 {
		t.Errorf("after a clear: %+v", m)
	}
}

// Only the namespace is forgotten, in all its tiers and copies; removals that come later remove nothing else.
func TestForgetNamespace(t *testing.T) {
	r := newRig(t, "w")
	store := func(first int, salt any, medium string) []any {
		return []any{"BlockStored", []any{first, first + 1}, nil, sequence(1, 8), 4, nil, medium, nil, []any{[]any{salt}, nil}}
	}
	plain := []any{"BlockStored", []any{1, 2}, nil, sequence(1, 8), 4, nil, "GPU"}
	r.apply("w", plain, store(11, "s", "GPU"), store(11, "s", "GPU"), store(11, "s", "CPU"), store(21, "t", "GPU"))
	l, _ := r.x.Find("w", 0)
	ask := func(salt string) Query {
		return Query{Model: "m", Tokens: sequence(1, 12), Namespace: Namespace{Salt: salt}}
	}
	if n := l.ForgetNamespace(Namespace{Salt: "s"}); n != 2 {
		t.Errorf("forgot %d blocks", n)
	}
	if n := l.ForgetNamespace(Namespace{Salt: "none"}); n != 0 {
		t.Errorf("forgot %d blocks of nothing", n)
	}
	r.held("w", ask(""), 8)
	r.held("w", ask("s"), 0)
	r.held("w", ask("t"), 8)
	r.books("w", l)
	r.apply("w", []any{"BlockRemoved", []any{11, 12, 11, 12}, "GPU"}, []any{"BlockRemoved", []any{22}, "GPU"})
	r.held("w", ask(""), 8)
	r.held("w", ask("t"), 4)
	if n := l.ForgetNamespace(Namespace{}); n != 2 {
		t.Errorf("forgot %d common blocks", n)
	}
	r.held("w", ask(""), 0)
	r.apply("w", plain)
	r.held("w", ask(""), 8)
}

func TestDump(t *testing.T) {
	r := newRig(t, "w")
	r.apply("w",
		[]any{"BlockStored", []any{1, 2}, nil, sequence(1, 8), 4, nil, "GPU"},
		[]any{"BlockStored", []any{2}, 1, sequence(5, 8), 4, nil, "CPU"},
		[]any{"BlockStored", []any{9}, nil, sequence(1, 8), 8, nil, "GPU", nil, []any{[]any{"s"}}})
	type block struct {
		size         int
		salt         string
		device, host bool
	}
	got := make(map[uint64]block)
	l, _ := r.x.Find("w", 0)
	for _, b := range l.Dump() {
		got[b.Hash.Lo] = block{b.In().BlockSize, b.In().Salt, b.On(events.TierDevice), b.On(events.TierHost)}
	}
	want := map[uint64]block{1: {4, "", true, false}, 2: {4, "", true, true}, 9: {8, "s", true, false}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(block{})); diff != "" {
		t.Error(diff)
	}
}
