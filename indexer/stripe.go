package indexer

import (
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
	"github.com/puzpuzpuz/xsync/v4"
)

// stripe is the part of an index in which some models lie: their scopes, the tree of those, and the books of their
// sources. Nothing ever matches across models (rule 3), so writers of different stripes share nothing that changes with a
// batch, and a lookup, which names one model, reads one stripe.
type stripe struct {
	index    *Index
	number   int // in index.stripes
	opts     Options
	tree     tree
	chains   *chains // tree, unless that is the plain one
	families *xsync.Map[family, []*scope]
	// adapters finds the models under which blocks of an adapter are held, each as often as scopes hold some.
	adapters *xsync.Map[string, []string]
	clears   atomic.Uint64 // of all its sources so far
	scopes   atomic.Uint64 // scopes made and dropped so far
	books    atomic.Int64  // bytes of its sources' books

	_       [64]byte      // what follows changes with every batch, and lookups want the lines above
	version atomic.Uint64 // the stripe's share of Index.Version

	mu    sync.Mutex // guards quick, what tree and scope call "writers only", and the book of every Ledger of the stripe
	quick quickStore // scratch
}

// stripeCount is how many stripes an index has at most. More than processors, so that two models rarely meet in one; few
// enough that what a stripe takes before it holds anything (some 20 KB) does not matter.
const stripeCount = 16

func newStripe(x *Index, number int) *stripe {
	s := &stripe{
		index:    x,
		number:   number,
		opts:     x.opts,
		families: xsync.NewMap[family, []*scope](),
		adapters: xsync.NewMap[string, []string](),
	}
	if s.opts.Plain {
		s.tree = newTrie()
		return s
	}
	s.chains = newChains()
	s.tree = s.chains
	return s
}

// ledgers calls do for the open sources of the stripe.
func (x *stripe) ledgers(do func(*Ledger)) {
	x.index.sources.Range(func(_ slot, l *Ledger) bool {
		if l.x == x {
			do(l)
		}
		return true
	})
}

// stripeNumber is where a model lies. It depends on its name only, so a source that comes back finds its model's scopes.
func stripeNumber(model string) int { return int(xxhash.Sum64String(model) % stripeCount) }

// stripeOf is the stripe of a model, nil while no source of any model in it was ever opened.
func (x *Index) stripeOf(model string) *stripe { return x.stripes[stripeNumber(model)].Load() }

// stripeLocked is the stripe of a model, made if new. Needs Index.mu.
func (x *Index) stripeLocked(model string) *stripe {
	n := stripeNumber(model)
	s := x.stripes[n].Load()
	if s == nil {
		s = newStripe(x, n)
		x.stripes[n].Store(s)
	}
	return s
}

// each calls do for the stripes that were made.
func (x *Index) each(do func(*stripe)) {
	for i := range x.stripes {
		if s := x.stripes[i].Load(); s != nil {
			do(s)
		}
	}
}
