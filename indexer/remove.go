package indexer

import "github.com/kvscout/kvscout/events"

// This file is quick.go for removals.

// removeQuickLocked takes one copy of hash h out of a tier of the group at position g.
func (l *Ledger) removeQuickLocked(h events.Hash, g int, tier events.Tier) bool {
	if !l.compact || g < 0 || h.Digest() || len(l.blocks) > 0 && l.blocks[h] != nil {
		return false
	}
	at, p := l.neighbourLocked(h.Lo)
	if at == 0 {
		if at, p = l.resolveLocked(h.Lo); at == 0 {
			return false
		}
	}
	if l.maskLocked(p) != bit(g, tier) {
		return false // it is not there, or in other tiers too
	}
	l.removed = at
	if l.takeCopyLocked(p) {
		return true
	}
	l.cur.ok = false
	if l.space != 0 {
		l.dropOwnLocked(at)
	}
	t := l.x.chains
	id, n := p.split()
	c := t.slabs.at(id)
	s := t.scopeOf(p)
	t.leave(id, c, l.lanes[g*events.TierCount+int(tier)]-1, n-1)
	c.refs--
	l.stats.resident[tier].Add(-1)
	l.stats.handles.Add(-1)
	l.x.leaveLocked(s, 1)
	return true
}

// neighbourLocked is the simple block under a hash if it lies beside the one removed last: engines evict neighbours
// together.
func (l *Ledger) neighbourLocked(hash uint64) (handle, place) {
	g := l.x.chains.dict.groupOf(uint32(l.removed >> 4))
	if g == nil || !g.of(l.space) {
		return 0, 0
	}
	for _, o := range [2]uint32{uint32(l.removed&15) - 1, uint32(l.removed&15) + 1} {
		if o < groupLen && g.hash[o] == hash && g.used>>o&1 != 0 {
			if p := placeAt(g.chain, int(g.base)+int(o)+1); l.hasSimpleLocked(p) {
				return l.removed&^15 | handle(o), p
			}
		}
	}
	return 0, 0
}
