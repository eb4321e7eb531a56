package indexer

import (
	"maps"
	"slices"

	"github.com/kvscout/kvscout/events"
)

// Most blocks of most sources are simple: of them nothing is to be said but the hash, the place and the tiers. Those have
// no entry in the book. The dict says what their hashes mean, the tree who holds them. The others are odd and are blocks of
// the book: digests, several scopes under one hash, several hashes for one place, several copies in several tiers.
//
//  1. All hashes of a source for one place are simple or odd alike, and of one hash alike; simple is at most one for each.
//  2. A source holds a place that is not odd if and only if it holds it under the simple hash of its space.

// compact says whether a source's blocks may be simple.
func compact(src events.Source) bool { return !src.ReuseReports && !witnessed(src) }

// cursor is where the source's last store ended.
type cursor struct {
	ok    bool
	hash  events.Hash
	place place
	group uint32 // of space 0 in which that hash is, 0: not known
	// inside: the chain went on behind it, so what comes next is likely known.
	inside bool
}

// holdsLocked says whether any lane of the source holds the place.
func (l *Ledger) holdsLocked(p place) bool {
	id, n := p.split()
	c := l.x.chains.slabs.at(id)
	for _, of := range l.table.Load().lanes {
		if l.x.chains.holds(id, c, of.lane, n-1) {
			return true
		}
	}
	return false
}

// maskLocked is in which tiers of which groups the source holds the place.
func (l *Ledger) maskLocked(p place) (m mask) {
	id, n := p.split()
	c := l.x.chains.slabs.at(id)
	for _, of := range l.table.Load().lanes {
		if l.x.chains.holds(id, c, of.lane, n-1) {
			m |= of.bit
		}
	}
	return m
}

func (l *Ledger) hasSimpleLocked(p place) bool {
	return (len(l.odd) == 0 || l.odd[p] == 0) && l.holdsLocked(p)
}

// resolveLocked is the simple block under a hash, 0 if there is none.
func (l *Ledger) resolveLocked(hash uint64) (handle, place) {
	d := &l.x.chains.dict
	q := d.probe(hash, l.space)
	if l.space != 0 {
		return l.resolveOwnLocked(hash, &q)
	}
	for h := d.next(hash, &q); h != 0; h = d.next(hash, &q) {
		if g, pos := d.of(h); !g.owned {
			if p := placeAt(g.chain, pos+1); l.hasSimpleLocked(p) {
				return h, p
			}
		}
	}
	return 0, 0
}

// resolveOwnLocked is resolveLocked for a source with a space of its own and the hash's probe in it. Without such a block
// the probe is where the hash can be entered.
func (l *Ledger) resolveOwnLocked(hash uint64, q *probe) (handle, place) {
	d := &l.x.chains.dict
	if h, p := d.ownedBy(hash, q, l.space); h != 0 || !l.claimed {
		return h, p
	}
	old := d.probe(hash, 0)
	return d.ownedBy(hash, &old, l.space)
}

// ownedBy is the block under a hash in the space of one source, among what the probe finds.
func (d *dict) ownedBy(hash uint64, q *probe, owner uint32) (handle, place) {
	for h := d.next(hash, q); h != 0; h = d.next(hash, q) {
		if g, pos := d.of(h); g.of(owner) {
			return h, placeAt(g.chain, pos+1)
		}
	}
	return 0, 0
}

// inflateLocked makes a simple block odd, so that anything can be said of it.
func (l *Ledger) inflateLocked(h events.Hash, at handle, p place) *block {
	b := &block{hash: h, scope: l.x.chains.scopeOf(p), place: p, mask: l.maskLocked(p)}
	for d := b.mask; d != 0; d &= d - 1 {
		b.copies = append(b.copies, copies{bit: d & -d, n: 1})
	}
	b.copies[0].n += l.takeCopiesLocked(p)
	if l.space != 0 {
		l.dropOwnLocked(at)
	}
	l.blocks[h] = b
	l.odd[p]++
	l.loose = append(l.loose, b)
	l.cur.ok = false
	return b
}

// exposeLocked makes the simple block at a place odd, if there is one, since another hash is to name the place too.
func (l *Ledger) exposeLocked(p place) {
	if !l.compact || !l.hasSimpleLocked(p) {
		return
	}
	d := &l.x.chains.dict
	id, n := p.split()
	if l.space == 0 {
		hash, _ := d.hashAt(l.x.chains.slabs.at(id), n-1)
		l.inflateLocked(events.HashInt(hash), 0, p)
		return
	}
	for _, g := range l.groups { // rare
		of := d.groupOf(g)
		if of == nil {
			continue
		}
		if o := n - 1 - int(of.base); of.of(l.space) && of.chain == id && o >= 0 && o < int(of.n) && of.used>>o&1 != 0 {
			l.inflateLocked(events.HashInt(of.hash[o]), handle(g<<4|uint32(o)), p)
			return
		}
	}
}

// deflateLocked makes simple what a batch made or made odd, where it can be.
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
		if l.blocks[b.hash] != b || !b.slender() || l.odd[b.place] != 1 {
			continue
		}
		l.putLocked(b.hash, b.place)
		delete(l.blocks, b.hash)
		delete(l.odd, b.place)
		if n := b.copies[0].n; n > 1 {
			id, at := b.place.split()
			l.copyLocked(id, at-1, at, n-1)
		}
	}
	l.loose = l.loose[:0]
	if many { // maps and slices keep the size they once had
		l.loose = nil
		l.blocks, l.odd = maps.Clone(l.blocks), maps.Clone(l.odd)
	}
}

// slender says whether a simple block can say all there is to say of the block.
func (b *block) slender() bool {
	if b.gone || b.mask == 0 || b.hash.Digest() || b.next != nil {
		return false
	}
	return len(b.copies) == 1 || !slices.ContainsFunc(b.copies, func(c copies) bool { return c.n > 1 })
}

// putLocked enters the hash of a place that the source holds and that has no simple hash of the source.
func (l *Ledger) putLocked(h events.Hash, p place) {
	d := &l.x.chains.dict
	id, n := p.split()
	c := l.x.chains.slabs.at(id)
	if l.space == 0 {
		hash, ok := d.hashAt(c, n-1)
		if ok && hash == h.Lo {
			return
		}
		if !ok {
			if q := d.probe(h.Lo, 0); d.next(h.Lo, &q) != 0 {
				d.twins = true
			}
			d.insertShared(id, c, n-1, h)
			return
		}
		l.ownSpaceLocked()
	}
	l.appendOwnLocked(id, n-1, []events.Hash{h}, []probe{d.probe(h.Lo, l.space)})
}

// eachLocked calls do with every block of the book. do must not change it.
func (l *Ledger) eachLocked(do func(h events.Hash, s *scope, p place, m mask)) {
	for h, b := range l.blocks {
		for ; b != nil; b = b.next {
			do(h, b.scope, b.place, b.mask)
		}
	}
	if !l.compact {
		return
	}
	d := &l.x.chains.dict
	group := func(g *hashGroup) {
		for o := range int(g.n) {
			if g.used>>o&1 == 0 {
				continue
			}
			if p := placeAt(g.chain, int(g.base)+o+1); l.hasSimpleLocked(p) {
				do(events.HashInt(g.hash[o]), l.x.chains.scopeOf(p), p, l.maskLocked(p))
			}
		}
	}
	if l.space != 0 {
		for _, id := range l.ownGroupsLocked() {
			group(d.group(id))
		}
		return
	}
	for _, id := range l.chainsLocked() {
		for at := l.x.chains.slabs.at(id).group; at != 0; at = d.group(at).link {
			group(d.group(at))
		}
	}
}

// chainsLocked are the chains in which the source holds something, and perhaps some in which it does not.
func (l *Ledger) chainsLocked() []uint32 {
	slices.Sort(l.chains)
	l.chains = slices.DeleteFunc(slices.Compact(l.chains), func(id uint32) bool { return !l.x.chains.slabs.rooms.has(id) })
	return l.chains
}

// noteChainLocked remembers that the source holds something in a chain.
func (l *Ledger) noteChainLocked(id uint32) {
	if len(l.chains) == cap(l.chains) && len(l.chains) >= 64 {
		t := l.x.chains
		l.chains = slices.DeleteFunc(l.chainsLocked(), func(id uint32) bool {
			return !t.holdsAny(id, t.slabs.at(id), l.table.Load().lanes)
		})
		if n := len(l.chains); n*8 > cap(l.chains)*7 {
			l.chains = slices.Grow(l.chains, n/4)
		}
	}
	l.chains = append(l.chains, id)
}

// clearSimpleLocked drops every simple block of a source that has no odd ones.
func (l *Ledger) clearSimpleLocked() {
	t := l.x.chains
	list := l.chainsLocked()
	lanes := l.table.Load().lanes
	for _, id := range slices.Backward(list) { // children before parents, mostly
		c := t.slabs.at(id)
		n := t.heldIn(id, c, lanes)
		if n == 0 {
			continue
		}
		s := t.scopes[t.slabs.note(id).scope]
		for _, of := range lanes {
			t.vacate(id, c, of.lane)
		}
		c.refs -= uint64(n)
		t.touch(id)
		l.x.leaveLocked(s, n)
	}
	for _, id := range l.ownGroupsLocked() {
		t.dict.dropGroup(id)
	}
	t.dict.tidy()
	l.odd, l.more = make(map[place]uint32), nil
	l.space, l.claimed, l.groups, l.cur, l.removed = 0, false, nil, cursor{}, 0
}

// holdsAny says whether one of the lanes holds a block of a chain.
func (t *chains) holdsAny(id uint32, c *chain, lanes []laneOf) bool {
	return slices.ContainsFunc(lanes, func(of laneOf) bool {
		_, n := t.member(id, c, of.lane)
		return n > 0 || len(t.islesOf(id, c, of.lane)) > 0
	})
}

// heldIn is how many blocks of a chain any of the lanes holds.
func (t *chains) heldIn(id uint32, c *chain, lanes []laneOf) (sum int) {
	if len(lanes) == 1 {
		_, sum = t.member(id, c, lanes[0].lane)
		for _, s := range t.islesOf(id, c, lanes[0].lane) {
			sum += int(s.to - s.from)
		}
		return sum
	}
	for block := range c.length() {
		if slices.ContainsFunc(lanes, func(of laneOf) bool { return t.holds(id, c, of.lane, block) }) {
			sum++
		}
	}
	return sum
}

// blockBytes is about what an odd block takes.
const blockBytes = 324

// waitingBytes is about what a block that waits takes beside its content.
const waitingBytes = 96

// weighLocked notes how much memory the book takes.
func (l *Ledger) weighLocked() {
	n := len(l.blocks)*blockBytes + (cap(l.chains)+cap(l.groups))*4 + len(l.more)*64
	n += l.orphans.bytes + l.orphans.blocks*waitingBytes
	if was := l.stats.memory.Load(); was != int64(n) {
		l.stats.memory.Store(int64(n))
		l.x.books.Add(int64(n) - was)
	}
}
