package indexer_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

// size is the block size of all prompts here, in tokens.
const size = 16

// site is an index that is used as its users do, from outside.
type site struct {
	t testing.TB
	x *indexer.Index
	l []*indexer.Ledger
}

// newSite opens so many sources, each joined at its start.
func newSite(t testing.TB, sources int) *site {
	t.Helper()
	s := &site{t: t, x: indexer.New(indexer.Options{})}
	for i := range sources {
		l, err := s.x.Open(events.Source{Worker: fmt.Sprintf("w%d", i), Engine: events.EngineVLLM, Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		l.Joined(true)
		s.l = append(s.l, l)
	}
	return s
}

// text is n blocks of prompt id.
func text(id, n int) []uint32 {
	out := make([]uint32, n*size)
	for i := range out {
		out[i] = uint32(id*7919+i*31) % 150_000
	}
	return out
}

// name is the hash of block i of prompt id.
func name(id, i int) events.Hash { return events.HashInt(uint64(id)<<32 | uint64(i) + 1) }

// stored announces blocks from..to-1 of prompt id.
func stored(id, from, to int) events.Event {
	e := events.Event{Kind: events.Stored, BlockSize: size, Tokens: text(id, to)[from*size:]}
	for i := from; i < to; i++ {
		e.Hashes = append(e.Hashes, name(id, i))
	}
	if from > 0 {
		e.Parent, e.HasParent = name(id, from-1), true
	}
	return e
}

// removed announces that blocks from..to-1 of prompt id are gone.
func removed(id, from, to int) events.Event {
	e := events.Event{Kind: events.Removed}
	for i := from; i < to; i++ {
		e.Hashes = append(e.Hashes, name(id, i))
	}
	return e
}

// apply applies events as one batch.
func (s *site) apply(source int, list ...events.Event) {
	s.l[source].Apply(&events.Batch{Events: list})
}

// holder is the worker of a holder, and what it holds.
func holder(x *indexer.Index, h indexer.Holder) (worker string, held int) {
	return x.Source(h.Source).Source().Worker, int(h.Held)
}

// want checks what sources hold of the first n blocks of prompt id, in blocks: 0 for one that is not named.
func (s *site) want(id, n int, held map[int]int) {
	s.t.Helper()
	q := indexer.Query{Model: "m", Tokens: text(id, n)}
	list, err := s.x.Lookup(context.Background(), q)
	if err != nil || len(list) != len(s.l) {
		s.t.Fatalf("%d answers for %d sources, %v", len(list), len(s.l), err)
	}
	got := make(map[string]int)
	for _, m := range list {
		got[m.Source.Worker] = m.Held / size
		if m.Bound.Kind != indexer.Exact {
			s.t.Errorf("%s is not exact: %v", m.Source.Worker, m.Bound.Reasons())
		}
	}
	holders, err := s.x.NewReader().Holders(context.Background(), &q)
	if err != nil {
		s.t.Fatal(err)
	}
	found := make(map[string]int)
	for i := range holders {
		worker, held := holder(s.x, holders[i])
		found[worker] = held / size
	}
	for i := range s.l {
		worker := fmt.Sprintf("w%d", i)
		if got[worker] != held[i] || found[worker] != held[i] {
			s.t.Errorf("%s holds %d blocks, as a holder %d, want %d", worker, got[worker], found[worker], held[i])
		}
	}
}
