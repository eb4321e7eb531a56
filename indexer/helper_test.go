package indexer

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/kvscout/kvscout/events"
)

// rig is an index with sources that are fed the bytes an engine would send. When its test ends it checks the books of
// every source, closes them all and checks that the index is empty.
type rig struct {
	t   *testing.T
	x   *Index
	w   map[string]*Writer
	seq map[string]uint64
}

// newRig opens vLLM sources of model "m" by id, each joined at its start.
func newRig(t *testing.T, ids ...string) *rig {
	t.Helper()
	r := &rig{t: t, x: New(Options{}), w: make(map[string]*Writer), seq: make(map[string]uint64)}
	for _, id := range ids {
		worker, rank, err := events.ParseID(id)
		if err != nil {
			t.Fatal(err)
		}
		r.open(id, events.Source{Worker: worker, Rank: rank, Engine: events.EngineVLLM, Model: "m"})
	}
	t.Cleanup(r.finish)
	return r
}

func (r *rig) open(id string, src events.Source) *Writer {
	r.t.Helper()
	w, err := r.x.NewWriter(src, events.Limits{})
	if err != nil {
		r.t.Fatal(err)
	}
	w.Joined(0, true)
	r.w[id] = w
	return w
}

func (r *rig) finish() {
	for id, w := range r.w {
		r.books(id, w.main)
		for rank, l := range w.ranks {
			r.books(fmt.Sprintf("%s, rank %d", id, rank), l)
		}
	}
	if err := r.x.sound(); err != nil {
		r.t.Error(err)
	}
	for _, w := range r.w {
		w.Close()
	}
	if err := r.x.empty(); err != nil {
		r.t.Error(err)
	}
	s := r.x.Stats()
	if s.Sources != 0 || s.Scopes != 0 || s.Blocks != 0 || s.HolderBlocks != 0 {
		r.t.Errorf("closed index holds something: %+v", s)
	}
}

// books checks a ledger's counters against what they count (case 74).
func (r *rig) books(name string, l *Ledger) {
	r.t.Helper()
	handles, resident := 0, [events.TierCount]int{}
	for h, b := range l.blocks {
		for ; b != nil; b = b.next {
			var held mask
			for _, c := range b.copies {
				held |= c.bit
			}
			if b.gone || held == 0 || held != b.mask || b.hash != h {
				r.t.Errorf("%s: block %v is wrong: %+v", name, h, b)
			}
		}
	}
	l.eachLocked(func(_ events.Hash, _ *scope, _ place, m mask) {
		handles++
		for d := m; d != 0; d &= d - 1 {
			resident[tierOf(d&-d)]++
		}
	})
	s := l.Stats()
	if s.Handles != handles || s.Resident != resident {
		r.t.Errorf("%s: counted %d handles, %v blocks; there are %d, %v", name, s.Handles, s.Resident, handles, resident)
	}
}

// apply sends one batch: an array of the time, the events and, when the batch names one, the rank.
func (r *rig) apply(id string, list ...any) { r.t.Helper(); r.batch(id, []any{1.5, list}) }

func (r *rig) batch(id string, batch any) {
	r.t.Helper()
	payload, err := msgpack.Marshal(batch)
	if err != nil {
		r.t.Fatal(err)
	}
	r.w[id].Apply(r.seq[id], payload, time.Unix(1, 0))
	r.seq[id]++
}

// match is what one source answers; it fails when the source is not among the answers.
func (r *rig) match(id string, q Query) Match {
	r.t.Helper()
	m, ok := r.find(id, q)
	if !ok {
		r.t.Fatalf("%s is not among the answers", id)
	}
	return m
}

func (r *rig) find(id string, q Query) (Match, bool) {
	r.t.Helper()
	list, err := r.x.Lookup(context.Background(), q)
	if err != nil {
		r.t.Fatal(err)
	}
	worker, rank, _ := events.ParseID(id)
	for _, m := range list {
		if m.Source.Worker == worker && m.Source.Rank == rank {
			return m, true
		}
	}
	return Match{}, false
}

// held checks how many leading tokens a source holds on the device.
func (r *rig) held(id string, q Query, want int) {
	r.t.Helper()
	if got := r.match(id, q).Held; got != want {
		r.t.Errorf("%s holds %d tokens, want %d", id, got, want)
	}
}

// rejected checks one counter of a source.
func (r *rig) rejected(id string, reason events.Reason, want uint64) {
	r.t.Helper()
	if got := r.w[id].Ledger().Stats().Rejected[reason]; got != want {
		r.t.Errorf("%s: %s = %d, want %d", id, reason, got, want)
	}
}

func (r *rig) orphans(id string, stores int) {
	r.t.Helper()
	if got := r.w[id].Ledger().Stats().OrphanStores; got != stores {
		r.t.Errorf("%s: %d stores wait for a parent, want %d", id, got, stores)
	}
}

func prompt(tokens ...uint32) Query { return Query{Model: "m", Tokens: tokens} }

// span is the prompt from..to, both included.
func span(from, to int) Query { return prompt(sequence(from, to)...) }

func (q Query) salted(salt string) Query    { q.Salt = salt; return q }
func (q Query) adapted(name string) Query   { q.Adapter = name; return q }
func (q Query) pictured(f ...Feature) Query { q.Features = f; return q }

func hashes(list ...int) []any {
	out := make([]any, len(list))
	for i, h := range list {
		out[i] = h
	}
	return out
}

// store is a BlockStored of the array form. rest are the elements from the sixth on: adapter id, medium, adapter name,
// extra keys, group, kind, window.
func store(hashes []any, parent any, tokens []uint32, size int, rest ...any) []any {
	if tokens == nil {
		tokens = []uint32{}
	}
	return append([]any{"BlockStored", hashes, parent, tokens, size}, rest...)
}

func remove(list ...int) []any { return []any{"BlockRemoved", hashes(list...)} }

func removeFrom(medium string, list ...int) []any { return append(remove(list...), medium) }

func cleared() []any { return []any{"AllBlocksCleared"} }

// chainOf is a store of consecutive hashes from first on that cover tokens from 1 on, in blocks of 4.
func chainOf(first, blocks int) []any {
	var list []any
	for i := range blocks {
		list = append(list, first+i)
	}
	return store(list, nil, sequence(1, 4*blocks), 4)
}

// extended is e with more elements, nils before them up to position at.
func extended(e []any, at int, more ...any) []any {
	e = slices.Clone(e)
	for len(e) < at {
		e = append(e, nil)
	}
	return append(e, more...)
}

// Positions in the array form of BlockStored.
const (
	atMedium = 6
	atExtras = 8
	atGroup  = 9
)
