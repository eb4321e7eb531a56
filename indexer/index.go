package indexer

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v4"

	"github.com/kvscout/kvscout/events"
)

// ErrSourceExists is a second source with the id of one that is open.
var ErrSourceExists = errors.New("source exists")

// Options configures an Index. The zero value works.
type Options struct {
	// MaxOrphanBlocks bounds, per source, the blocks of stores that wait for an unknown parent; 0 is 65,536.
	MaxOrphanBlocks int
	// KeepOnGap keeps what a source held when batches are lost for good, and flags its answers as upper bounds; false
	// drops it (rule 11).
	KeepOnGap bool
	// MaxBytes bounds Stats.Bytes, about: above it the prompts that were stored longest ago are forgotten, and whoever held
	// them is answered for with lower bounds until its next clear (DoubtCapped). 0: no bound. The plain structure has none.
	MaxBytes int
	// Plain makes the index keep its blocks in the plain reference structure, to compare answers with.
	Plain bool
}

const defaultMaxOrphanBlocks = 65536

// Index knows which source holds which prefix. All methods may be called concurrently; lookups wait for no writer.
type Index struct {
	opts    Options
	stripes [stripeCount]atomic.Pointer[stripe] // by stripeNumber; each made at the first Open of a model of it
	sources *xsync.Map[slot, *Ledger]
	// models lists the sources of a model; the lists are replaced, never changed.
	models  *xsync.Map[string, []*Ledger]
	readers sync.Pool // of *Reader

	mu sync.Mutex // guards ids, lastSlot, and changes of stripes, sources and models; taken after a stripe's
	// ids finds an open source by its id.
	ids      map[string]*Ledger
	lastSlot slot
}

// New returns an empty index.
func New(opts Options) *Index {
	if opts.MaxOrphanBlocks <= 0 {
		opts.MaxOrphanBlocks = defaultMaxOrphanBlocks
	}
	x := &Index{
		opts:    opts,
		sources: xsync.NewMap[slot, *Ledger](),
		models:  xsync.NewMap[string, []*Ledger](),
		ids:     make(map[string]*Ledger),
	}
	x.readers.New = func() any { return x.NewReader() }
	return x
}

// MaxBytes is Options.MaxBytes.
func (x *Index) MaxBytes() int { return x.opts.MaxBytes }

// Version grows with every change of what anyone holds.
func (x *Index) Version() (sum uint64) {
	x.each(func(s *stripe) { sum += s.version.Load() })
	return sum
}

// Open adds a source that holds nothing yet. It errs with ErrSourceExists.
func (x *Index) Open(src events.Source) (*Ledger, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, ok := x.ids[src.ID()]; ok {
		return nil, fmt.Errorf("%w: %s", ErrSourceExists, src.ID())
	}
	x.lastSlot++
	l := newLedger(x.stripeLocked(src.Model), src, x.lastSlot)
	x.ids[src.ID()] = l
	x.sources.Store(l.slot, l)
	have, _ := x.models.Load(src.Model)
	x.models.Store(src.Model, append(have, l)) // readers see no more of the array than they loaded
	return l, nil
}

// remove forgets a source that holds nothing.
func (x *Index) remove(l *Ledger) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.ids, l.src.ID())
	x.sources.Delete(l.slot)
	have, _ := x.models.Load(l.src.Model)
	if rest := slices.DeleteFunc(slices.Clone(have), func(o *Ledger) bool { return o == l }); len(rest) > 0 {
		x.models.Store(l.src.Model, rest)
	} else {
		x.models.Delete(l.src.Model)
	}
}

// Close takes the source and everything it holds out of the index. Calls after the first do nothing, and so does
// anything else that is still done to the ledger: events that were under way when a source left never bring it back.
func (l *Ledger) Close() {
	l.x.mu.Lock()
	defer l.x.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	l.clearLocked()
	l.x.index.remove(l)
	l.x.tree.close(l)
	l.x.version.Add(1)
}
