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
	keys  []Key
	parts []part
	// probes are of its hashes in the source's space, old in space 0 if some of its hashes are there.
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
	next, g, ok := l.table.Load().learn(e, e.BlockSize)
	if !ok || next != nil {
		return false
	}
	ln := l.lanes[g*events.TierCount+int(e.Tier)]
	if ln == 0 {
		return false // its first block
	}
	t, q := l.x.chains, &l.x.quick
	l.warmLocked(q, at, e.Hashes)
	q.keys = appendKeys(q.keys[:0], e, sc.seed)
	t.planStore(q, at)
	if !l.weighPartsLocked(q, ln-1, e.Hashes) {
		return false
	}
	if q.own {
		l.ownSpaceLocked()
		q.probes = t.dict.probes(q.probes[:0], e.Hashes, l.space)
	}
	t.dict.twins = t.dict.twins || q.twins
	fresh := l.storePartsLocked(q, ln-1, e.Hashes)
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
	for i := range e.Hashes {
		keys = append(keys, tokenKey(e.Tokens[i*size:i*size+window], seed))
	}
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
		sum += uint32(t.dict.group(l.groups[n-1]).n)
	}
	t.dict.sink += sum
	q.probes = t.dict.probes(q.probes[:0], hashes, l.space)
	if l.claimed {
		q.old = t.dict.probes(q.old[:0], hashes, 0)
	}
}

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
	probes := q.probes
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
		mine, at := hashes[:p.n], probes[:p.n]
		hashes, probes = hashes[p.n:], probes[p.n:]
		if p.kind <= partJoin && !l.onlyInLocked(ln, p) {
			return false
		}
		switch p.kind {
		case partHeld:
			if !l.sameHashesLocked(p, mine) {
				return false
			}
		case partJoin:
			if !l.mayJoinLocked(q, p, mine, at) {
				return false
			}
		default:
			if !l.newHashesLocked(q, mine, at) {
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
	for i, h := range hashes {
		if _, at := l.resolveLocked(h.Lo); at != placeAt(p.chain, p.pos+i+1) {
			return false
		}
	}
	return true
}

// mayJoinLocked says whether blocks that a chain has, and the source does not hold, may become simple ones of the source.
func (l *Ledger) mayJoinLocked(q *quickStore, p part, hashes []events.Hash, probes []probe) bool {
	t := l.x.chains
	c := t.slabs.at(p.chain)
	for i := 0; i < p.n && len(l.odd) > 0; i++ {
		if l.odd[placeAt(p.chain, p.pos+i+1)] > 0 {
			return false
		}
	}
	if l.space == 0 && !q.own {
		same, missing, _ := t.dict.shares(c, l.groupIn(p.chain), p.pos, hashes)
		if same == len(hashes) && !missing && !t.dict.twins {
			return true
		}
		q.own = same < len(hashes)
	}
	return l.newHashesLocked(q, hashes, probes)
}

// groupIn is a group of the chain's shared hashes at or before the cursor, 0 if it is not known.
func (l *Ledger) groupIn(id uint32) uint32 {
	if !l.cur.ok || l.cur.group == 0 {
		return 0
	}
	if g := l.x.chains.dict.groupOf(l.cur.group); g == nil || g.owned || g.chain != id || uint32(l.cur.place>>32) != id {
		return 0
	}
	return l.cur.group
}

// newHashesLocked says whether the source means nothing yet by these hashes, and moves their probes to where they
// can be entered.
func (l *Ledger) newHashesLocked(q *quickStore, hashes []events.Hash, probes []probe) bool {
	d := &l.x.chains.dict
	if l.space != 0 {
		for i, h := range hashes {
			if l.ownsLocked(h.Lo, &probes[i]) {
				return false
			}
		}
		return true
	}
	for i, h := range hashes {
		s := d.searchFor(h.Lo, probes[i])
		for at := d.more(&s); at != 0; at = d.more(&s) {
			g, pos := d.of(at)
			if g.owned {
				continue
			}
			if l.hasSimpleLocked(placeAt(g.chain, pos+1)) {
				return false
			}
			q.twins = true
		}
		probes[i].at = s.at
	}
	return true
}

// ownsLocked says whether a source with a space of its own has a simple block under a hash.
func (l *Ledger) ownsLocked(hash uint64, p *probe) bool {
	d := &l.x.chains.dict
	q := d.searchFor(hash, *p)
	for at := d.more(&q); at != 0; at = d.more(&q) {
		if d.group(uint32(at >> 4)).of(l.space) {
			return true
		}
	}
	p.at = q.at
	if l.claimed {
		at, _ := d.ownedBy(hash, 0, l.space)
		return at != 0
	}
	return false
}

// storePartsLocked makes the source hold the blocks of a store and returns how many of them it did not hold before.
func (l *Ledger) storePartsLocked(q *quickStore, ln lane, hashes []events.Hash) (fresh int) {
	t := l.x.chains
	keys, probes, last := q.keys, q.probes, hashes[len(hashes)-1]
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
				group = 0
			} else {
				group = l.enterHashesLocked(p.kind, id, c, pos, hashes[:n], probes[:n])
				t.cover(id, c, l, ln, pos, pos+n)
				t.used(id, c, pos+n, n)
				fresh += n
			}
			keys, hashes, probes = keys[n:], hashes[n:], probes[n:]
			at = placeAt(id, pos+n)
			p.n, p.chain, p.pos = p.n-n, id, pos+n // what is left of a sprout sprouts from its end
		}
	}
	l.cur = cursor{ok: true, hash: last, place: at, group: group}
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

// enterHashesLocked makes the hashes of blocks that the source does not hold yet its simple ones. It returns a group of
// space 0 at or before the last of them, 0 if it does not know one.
func (l *Ledger) enterHashesLocked(kind partKind, id uint32, c *chain, pos int, hashes []events.Hash, probes []probe) (group uint32) {
	d := &l.x.chains.dict
	switch {
	case l.space != 0:
		l.appendOwnLocked(id, pos, hashes, probes)
		return 0
	case kind != partJoin:
		d.appendShared(id, c, pos, hashes, probes)
		return c.last
	}
	_, missing, at := d.shares(c, l.groupIn(id), pos, hashes)
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
