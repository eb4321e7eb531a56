package indexer

import (
	"context"
	"fmt"

	"github.com/kvscout/kvscout/events"
)

// Find is the open ledger of a rank of a worker; false if there is none. It waits for no writer.
func (x *Index) Find(worker string, rank int) (*Ledger, bool) {
	id := events.Source{Worker: worker, Rank: rank}.ID()
	x.mu.Lock()
	defer x.mu.Unlock()
	l, ok := x.ids[id]
	return l, ok
}

// Open says whether the source is still part of the index. It waits for nobody.
func (l *Ledger) Open() bool { return l.x.index.Source(l.Number()) != nil }

// Resets counts the restarts of the engine so far. It waits for nobody.
func (l *Ledger) Resets() uint64 { return l.stats.resets.Load() }

// Rejected counts what was not applied for this reason. It waits for nobody.
func (l *Ledger) Rejected(r events.Reason) uint64 { return l.stats.rejected[r].Load() }

// Uniform says whether the source has one block size and no KV-cache group but one that keeps every block, so that how
// much of a prompt it will reuse once it has run it can be told beforehand. size is 0 while no size is known.
func (l *Ledger) Uniform() (size int, ok bool) {
	t := l.table.Load()
	sizes := l.blockSizes()
	switch {
	case l.src.Hides(events.HiddenWindow) || l.src.Hides(events.HiddenState),
		len(t.groups) > 1, len(t.groups) == 1 && !t.groups[0].spec.Dense(), len(sizes) > 1:
		return 0, false
	case len(sizes) == 0:
		return 0, true
	default:
		return sizes[0], true
	}
}

// maxElsewhere bounds the namespaces that Elsewhere asks.
const maxElsewhere = 64

// Elsewhere says whether a source holds at least so many leading tokens of the prompt, on any credited tier, in another
// namespace of the model than the query's: the sign of a salt or adapter that the request does not name rightly. At most
// 64 namespaces are asked. It errs with the context's error.
func (x *Index) Elsewhere(ctx context.Context, l *Ledger, q Query, tokens int) (bool, error) {
	s := x.stripeOf(q.Model)
	if s == nil {
		return false, nil
	}
	var others []Namespace
	s.families.Range(func(f family, _ []*scope) bool {
		if f.model == q.Model && (f.Salt != q.Salt || f.Adapter != q.Adapter) {
			others = append(others, f.Namespace)
		}
		return len(others) < maxElsewhere
	})
	for _, ns := range others {
		q.Namespace = ns
		list, err := x.Lookup(ctx, q)
		if err != nil {
			return false, fmt.Errorf("look elsewhere: %w", err)
		}
		if ReachOf(list, l.src.Worker, l.src.Rank) >= tokens {
			return true, nil
		}
	}
	return false, nil
}

// Reach is how many leading tokens all credited tiers cover together.
func (m *Match) Reach() int {
	n := 0
	for _, tokens := range m.Covered {
		n += tokens
	}
	return n
}

// ReachOf is the Reach of a rank of a worker among matches, 0 if it is not there.
func ReachOf(list []Match, worker string, rank int) int {
	for i := range list {
		if list[i].Source.Worker == worker && list[i].Source.Rank == rank {
			return list[i].Reach()
		}
	}
	return 0
}
