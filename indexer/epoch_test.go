package indexer

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events"
)

// Chains that are gone keep their ids and memory while a reader is inside, and give them back when it has left.
func TestRule16_ReuseWaitsForReaders(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", chainOf(101, 8))
	tree := r.x.chainsOf("m")
	reader := r.x.NewReader()
	q := span(1, 33)
	reader.turn("m")
	if err := reader.collect(context.Background(), &q, false); err != nil {
		t.Fatal(err)
	}
	id := reader.path[0].chain
	r.w["w1"].Reset()
	tree.reclaim()
	if tree.waiting.Load() == 0 {
		t.Error("nothing waits for a reader that is inside")
	}
	for range 100 { // churn beside it
		r.apply("w1", chainOf(501, 8))
		r.apply("w1", remove(501, 502, 503, 504, 505, 506, 507, 508))
	}
	if !tree.slabs.note(id).gone || !slices.ContainsFunc(tree.limbo, func(r retired) bool { return r.kind == retiredChain && r.id == id }) {
		t.Error("the reader's chain does not wait for it")
	}
	if keys := tree.keysOf(tree.slabs.at(id)); len(keys) != 8 || keys[0] != Keys(q.Tokens, nil, 4, false, Namespace{})[0] {
		t.Error("the reader's chain reads otherwise than before")
	}
	reader.end()
	tree.reclaim()
	if n := tree.waiting.Load(); n != 0 {
		t.Errorf("%d bytes wait for nobody", n)
	}
}

// A reader that is dropped without a word leaves no trace among the epochs of the stripes that it was in.
func TestRule17_DroppedReadersGo(t *testing.T) {
	x := New(Options{})
	list := openModels(t, x, 3)
	for i := range 100 {
		r := x.NewReader()
		for j := range 1 + i%len(list) {
			if _, err := r.Lookup(context.Background(), &Query{Model: list[j].src.Model}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, l := range list {
		slots := &l.x.chains.epochs.slots
		for end := time.Now().Add(10 * time.Second); len(*slots.Load()) > 0; runtime.Gosched() {
			if runtime.GC(); time.Now().After(end) {
				t.Fatalf("%s: %d readers are still known", l.src.Model, len(*slots.Load()))
			}
		}
	}
	runtime.KeepAlive(x)
}

// A chain whose end was cut off is not appended to while a reader may still see the longer form (invariant 1 of chains).
func TestRule01_CutEndsAreSealed(t *testing.T) {
	r := newRig(t, "w1")
	l := r.w["w1"].Ledger()
	tokens := sequence(1, 100)
	e := dense(1, 0, tokens, 1)
	for i := range tokens {
		if i > 0 {
			e.Hashes = append(e.Hashes, events.HashInt(uint64(i)+1))
		}
	}
	e.Hashes = e.Hashes[:len(tokens)]
	l.Apply(&events.Batch{Events: []events.Event{e}})
	reader := r.x.NewReader()
	q := prompt(tokens...)
	reader.turn("m")
	if err := reader.collect(context.Background(), &q, false); err != nil {
		t.Fatal(err)
	}
	tree := r.x.chainsOf("m")
	id := reader.path[0].chain
	keys := tree.keysOf(tree.slabs.at(id))
	before := keys[20]
	l.Apply(&events.Batch{Events: []events.Event{{Kind: events.Removed, Hashes: e.Hashes[20:]}}})
	if n := tree.slabs.at(id).length(); n != 20 {
		t.Fatalf("the chain has %d keys, want 20", n)
	}
	other := sequence(1001, 1030)
	more := dense(5001, 20, other, 1)
	more.Hashes = nil
	for i := range other {
		more.Hashes = append(more.Hashes, events.HashInt(uint64(5001+i)))
	}
	l.Apply(&events.Batch{Events: []events.Event{more}})
	if tree.slabs.at(id).length() != 20 || keys[20] != before {
		t.Error("the chain was appended to under a reader")
	}
	r.held("w1", prompt(append(tokens[:20:20], other...)...), 50)
	reader.end()
}
