package accuracy

import (
	"sync"
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v4"

	"github.com/kvscout/kvscout/indexer"
)

// Key names a source.
type Key struct {
	Worker string
	Rank   int
}

// Book keeps a tally for each source. Its size follows the sources that outcomes were reported of.
type Book struct {
	reports *xsync.Map[Key, entry]
	flagged atomic.Int64 // sources that are flagged, some perhaps that have left

	mu sync.Mutex // guards tallies and what their entries hold
	// tallies by source.
	tallies map[Key]*tally
}

// entry is what readers see of a source.
type entry struct {
	ledger *indexer.Ledger
	report Report
}

type tally struct {
	Tally
	ledger  *indexer.Ledger
	flagged bool // counted in Book.flagged
}

func step(up bool) int64 {
	if up {
		return 1
	}
	return -1
}

// NewBook returns a book without outcomes.
func NewBook() *Book {
	return &Book{reports: xsync.NewMap[Key, entry](), tallies: make(map[Key]*tally)}
}

// Add takes in an outcome of an open source, and returns what is now known of it.
func (b *Book) Add(l *indexer.Ledger, o Outcome) Report {
	key := Key{l.Source().Worker, l.Source().Rank}
	b.mu.Lock()
	defer b.mu.Unlock()
	t, ok := b.tallies[key]
	if !ok || t.ledger != l {
		b.sweepLocked()
		t = &tally{ledger: l}
		b.tallies[key] = t
	}
	t.Add(o)
	r := t.Report()
	if r.Flagged != t.flagged {
		t.flagged = r.Flagged
		b.flagged.Add(step(r.Flagged))
	}
	b.reports.Store(key, entry{l, r})
	return r
}

// sweepLocked forgets sources that have left. Needs b.mu.
func (b *Book) sweepLocked() {
	for key, t := range b.tallies {
		if !t.ledger.Open() {
			if t.flagged {
				b.flagged.Add(step(false))
			}
			delete(b.tallies, key)
			b.reports.Delete(key)
		}
	}
}

// AnyFlagged says whether any source may be flagged, at the cost of one load.
func (b *Book) AnyFlagged() bool { return b.flagged.Load() > 0 }

// Report is what is known of a source; false without an outcome since it was registered.
func (b *Book) Report(worker string, rank int) (Report, bool) {
	e, ok := b.reports.Load(Key{worker, rank})
	if !ok || !e.ledger.Open() {
		return Report{}, false
	}
	return e.report, true
}
