package indexer

import (
	"math/bits"
	"slices"

	"github.com/kvscout/kvscout/events"
)

// Most stores and removals concern simple blocks. These apply them as runs; each decides before it changes anything, and
// says false where more is to be weighed, which the general path then does.

// part is some blocks of a store that go one way.
type part struct {
	chain  uint32 // to sprout: the parent
	pos, n int
	kind   partKind
}

type partKind uint8

const (
	partHeld   partKind = iota // the source holds them
	partJoin                   // the chain has them
	partExtend                 // they go to the chain's end
	partSprout                 // they begin a child at pos
)

// quickStore is what a store is made of, in memory that is used again.
type quickStore struct {
	keys   []Key
	parts  []part
	hashes []events.Hash
	// probes are of hashes in the source's space, none as long as nobody asked; old in space 0, to warm it.
	probes, old []probe
	own         bool // the source is to have a space of its own
	twins       bool
}

// quickEvent says whether nothing of a store matters but its hashes, tokens, parent, group and tier.
func quickEvent(e *events.Event) bool {
	if s, _ := shapeOf(e); s != shapeDense || e.LoraName != "" || e.HasLoraID && e.LoraID != 0 || e.Salt != "" {
		return false
	}
	if e.HasParent && (e.Parent.Digest() || e.Parent.Lo == 0) {
		return false
	}
	for i := range e.Hashes {
		if e.Hashes[i].Digest() {
			return false
		}
	}
	return !slices.ContainsFunc(e.Extras, func(row []events.Extra) bool { return len(row) > 0 })
}

// storeQuickLocked applies a dense store.
func (l *Ledger) storeQuickLocked(e *events.Event) bool {
	if !l.compact || len(l.hinted) > 0 || len(l.orphans.byParent) > 0 || !quickEvent(e) || l.loopsQuick(e) || l.knownOddLocked(e) {
		return false
	}
	sc, at, ok := l.quickParentLocked(e)
	if !ok {
		return false
	}
	ln := l.quickLaneLocked(e)
	if ln == 0 {
		return false
	}
	which := ln - 1
	t, q := l.x.chains, &l.x.quick
	l.warmLocked(q, at, e.Hashes)
	q.keys = appendKeys(q.keys[:0], e, sc.seed)
	t.planStore(q, at)
	if !l.weighPartsLocked(q, which, e.Hashes) {
		return false
	}
	if q.own {
		l.ownSpaceLocked()
		q.probes = q.probes[:0]
	}
	t.dict.twins = t.dict.twins || q.twins
	fresh := l.storePartsLocked(q, which, e.Hashes)
	sc.blocks += fresh
	l.stats.handles.Add(int64(fresh))
	l.stats.resident[e.Tier].Add(int64(fresh))
	if fresh > 0 {
		l.offloadedLocked(e.Tier)
	}
	if fresh < len(e.Hashes) {
		l.repeatedLocked()
	}
	return true
}

// quickLaneLocked is the lane of a store plus 1, 0 when the store tells something new of the source.
func (l *Ledger) quickLaneLocked(e *events.Event) lane {
	s := storeShape{t: l.table.Load(), size: e.BlockSize, group: e.Group, hasGroup: e.HasGroup, tier: e.Tier, spec: e.Spec, window: e.Window}
	if l.shape == s {
		return l.shapeLane
	}
	next, g, ok := s.t.learn(e, e.BlockSize)
	if !ok || next != nil {
		return 0
	}
	ln := l.lanes[g*events.TierCount+int(e.Tier)]
	if ln != 0 {
		l.shape, l.shapeLane = s, ln
	}
	return ln
}

// storeShape is what of a store says which lane it is for.
type storeShape struct {
	t             *table
	size          int
	group, window int
	hasGroup      bool
	tier          events.Tier
	spec          events.SpecKind
}

// knownOddLocked says whether a hash of the store is one of an odd block, or may be.
func (l *Ledger) knownOddLocked(e *events.Event) bool {
	if len(l.blocks) == 0 {
		return false
	}
	return len(l.alias) > 0 || slices.ContainsFunc(e.Hashes, func(h events.Hash) bool { return l.blocks[h] != nil })
}

// appendKeys appends the keys of a store without extras.
func appendKeys(keys []Key, e *events.Event, seed uint64) []Key {
	size, window := e.BlockSize, e.BlockSize
	if e.Pairs {
		window++
	}
	n := len(keys)
	keys = slices.Grow(keys, len(e.Hashes))[:n+len(e.Hashes)]
	tokenKeys(keys[n:], e.Tokens, size, window, seed)
	return keys
}

// warmLocked reads what a store under a place will need. None of these reads depends on another one, so the store waits
// for memory once and not at each step.
func (l *Ledger) warmLocked(q *quickStore, at place, hashes []events.Hash) {
	t := l.x.chains
	id, _ := at.split()
	sum := uint32(t.slabs.at(id).refs) + t.slabs.note(id).stored
	if g := t.dict.groupOf(l.cur.group); g != nil {
		sum += uint32(g.n)
	}
	if n := len(l.groups); n > 0 && l.space != 0 {
		if g := t.dict.groupOf(l.groups[n-1]); g != nil {
			sum += uint32(g.n)
		}
	}
	t.dict.sink += sum
	if q.probes, q.hashes = q.probes[:0], hashes; !l.cur.inside {
		l.probeLocked(q)
	}
}

// probeLocked makes the probes of a store's hashes, if there are none yet.
func (l *Ledger) probeLocked(q *quickStore) {
	if len(q.probes) > 0 {
		return
	}
	q.probes = l.x.chains.dict.probes(q.probes, q.hashes, l.space)
	if l.claimed { // what it has there is looked for too
		q.old = l.x.chains.dict.probes(q.old[:0], q.hashes, 0)
	}
}

// storePartsLocked makes the source hold the blocks of a store and returns how many of them it did not hold before.
func (l *Ledger) storePartsLocked(q *quickStore, ln lane, hashes []events.Hash) (fresh int) {
	t := l.x.chains
	keys, done, last := q.keys, 0, hashes[len(hashes)-1]
	var at place
	var group uint32
	for _, p := range q.parts {
		for p.n > 0 {
			n, id, pos := p.n, p.chain, p.pos
			if p.kind == partSprout {
				n = min(n, maxChain)
				id, pos = t.sprout(p.chain, p.pos, keys[:n]), 0
			}
			c := t.slabs.at(id)
			if p.kind == partExtend {
				t.extend(id, c, keys[:n])
			}
			if p.kind == partHeld {
				l.copyLocked(id, pos, pos+n, 1)
				t.slabs.note(id).stored = t.now
				group = 0
			} else {
				group = l.enterHashesLocked(q, p.kind, id, c, pos, done, n)
				t.cover(id, c, l, ln, pos, pos+n)
				t.used(id, c, pos+n, n)
				fresh += n
			}
			keys, done = keys[n:], done+n
			at = placeAt(id, pos+n)
			p.n, p.chain, p.pos = p.n-n, id, pos+n // what is left of a sprout sprouts from its end
		}
	}
	id, n := at.split()
	l.cur = cursor{ok: true, hash: last, place: at, group: group, inside: n < t.slabs.at(id).length()}
	return fresh
}

// used notes that n references more lead to blocks of a chain, the last of which ends at end.
func (t *chains) used(id uint32, c *chain, end, n int) {
	c.refs += uint64(n)
	note := t.slabs.note(id)
	note.stored = t.now
	if end > int(note.live) {
		t.count.Add(int64(end - int(note.live)))
		note.live = uint16(end)
	}
}

// enterHashesLocked makes n hashes of a store, from one on, of blocks that the source does not hold yet its simple ones. It
// returns a group of space 0 at or before the last of them, 0 if it does not know one.
func (l *Ledger) enterHashesLocked(q *quickStore, kind partKind, id uint32, c *chain, pos, from, n int) (group uint32) {
	d := &l.x.chains.dict
	hashes := q.hashes[from : from+n]
	if l.space != 0 || kind != partJoin {
		l.probeLocked(q)
	}
	switch {
	case l.space != 0:
		l.appendOwnLocked(id, pos, hashes, q.probes[from:from+n])
		return 0
	case kind != partJoin:
		d.appendShared(id, c, pos, hashes, q.probes[from:from+n])
		return c.last
	}
	_, missing, at := d.shares(c, l.groupIn(id, pos), pos, hashes)
	if !missing {
		return at
	}
	for i, h := range hashes {
		if _, ok := d.hashAt(c, pos+i); !ok {
			d.insertShared(id, c, pos+i, h)
		}
	}
	return 0
}

// quickParentLocked is the scope of a store and the place it hangs under.
func (l *Ledger) quickParentLocked(e *events.Event) (*scope, place, bool) {
	if !e.HasParent {
		s := l.common
		if s == nil || s.gone || s.BlockSize != e.BlockSize || s.Pairs != e.Pairs {
			s = l.x.scopeLocked(Scope{Model: l.src.Model, BlockSize: e.BlockSize, Pairs: e.Pairs})
			if s == nil {
				return nil, 0, false
			}
			l.common = s
		}
		return s, s.root, true
	}
	p := l.cur.place
	if !l.cur.ok || l.cur.hash != e.Parent {
		if len(l.blocks) > 0 && l.blocks[e.Parent] != nil {
			return nil, 0, false
		}
		var at handle
		if at, p = l.resolveLocked(e.Parent.Lo); at == 0 {
			return nil, 0, false
		}
		l.cur = cursor{ok: true, hash: e.Parent, place: p}
		if l.space == 0 {
			l.cur.group = uint32(at >> 4)
		}
	}
	s := l.x.chains.scopeOf(p)
	fits := s.BlockSize == e.BlockSize && s.Pairs == e.Pairs &&
		(l.src.Engine != events.EngineSGLang || s.Salt == "" && s.Adapter == "")
	return s, p, fits
}

// loopsQuick is loops for hashes that are integers, in memory that is used again.
func (l *Ledger) loopsQuick(e *events.Event) bool {
	if len(e.Hashes) <= 16 {
		return mayRepeat(e) && repeats(e)
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

// mayRepeat says whether two of a few hashes, or one and the parent's, agree in eight bits.
func mayRepeat(e *events.Event) bool {
	var seen [4]uint64
	if e.HasParent {
		x := e.Parent.Lo * 0x9E3779B97F4A7C15
		seen[x>>62] = 1 << (x >> 56 & 63)
	}
	for i := range e.Hashes {
		x := e.Hashes[i].Lo * 0x9E3779B97F4A7C15
		word, one := &seen[x>>62], uint64(1)<<(x>>56&63)
		if *word&one != 0 {
			return true
		}
		*word |= one
	}
	return false
}

// repeats says whether two of a few hashes, or one and the parent's, are equal.
func repeats(e *events.Event) bool {
	for i := range e.Hashes {
		h := e.Hashes[i].Lo
		if e.HasParent && h == e.Parent.Lo {
			return true
		}
		for j := range i {
			if e.Hashes[j].Lo == h {
				return true
			}
		}
	}
	return false
}

// seeAgain notes a hash and says whether it was noted before.
func (l *Ledger) seeAgain(h uint64) bool {
	for i := mixHash(h, 0); ; i++ {
		switch at := &l.seen[i&uint64(len(l.seen)-1)]; *at {
		case 0:
			*at = h
			return false
		case h:
			return true
		}
	}
}
