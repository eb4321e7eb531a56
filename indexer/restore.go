package indexer

import (
	"errors"
	"fmt"
	"math/bits"
	"reflect"
	"time"

	"github.com/kvscout/kvscout/events"
)

// ErrOtherSource is a saved stream that is not the writer's: its source was described otherwise.
var ErrOtherSource = errors.New("saved of another source")

// Restore takes over what another process saved of the stream. The writer must be new. Answers of its sources are flagged
// (DoubtResumed) until Proven or until the engine clears its cache, and the sources are stale if within passes and
// nothing was heard of them. It errs with ErrOtherSource or ErrBook, and then the writer is as it was.
func (w *Writer) Restore(s *Saved, within time.Duration) error {
	if !reflect.DeepEqual(s.Source, w.src) {
		return fmt.Errorf("%w: %s", ErrOtherSource, w.src.ID())
	}
	if len(s.Books) == 0 || s.Books[0].Rank != w.src.Rank {
		return fmt.Errorf("%w: none of rank %d", ErrBook, w.src.Rank)
	}
	if w.main.stats.handles.Load() > 0 {
		return fmt.Errorf("%w: the writer is in use", ErrBook)
	}
	until := time.Now().Add(within).UnixNano()
	for i := range s.Books {
		if err := w.restore(&s.Books[i], until); err != nil {
			w.forget()
			return fmt.Errorf("%s, rank %d: %w", w.src.Worker, s.Books[i].Rank, err)
		}
	}
	if err := w.resumeBuffered(s); err != nil {
		w.forget()
		return fmt.Errorf("%s: %w", w.src.ID(), err)
	}
	w.partial.Store(true)
	w.main.x.mu.Lock()
	w.cursor, w.applied, w.restored, w.wasPartial = s.Cursor, true, true, s.Partial
	w.main.x.mu.Unlock()
	w.unproven.Store(true)
	return nil
}

// resumeBuffered makes the decoder read buffered events to come as the one would that is saved, of checked books. It errs
// with ErrBook.
func (w *Writer) resumeBuffered(s *Saved) error {
	if len(s.Buffered) == 0 {
		return nil
	}
	decoder, buffered := events.NewSourceDecoder(w.src, w.limits), make(map[int]events.BufferedRank)
	for _, r := range s.Buffered {
		if err := decoder.ResumeBuffered(r); err != nil {
			return fmt.Errorf("%w: %w", ErrBook, err)
		}
		buffered[r.Rank] = r
	}
	for i := range s.Books {
		rank := s.Books[i].Rank
		if _, ok := buffered[rank]; !ok && i == 0 {
			rank = 0 // its events name none
		}
		s.Books[i].eachAway(func(group int, h events.Hash, t events.Tier) { decoder.Lies(rank, group, h, t) })
	}
	w.main.x.mu.Lock()
	defer w.main.x.mu.Unlock()
	w.decoder, w.buffered = decoder, buffered
	return nil
}

// eachAway calls do with each block that lies on another tier than the device, by the group that its events named.
func (b *Book) eachAway(do func(group int, h events.Hash, t events.Tier)) {
	const device = mask(1) << events.TierDevice
	at := 0
	for _, run := range b.Held {
		for range run.Blocks {
			for i, g := range b.Groups {
				tiers := mask(run.Mask) >> (i * events.TierCount) & (1<<events.TierCount - 1)
				if tiers&device == 0 && tiers != 0 {
					do(max(g.ID, 0), b.Hashes[at], tierOf(tiers&-tiers))
				}
			}
			at++
		}
	}
}

// restore fills the ledger of one rank.
func (w *Writer) restore(b *Book, until int64) error {
	if err := b.Check(); err != nil {
		return err
	}
	l := w.main
	if b.Rank != w.src.Rank {
		if l = w.of(&events.Batch{Rank: b.Rank, HasRank: true}); l == w.main {
			return nil // another stream owns that rank now, which was counted
		}
	}
	return l.restore(b, until)
}

// Restore takes over a book, as Writer.Restore does for a whole stream.
func (l *Ledger) Restore(b *Book, within time.Duration) error {
	if err := b.Check(); err != nil {
		return err
	}
	return l.restore(b, time.Now().Add(within).UnixNano())
}

func (l *Ledger) restore(b *Book, until int64) error {
	l.x.mu.Lock()
	defer l.x.mu.Unlock()
	if l.closed || l.stats.handles.Load() > 0 {
		return fmt.Errorf("%w: the ledger is in use", ErrBook)
	}
	for _, s := range b.Scopes {
		if s.Model != l.src.Model { // its blocks would lie in a stripe where nobody looks for them
			return fmt.Errorf("%w: a scope of model %q, the source serves %q", ErrBook, s.Model, l.src.Model)
		}
	}
	return l.restoreLocked(b, until)
}

// Proven says that the engine is the one of which the state was restored.
func (l *Ledger) Proven() {
	if !l.neverProven {
		l.doubt(DoubtResumed, false)
	}
	l.fresh.until.Store(0)
}

// forget undoes Restore.
func (w *Writer) forget() {
	w.mu.Lock()
	ranks := w.ranks
	w.ranks = make(map[int]*Ledger)
	w.mu.Unlock()
	for _, l := range ranks {
		l.Close()
	}
	w.main.drop(true)
	w.main.setCounters(new(BookCounters))
	w.main.fresh.heard.Store(0)
}

// Proven says that the engine is the one of which the state was restored. Without Restore it does nothing.
func (w *Writer) Proven() {
	if !w.unproven.CompareAndSwap(true, false) {
		return
	}
	if !w.main.neverProven {
		w.partial.Store(w.wasPartial)
	}
	w.each((*Ledger).Proven)
}

// restoreLocked fills an empty ledger from a checked book. Needs stripe.mu.
func (l *Ledger) restoreLocked(b *Book, until int64) error {
	l.doubt(DoubtResumed, true) // before anything is held
	t := l.table.Load()
	var g groups
	for _, e := range b.Groups {
		g = append(g, group{id: e.ID, spec: e.Spec, window: e.Window, sizes: e.Sizes})
	}
	l.publish(newTable(l.src, g, t.since, t.lanes))
	l.setCounters(&b.Counters)
	if err := newRestorer(l, b).run(); err != nil {
		return err
	}
	l.deflateLocked()
	l.weighLocked()
	l.x.tree.settle()
	l.offloads, l.outlived = b.Offloads, b.Outlived
	doubts, err := parseDoubts(b.Doubts)
	if err != nil {
		return err
	}
	l.neverProven = doubts&DoubtResumed != 0
	l.doubts.Store(uint32(doubts&^DoubtOrphans | DoubtResumed))
	if b.Waiting > 0 {
		l.Reject(events.ReasonOrphanDropped)
		l.stats.rejected[events.ReasonOrphanDropped].Add(uint64(b.Waiting - 1))
		l.stats.orphansDropped.Add(int64(b.Waiting))
	}
	l.fresh.sequence.Store(b.Sequence)
	l.fresh.heard.Store(b.Heard)
	l.fresh.until.Store(until)
	l.x.capLocked()
	l.x.version.Add(1)
	return nil
}

func (l *Ledger) setCounters(c *BookCounters) {
	s := &l.stats
	s.batches.Store(c.Batches)
	s.reports.Store(c.ReuseReports)
	s.replayed.Store(c.Replayed)
	s.bytes.Store(c.Bytes)
	s.connections.Store(c.Connections)
	s.gaps.Store(c.Gaps)
	s.resets.Store(c.Resets)
	s.lost.Store(c.Lost)
	s.evicted.Store(c.Evicted)
	s.orphansDropped.Store(c.OrphansDropped)
	for i, n := range c.Events {
		s.kinds[i].Store(n)
	}
	for i := range s.rejected {
		s.rejected[i].Store(c.Rejected[events.Reason(i).String()])
	}
}

// restorer puts the blocks of a book into a ledger and the tree. Only run is to be called, with the stripe locked.
type restorer struct {
	l      *Ledger
	b      *Book
	scopes []*scope
	places []place // by position in Book.Keys, each with a reference
	taken  []bool  // whether a block has that reference
}

func newRestorer(l *Ledger, b *Book) *restorer {
	return &restorer{l: l, b: b, places: make([]place, 0, len(b.Keys)), taken: make([]bool, len(b.Keys))}
}

func (r *restorer) run() error {
	for _, s := range r.b.Scopes {
		r.scopes = append(r.scopes, r.l.x.enterLocked(s)) // for as long as this takes
	}
	r.place()
	err := r.hold()
	for i := len(r.places) - 1; i >= 0; i-- {
		if !r.taken[i] {
			r.l.x.tree.release(r.places[i])
		}
	}
	for _, s := range r.scopes {
		r.l.x.leaveLocked(s, 1)
	}
	return err
}

// place finds or makes the places of all keys.
func (r *restorer) place() {
	tree := r.l.x.tree
	keys := r.b.Keys
	for _, run := range r.b.Runs {
		var at place
		if run.Parent < 0 {
			at = r.scopes[^run.Parent].root
		} else {
			at = r.places[run.Parent]
		}
		for _, k := range keys[:run.Blocks] {
			at = tree.child(at, k)
			r.places = append(r.places, at)
		}
		keys = keys[run.Blocks:]
	}
}

// hold puts what is held there. It errs with ErrBook when a hash is in one scope twice.
func (r *restorer) hold() error {
	scope, copies, at := r.b.scopes(), r.b.Copies, 0
	for _, run := range r.b.Held {
		for i := range run.Blocks {
			n := run.First + i
			counted := copies
			for len(copies) > 0 && copies[0].Hash == at {
				copies = copies[1:]
			}
			counted = counted[:len(counted)-len(copies)]
			p := r.places[n]
			if r.taken[n] { // another hash has the reference
				parent, key, _ := r.l.x.tree.up(p)
				p = r.l.x.tree.child(parent, key)
			}
			s := r.scopes[scope(n)]
			if !r.l.restoreBlockLocked(r.b.Hashes[at], s, p, mask(run.Mask), counted) {
				if r.taken[n] {
					r.l.x.tree.release(p)
				}
				return fmt.Errorf("%w: a hash names two blocks", ErrBook)
			}
			r.taken[n] = true
			at++
		}
	}
	return nil
}

// restoreBlockLocked adds a block, to which the reference to p goes over. It is false when the hash is taken.
func (l *Ledger) restoreBlockLocked(h events.Hash, s *scope, p place, m mask, counted []Copies) bool {
	l.findLocked(h) // which makes it odd
	simple := l.compact && !h.Digest() && l.blocks[h] == nil && len(counted) == 0 && !l.holdsLocked(p)
	if !simple {
		l.exposeLocked(p)
	}
	for o := l.blocks[h]; o != nil; o = o.next {
		if o.scope == s {
			return false
		}
	}
	if l.compact {
		l.odd[p]++ // until it is simple, if it is to be
	}
	l.x.tree.hold(p, l, h.Lo, 0, m)
	s.blocks++
	l.stats.handles.Add(1)
	for d := m; d != 0; d &= d - 1 {
		l.stats.resident[tierOf(d&-d)].Add(1)
	}
	if simple {
		l.putLocked(h, p)
		delete(l.odd, p)
		return true
	}
	b := &block{hash: h, scope: s, place: p, mask: m, next: l.blocks[h]}
	for d := m; d != 0; d &= d - 1 {
		c := copies{bit: d & -d, n: 1}
		for _, n := range counted {
			if n.Bit == uint8(bits.TrailingZeros64(uint64(d))) {
				c.n = n.N
			}
		}
		b.copies = append(b.copies, c)
	}
	l.blocks[h] = b
	if l.compact {
		l.loose = append(l.loose, b)
	}
	if h.Digest() {
		l.alias[h.Lo] = h
	}
	return true
}
