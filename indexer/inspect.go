package indexer

import (
	"cmp"
	"context"
	"slices"

	"github.com/kvscout/kvscout/events"
)

// Run is a run of consecutive blocks of a prompt on one tier, the fastest that has them.
type Run struct {
	Tier events.Tier
	// First block, counted from the prompt's first, and number of blocks.
	First, Blocks int
}

// Holding is what one source holds of a prompt from its first block on, without a hole.
type Holding struct {
	Match
	Runs []Run
}

// Holdings lists the sources of the model that hold at least the first block, in no stated order. It errs with the
// context's error.
func (x *Index) Holdings(ctx context.Context, q Query) ([]Holding, error) {
	var out []Holding
	err := x.eachRows(ctx, &q, func(l *Ledger, m *Match, t *table, rows []*row) {
		h := Holding{Match: *m}
		h.Source, h.Bound = l.src, l.bound(&q, t, m.Bound.Doubt)
		l.matchRows(&h.Match, &q, rows, t)
		// Where a source uses several block sizes its longest run speaks for it.
		best := 0
		for _, r := range rows {
			runs, blocks := t.runs(r)
			if blocks*r.size > best {
				best = blocks * r.size
				h.Runs, h.BlockSize = runs, r.size
			}
		}
		if best > 0 {
			out = append(out, h)
		}
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// eachRows calls do for every source of the model that holds a block of the prompt, with what Ledger.precede found. It errs
// with the context's error.
func (x *Index) eachRows(ctx context.Context, q *Query, do func(l *Ledger, m *Match, t *table, rows []*row)) error {
	r := x.readers.Get().(*Reader)
	defer x.readers.Put(r)
	defer r.end()
	if !r.turn(q.Model) {
		return nil
	}
	list, _ := x.models.Load(q.Model)
	began := make([]Match, len(list))
	for i, l := range list {
		l.precede(&began[i])
	}
	if err := r.collect(ctx, q, false); err != nil {
		return err
	}
	for i, l := range list {
		if err := r.late(); err != nil {
			return err
		}
		t := l.table.Load()
		if rows := r.rowsOf(l, t); len(rows) > 0 {
			do(l, &began[i], t, rows)
		}
	}
	return nil
}

func (g groups) runs(r *row) (runs []Run, blocks int) {
	for ; blocks < len(r.masks); blocks++ {
		tier, ok := g.fastest(r, blocks)
		if !ok {
			break
		}
		if n := len(runs); n > 0 && runs[n-1].Tier == tier {
			runs[n-1].Blocks++
		} else {
			runs = append(runs, Run{Tier: tier, First: blocks, Blocks: 1})
		}
	}
	return runs, blocks
}

// fastest is the fastest tier from which every dense group can take the block, counting faster tiers in.
func (g groups) fastest(r *row, block int) (events.Tier, bool) {
	for t := range events.TierCount {
		tiers := tierSet(1)<<(t+1) - 1
		all, any := true, false
		for i := range g {
			if g[i].spec.Dense() && slices.Contains(g[i].sizes, r.size) {
				any = true
				all = all && r.at(block).in(i, tiers)
			}
		}
		if any && all {
			return events.Tier(t), true
		}
	}
	return 0, false
}

// ScopeStats counts what one source holds in one scope.
type ScopeStats struct {
	Model, Adapter string
	BlockSize      int
	// Salted says that the scope has a cache salt, which is a secret.
	Salted bool
	// Blocks held, each counted once however many tiers have it.
	Blocks int
}

// Scopes lists the scopes in which the source holds blocks, the fullest first.
func (l *Ledger) Scopes() []ScopeStats {
	count := make(map[*scope]int)
	l.x.mu.Lock()
	l.eachLocked(func(_ events.Hash, s *scope, _ place, m mask) {
		if m != 0 {
			count[s]++
		}
	})
	l.x.mu.Unlock()
	out := make([]ScopeStats, 0, len(count))
	for s, n := range count {
		out = append(out, ScopeStats{Model: s.Model, Adapter: s.Adapter, BlockSize: s.BlockSize, Salted: s.Salt != "", Blocks: n})
	}
	slices.SortFunc(out, func(a, b ScopeStats) int {
		return cmp.Or(cmp.Compare(b.Blocks, a.Blocks), cmp.Compare(a.Adapter, b.Adapter), cmp.Compare(a.BlockSize, b.BlockSize))
	})
	return out
}

// Ledgers lists the open sources by worker and rank.
func (x *Index) Ledgers() []*Ledger {
	var out []*Ledger
	x.sources.Range(func(_ slot, l *Ledger) bool {
		out = append(out, l)
		return true
	})
	slices.SortFunc(out, func(a, b *Ledger) int {
		return cmp.Or(cmp.Compare(a.src.Worker, b.src.Worker), cmp.Compare(a.src.Rank, b.src.Rank))
	})
	return out
}

// AdapterModel finds the model under which blocks of an adapter are held; false when none are, or under several.
func (x *Index) AdapterModel(adapter string) (model string, ok bool) {
	several := false
	x.each(func(s *stripe) {
		models, _ := s.adapters.Load(adapter)
		for _, m := range models {
			several = several || ok && m != model
			model, ok = m, true
		}
	})
	if several {
		return "", false
	}
	return model, ok
}

// HoldsAdapter says whether blocks of the adapter are held under the model.
func (x *Index) HoldsAdapter(model, adapter string) bool {
	s := x.stripeOf(model)
	if s == nil {
		return false
	}
	models, _ := s.adapters.Load(adapter)
	return slices.Contains(models, model)
}

// HistoryComplete says whether every block that the engine holds was announced to us.
func (l *Ledger) HistoryComplete() bool { return Doubt(l.doubts.Load())&DoubtHistory == 0 }

// BlockSizes are those that the stream announced, ascending, in tokens; the configured one before it announced any.
func (l *Ledger) BlockSizes() []int { return l.blockSizes() }
