package indexer

import (
	"slices"

	"github.com/kvscout/kvscout/events"
)

// This file decides where the blocks of a store go, and whether they are simple; nothing is changed yet.

// planStore finds where the blocks of a store go that hang under a place: they join the chains that have them, and the
// rest extends a chain or sprouts.
func (t *chains) planStore(q *quickStore, at place) {
	q.parts, q.own, q.twins = q.parts[:0], false, false
	id, pos := at.split()
	c := t.slabs.at(id)
	for keys := q.keys; len(keys) > 0; {
		have := t.keysOf(c)[pos:]
		if run := commonKeys(have, keys); run > 0 {
			q.parts = append(q.parts, part{id, pos, run, partJoin})
			keys, pos = keys[run:], pos+run
			continue
		}
		if kid := t.find(edge{id, pos, keys[0]}); kid != 0 {
			id, pos, c = kid, 0, t.slabs.at(kid)
			continue
		}
		if len(have) == 0 && t.extendable(id, c, pos, keys[0]) {
			run := min(len(keys), maxChain-pos)
			q.parts = append(q.parts, part{id, pos, run, partExtend})
			keys, pos = keys[run:], pos+run
		}
		if len(keys) > 0 {
			q.parts = append(q.parts, part{id, pos, len(keys), partSprout})
		}
		return
	}
}

// weighPartsLocked says whether the parts of a store are simple, and splits those that the source holds already from
// those that it does not.
func (l *Ledger) weighPartsLocked(q *quickStore, ln lane, hashes []events.Hash) bool {
	done := 0
	for i := 0; i < len(q.parts); i++ {
		p := q.parts[i]
		if p.kind == partJoin {
			held, end := l.x.chains.within(p.chain, l.x.chains.slabs.at(p.chain), ln, p.pos, p.pos+p.n)
			if rest := p.pos + p.n - end; rest > 0 {
				q.parts = slices.Insert(q.parts, i+1, part{p.chain, end, rest, partJoin})
				p.n = end - p.pos
			}
			if held {
				p.kind = partHeld
			}
			q.parts[i] = p
		}
		from := done
		mine := hashes[from : from+p.n]
		done += p.n
		if p.kind <= partJoin && !l.onlyInLocked(ln, p) {
			return false
		}
		switch p.kind {
		case partHeld:
			if !l.sameHashesLocked(p, mine) {
				return false
			}
		case partJoin:
			if !l.mayJoinLocked(q, p, from) {
				return false
			}
		default:
			if !l.newHashesLocked(q, from, p.n) {
				return false
			}
		}
	}
	return true
}

// onlyInLocked says whether the source holds none of the blocks of a part in other lanes.
func (l *Ledger) onlyInLocked(ln lane, p part) bool {
	lanes := l.table.Load().lanes
	if len(lanes) == 1 {
		return true
	}
	for _, of := range lanes {
		if of.lane == ln {
			continue
		}
		c := l.x.chains.slabs.at(p.chain)
		if held, end := l.x.chains.within(p.chain, c, of.lane, p.pos, p.pos+p.n); held || end < p.pos+p.n {
			return false
		}
	}
	return true
}

// sameHashesLocked says whether the source holds the blocks of a part as simple ones under these hashes.
func (l *Ledger) sameHashesLocked(p part, hashes []events.Hash) bool {
	if l.space == 0 && !l.x.chains.dict.twins && len(l.odd) == 0 {
		same, missing, _ := l.x.chains.dict.shares(l.x.chains.slabs.at(p.chain), l.groupIn(p.chain, p.pos), p.pos, hashes)
		return same == len(hashes) && !missing
	}
	for i, h := range hashes {
		if _, at := l.resolveLocked(h.Lo); at != placeAt(p.chain, p.pos+i+1) {
			return false
		}
	}
	return true
}

// mayJoinLocked says whether blocks that a chain has, and the source does not hold, may become simple ones of the source.
func (l *Ledger) mayJoinLocked(q *quickStore, p part, from int) bool {
	hashes := q.hashes[from : from+p.n]
	t := l.x.chains
	c := t.slabs.at(p.chain)
	for i := 0; i < p.n && len(l.odd) > 0; i++ {
		if l.odd[placeAt(p.chain, p.pos+i+1)] > 0 {
			return false
		}
	}
	if l.space == 0 && !q.own {
		same, missing, _ := t.dict.shares(c, l.groupIn(p.chain, p.pos), p.pos, hashes)
		if same == len(hashes) && !missing && !t.dict.twins {
			return true
		}
		q.own = same < len(hashes)
	}
	return l.newHashesLocked(q, from, p.n)
}

// groupIn is a group of the chain's shared hashes at or before a block, where the cursor knows one; else 0.
func (l *Ledger) groupIn(id uint32, pos int) uint32 {
	if !l.cur.ok || l.cur.group == 0 {
		return 0
	}
	g := l.x.chains.dict.groupOf(l.cur.group)
	if g == nil || g.owned || g.chain != id || uint32(l.cur.place>>32) != id || int(g.base) > pos {
		return 0
	}
	return l.cur.group
}

// newHashesLocked says whether the source means nothing yet by n hashes of a store, from one on, and moves their probes to
// where they can be entered.
func (l *Ledger) newHashesLocked(q *quickStore, from, n int) bool {
	l.probeLocked(q)
	hashes, probes := q.hashes[from:from+n], q.probes[from:from+n]
	d := &l.x.chains.dict
	if l.space != 0 {
		for i, h := range hashes {
			if at, _ := l.resolveOwnLocked(h.Lo, &probes[i]); at != 0 {
				return false
			}
		}
		return true
	}
	for i, h := range hashes {
		for at := d.next(h.Lo, &probes[i]); at != 0; at = d.next(h.Lo, &probes[i]) {
			g, pos := d.of(at)
			if g.owned {
				continue
			}
			if l.hasSimpleLocked(placeAt(g.chain, pos+1)) {
				return false
			}
			q.twins = true
		}
	}
	return true
}
