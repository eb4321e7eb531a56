package indexer

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"

	"github.com/kvscout/kvscout/events"
)

// Export fills s with what the stream's sources hold, all as of one batch. It is false when there is nothing to go on
// from: no batch was applied since the source was opened or its engine started again, or it is closed. The stripe is
// locked only while the books are copied; they are put in order afterwards.
func (w *Writer) Export(s *Saved) bool {
	s.Source, s.Note = w.src, nil
	s.copier.reset()
	if !w.copy(s) {
		return false
	}
	for i := range s.Books {
		s.copier.order(i, &s.Books[i])
	}
	return true
}

// copy copies the books of all ranks, in no order yet, and what belongs to them.
func (w *Writer) copy(s *Saved) bool {
	w.mu.Lock() // throughout: no rank may come in between
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	ledgers := []*Ledger{w.main}
	blocks := w.main.stats.handles.Load()
	for _, l := range w.ranks {
		ledgers = append(ledgers, l)
		blocks += l.stats.handles.Load()
	}
	slices.SortFunc(ledgers[1:], func(a, b *Ledger) int { return cmp.Compare(a.src.Rank, b.src.Rank) })
	s.Books = slices.Grow(s.Books[:0], len(ledgers))[:len(ledgers)]
	s.copier.blocks = slices.Grow(s.copier.blocks, int(blocks+blocks/8)) // before the stripe is locked

	w.main.x.mu.Lock()
	defer w.main.x.mu.Unlock()
	if !w.applied {
		return false
	}
	s.Cursor, s.Partial = w.cursor, w.partial.Load()
	s.Buffered = s.Buffered[:0]
	for _, rank := range slices.Sorted(maps.Keys(w.buffered)) {
		s.Buffered = append(s.Buffered, w.buffered[rank])
	}
	s.Cursor.Lossy = events.State(w.main.fresh.state.Load()) == events.StateGap || w.restored && w.cursor.Lossy
	if w.restored {
		s.Partial = s.Partial && w.wasPartial
	}
	for i, l := range ledgers {
		s.copier.copyLocked(l, &s.Books[i])
		if d := Doubt(l.doubts.Load()); w.restored && !l.neverProven {
			s.Books[i].Doubts = Bound{Doubt: d &^ DoubtResumed}.Reasons() // the cursor is still that of the proof to come
		}
	}
	return true
}

// Export is the ledger's book.
func (l *Ledger) Export() *Book {
	var c copier
	b := new(Book)
	c.reset()
	l.x.mu.Lock()
	c.copyLocked(l, b)
	l.x.mu.Unlock()
	c.order(0, b)
	return b
}

// copier copies ledgers. Its memory is used again.
type copier struct {
	blocks []copiedBlock
	ends   []int // of each ledger's blocks
	copies map[copiedHash][]Copies
	// above are the blocks on the way to a held one that were copied already.
	above map[place]struct{}

	orderer orderer
}

// copiedBlock is a block of a ledger, or with mask 0 one that only leads to some.
type copiedBlock struct {
	place, parent place
	key           Key
	hash          events.Hash
	mask          mask
	scope         uint32 // in Book.Scopes
	root          bool   // the block is a prompt's first
}

// copiedHash names a block of a ledger.
type copiedHash struct {
	ledger int
	scope  uint32
	hash   events.Hash
}

func (c *copier) reset() {
	c.blocks, c.ends = c.blocks[:0], c.ends[:0]
	c.copies, c.above = make(map[copiedHash][]Copies), make(map[place]struct{})
}

// copyLocked copies one ledger: its small part into b, its blocks behind those of the ledger before. Needs stripe.mu.
func (c *copier) copyLocked(l *Ledger, b *Book) {
	b.BookMeta = l.metaLocked()
	b.Scopes = b.Scopes[:0]
	scopes := make(map[*scope]uint32)
	var last *scope
	var at uint32
	number := func(s *scope) uint32 {
		if s != last {
			n, ok := scopes[s]
			if !ok {
				n = uint32(len(b.Scopes))
				scopes[s] = n
				b.Scopes = append(b.Scopes, s.Scope)
			}
			last, at = s, n
		}
		return at
	}
	tree, before := l.x.tree, place(0)
	l.eachLocked(func(h events.Hash, s *scope, p place, m mask) {
		d := copiedBlock{place: p, hash: h, mask: m, scope: number(s)}
		d.parent, d.key, d.root = tree.up(p)
		c.blocks = append(c.blocks, d)
		if !d.root && d.parent != before {
			c.climb(tree, d.parent, d.scope)
		}
		before = p
	})
	l.eachCopiesLocked(func(h events.Hash, s *scope, which mask, n uint32) {
		k := copiedHash{len(c.ends), number(s), h}
		c.copies[k] = append(c.copies[k], Copies{Bit: uint8(bits.TrailingZeros64(uint64(which))), N: n})
	})
	clear(c.above)
	c.ends = append(c.ends, len(c.blocks))
}

// climb copies a block and those that it follows, held or not.
func (c *copier) climb(tree tree, p place, scope uint32) {
	for {
		if _, ok := c.above[p]; ok {
			return
		}
		c.above[p] = struct{}{}
		d := copiedBlock{place: p, scope: scope}
		d.parent, d.key, d.root = tree.up(p)
		c.blocks = append(c.blocks, d)
		if d.root {
			return
		}
		p = d.parent
	}
}

// order makes the book of the ledger at position i.
func (c *copier) order(i int, b *Book) {
	from := 0
	if i > 0 {
		from = c.ends[i-1]
	}
	c.orderer.order(c.blocks[from:c.ends[i]], b)
	b.Copies = b.Copies[:0]
	if len(c.copies) > 0 {
		c.number(i, b)
	}
}

// number finds the positions of counted blocks.
func (c *copier) number(ledger int, b *Book) {
	at := 0
	scope := b.scopes()
	for _, r := range b.Held {
		for i := range r.Blocks {
			for _, n := range c.copies[copiedHash{ledger, scope(r.First + i), b.Hashes[at]}] {
				n.Hash = at
				b.Copies = append(b.Copies, n)
			}
			at++
		}
	}
}

// metaLocked is the small part of the ledger's book.
func (l *Ledger) metaLocked() BookMeta {
	c := &l.stats
	m := BookMeta{
		Rank: l.src.Rank, Sequence: l.fresh.sequence.Load(), Heard: l.fresh.heard.Load(),
		Doubts:   Bound{Doubt: Doubt(l.doubts.Load())}.Reasons(),
		Offloads: l.offloads, Outlived: l.outlived, Waiting: l.orphans.stores,
		Counters: BookCounters{
			Batches: c.batches.Load(), ReuseReports: c.reports.Load(), Replayed: c.replayed.Load(), Bytes: c.bytes.Load(),
			Connections: c.connections.Load(), Gaps: c.gaps.Load(), Resets: c.resets.Load(), Lost: c.lost.Load(),
			OrphansDropped: c.orphansDropped.Load(), Rejected: make(map[string]uint64),
			Evicted: c.evicted.Load(),
		},
	}
	for i := range c.kinds {
		m.Counters.Events = append(m.Counters.Events, c.kinds[i].Load())
	}
	for i := range c.rejected {
		if n := c.rejected[i].Load(); n > 0 {
			m.Counters.Rejected[events.Reason(i).String()] = n
		}
	}
	for _, g := range l.table.Load().groups {
		m.Groups = append(m.Groups, BookGroup{ID: g.id, Spec: g.spec, Window: g.window, Sizes: slices.Clone(g.sizes)})
	}
	return m
}

// eachCopiesLocked calls do for every block and place that has more than one copy. do must not change the book.
func (l *Ledger) eachCopiesLocked(do func(h events.Hash, s *scope, which mask, n uint32)) {
	for h, b := range l.blocks {
		for ; b != nil; b = b.next {
			for _, c := range b.copies {
				if c.n > 1 {
					do(h, b.scope, c.bit, c.n)
				}
			}
		}
	}
	if len(l.more) == 0 {
		return
	}
	l.eachLocked(func(h events.Hash, s *scope, p place, m mask) {
		if n := l.copiesLocked(p); n > 0 && l.odd[p] == 0 {
			do(h, s, m&-m, n+1)
		}
	})
}
