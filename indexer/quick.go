package indexer

import (
	"maps"
	"math/bits"
	"slices"

	"github.com/kvscout/kvscout/events"
)

// Most stores and removals concern blocks of which the ledger's slim says everything. These apply them in place; each
// leaves everything as it was and says false where more is to be weighed, and then the general path decides.

// quickBlock is where a store puts a block, and where the slim has it already.
type quickBlock struct {
	place place
	ref   slimRef
}

// quickEvent says whether nothing of a store matters but its hashes, tokens, parent, group and tier.
func quickEvent(e *events.Event) bool {
	if s, _ := shapeOf(e); s != shapeDense || e.LoraName != "" || e.HasLoraID && e.LoraID != 0 || e.Salt != "" {
		return false
	}
	if e.HasParent && (e.Parent.Digest() || e.Parent.Lo == 0) {
		return false
	}
	for _, h := range e.Hashes {
		if h.Digest() {
			return false
		}
	}
	return !slices.ContainsFunc(e.Extras, func(row []events.Extra) bool { return len(row) > 0 })
}

// storeQuickLocked applies a dense store.
func (l *Ledger) storeQuickLocked(e *events.Event) bool {
	if l.slim == nil || len(l.hinted) > 0 || len(l.orphans.byParent) > 0 || !quickEvent(e) || l.loopsQuick(e) {
		return false
	}
	sc, at, ok := l.quickParentLocked(e)
	if !ok {
		return false
	}
	next, g, ok := l.table.Load().learn(e, e.BlockSize)
	if !ok || next != nil {
		return false
	}
	which := bit(g, e.Tier)
	placed := l.findPlacesLocked(e, sc, at, which)
	l.x.chains.ahead = 0
	if !placed {
		for i := len(l.quick) - 1; i >= 0; i-- {
			l.x.tree.release(l.quick[i].place)
		}
		return false
	}
	fresh := 0
	for i, b := range l.quick {
		h := e.Hashes[i]
		if b.ref != 0 {
			l.x.chains.unref(b.place)
			l.slim.more[h.Lo]++
			l.repeatedLocked()
			continue
		}
		l.x.chains.hold(b.place, l, h.Lo, 0, which)
		if !l.slim.put(h.Lo, b.place, which) {
			l.blocks[h] = &block{hash: h, scope: sc, place: b.place, mask: which, copies: []copies{{bit: which, n: 1}}}
		}
		fresh++
	}
	sc.blocks += fresh
	l.stats.handles.Add(int64(fresh))
	l.stats.resident[e.Tier].Add(int64(fresh))
	if fresh > 0 {
		l.offloadedLocked(e.Tier)
	}
	return true
}

// findPlacesLocked fills l.quick with where the store's blocks go, with a reference to each. It is false when a hash has
// another meaning, or needs more than one more copy.
func (l *Ledger) findPlacesLocked(e *events.Event, sc *scope, at place, which mask) bool {
	l.quick = l.quick[:0]
	l.slim.touch(e.Hashes)
	var key Key
	for i, h := range e.Hashes {
		if len(l.blocks) > 0 && l.blocks[h] != nil || len(l.alias) > 0 {
			return false
		}
		from, to := i*e.BlockSize, (i+1)*e.BlockSize
		if e.Pairs {
			to++
		}
		key, l.buf = blockKey(l.buf, e.Tokens[from:to], nil, nil, sc.seed)
		l.x.chains.ahead = len(e.Hashes) - i - 1
		at = l.x.chains.child(at, key)
		ref := l.slim.find(h.Lo)
		l.quick = append(l.quick, quickBlock{place: at, ref: ref})
		if ref == 0 {
			continue
		}
		if p, m := l.slim.at(ref); p != at || m != which {
			return false
		}
	}
	return true
}

// quickParentLocked is the scope of a store and the place it hangs under.
func (l *Ledger) quickParentLocked(e *events.Event) (*scope, place, bool) {
	if !e.HasParent {
		s := l.x.scopeLocked(Scope{Model: l.src.Model, BlockSize: e.BlockSize, Pairs: e.Pairs})
		if s == nil {
			return nil, 0, false
		}
		return s, s.root, true
	}
	ref := l.slim.find(e.Parent.Lo)
	if ref == 0 || len(l.blocks) > 0 && l.blocks[e.Parent] != nil {
		return nil, 0, false
	}
	p, _ := l.slim.at(ref)
	s := l.x.chains.scopeOf(p)
	fits := s.BlockSize == e.BlockSize && s.Pairs == e.Pairs &&
		(l.src.Engine != events.EngineSGLang || s.Salt == "" && s.Adapter == "")
	return s, p, fits
}

// loopsQuick is loops for hashes that are integers, in memory that is used again.
func (l *Ledger) loopsQuick(e *events.Event) bool {
	if len(e.Hashes) <= 16 {
		for i, h := range e.Hashes {
			if e.HasParent && h == e.Parent || slices.Contains(e.Hashes[:i], h) {
				return true
			}
		}
		return false
	}
	size := 2 << bits.Len(uint(len(e.Hashes)+1)) // at most half full
	l.seen = slices.Grow(l.seen[:0], size)[:size]
	clear(l.seen)
	if e.HasParent {
		l.seeAgain(e.Parent.Lo)
	}
	zero := false
	for _, h := range e.Hashes {
		if h.Lo == 0 && zero || h.Lo != 0 && l.seeAgain(h.Lo) {
			return true
		}
		zero = zero || h.Lo == 0 // which marks what is free
	}
	return false
}

// seeAgain notes a hash and says whether it was noted before.
func (l *Ledger) seeAgain(h uint64) bool {
	for i := mixHash(h); ; i++ {
		switch at := &l.seen[i&uint64(len(l.seen)-1)]; *at {
		case 0:
			*at = h
			return false
		case h:
			return true
		}
	}
}

// removeQuickLocked takes one copy of hash h out of a tier of the group at position g.
func (l *Ledger) removeQuickLocked(h events.Hash, g int, tier events.Tier) bool {
	if l.slim == nil || g < 0 || h.Digest() || len(l.blocks) > 0 && l.blocks[h] != nil {
		return false
	}
	ref := l.slim.find(h.Lo)
	if ref == 0 {
		return false
	}
	p, m := l.slim.at(ref)
	which := bit(g, tier)
	if m != which {
		return false // it is not there, or in other tiers too
	}
	if n := l.slim.more[h.Lo]; n > 1 {
		l.slim.more[h.Lo] = n - 1
		return true
	} else if n == 1 {
		delete(l.slim.more, h.Lo)
		return true
	}
	l.slim.drop(ref)
	s := l.x.chains.scopeOf(p)
	l.x.tree.hold(p, l, h.Lo, m, 0)
	l.x.tree.release(p)
	l.stats.resident[tier].Add(-1)
	l.stats.handles.Add(-1)
	l.x.leaveLocked(s)
	return true
}

// inflateLocked moves a block out of the slim, so that anything can be said of it.
func (l *Ledger) inflateLocked(h events.Hash, ref slimRef) *block {
	p, m := l.slim.at(ref)
	l.slim.drop(ref)
	b := &block{hash: h, scope: l.x.chains.scopeOf(p), place: p, mask: m}
	for d := m; d != 0; d &= d - 1 {
		b.copies = append(b.copies, copies{bit: d & -d, n: 1})
	}
	if n := l.slim.more[h.Lo]; n > 0 {
		b.copies[0].n += n
		delete(l.slim.more, h.Lo)
	}
	l.blocks[h] = b
	l.loose = append(l.loose, b)
	return b
}

// blockBytes is about what a block takes that is not in a slim.
const blockBytes = 300

// weighLocked notes how much memory the book takes.
func (l *Ledger) weighLocked() {
	n := len(l.blocks) * blockBytes
	if l.slim != nil {
		n += l.slim.bytes()
	}
	l.stats.memory.Store(int64(n))
}

// deflateLocked moves what a batch took out of the slim, or made, into it where it fits.
func (l *Ledger) deflateLocked() {
	if cap(l.seen) > 4096 {
		l.seen = nil
	}
	if len(l.loose) == 0 {
		return
	}
	many := len(l.loose) > 1024
	for i, b := range l.loose {
		l.loose[i] = nil
		if l.blocks[b.hash] != b || !b.slender() || !l.slim.put(b.hash.Lo, b.place, b.mask) {
			continue
		}
		delete(l.blocks, b.hash)
		if n := b.copies[0].n; n > 1 {
			l.slim.more[b.hash.Lo] = n - 1
		}
	}
	l.loose = l.loose[:0]
	if many { // maps and slices keep the size they once had
		l.loose = nil
		l.blocks = maps.Clone(l.blocks)
	}
}

// slender says whether a slim can say all there is to say of the block.
func (b *block) slender() bool {
	if b.gone || b.mask == 0 || b.hash.Digest() || b.next != nil {
		return false
	}
	return len(b.copies) == 1 || !slices.ContainsFunc(b.copies, func(c copies) bool { return c.n > 1 })
}

// eachLocked calls do with every block of the book. do must not change it.
func (l *Ledger) eachLocked(do func(h events.Hash, s *scope, p place, m mask)) {
	for h, b := range l.blocks {
		for ; b != nil; b = b.next {
			do(h, b.scope, b.place, b.mask)
		}
	}
	if l.slim != nil {
		l.slim.each(func(h uint64, p place, m mask) { do(events.HashInt(h), l.x.chains.scopeOf(p), p, m) })
	}
}
