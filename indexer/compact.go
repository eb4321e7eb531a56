package indexer

// This file moves groups of hashes together. What stays when most went may lie thin over many slabs, and would keep them
// all. Chains are not moved: their ids are in books, edges and places, and readers have them in hand; a chain is small beside
// its keys and hashes, and slabs that empty are not taken from while fuller ones have room.

const (
	// fewSlabs is how many slabs of groups are suffered however little is in them.
	fewSlabs = 64
	// thinSlabs is the part of the room for groups that must be in use above that.
	thinSlabs = 4
	// compactStep bounds the groups moved in one batch.
	compactStep = 128
)

// compactLocked moves some groups out of the slab that has the least, if most room for groups is free. Needs x.mu.
func (x *stripe) compactLocked() {
	if x.chains == nil {
		return
	}
	d := &x.chains.dict
	r := &d.rooms
	if r.size <= d.fewSlabs || r.used*thinSlabs >= r.size*slabRecords {
		return
	}
	n := r.thinnest()
	moved := make(map[uint32]bool)
	for id := uint32(n) * slabRecords; r.list[n].there && id < uint32(n)*slabRecords+r.list[n].next && len(moved) < compactStep; id++ {
		if d.group(id).n > 0 {
			x.moveGroupLocked(id)
			moved[id] = true
		}
	}
	x.ledgers(func(l *Ledger) {
		if moved[l.cur.group] {
			l.cur.group = 0
		}
	})
}

// thinnest is the slab with the least in use, of which none is taken. There are at least two.
func (r *rooms) thinnest() int {
	best := -1
	for n := range r.list {
		if s := &r.list[n]; s.there && n != r.cur && (best < 0 || s.used < r.list[best].used) {
			best = n
		}
	}
	return best
}

// moveGroupLocked puts a group elsewhere: the table and its chain, or its source, then know it by its new id.
func (x *stripe) moveGroupLocked(from uint32) {
	d := &x.chains.dict
	to := d.rooms.take(d)
	g := d.group(from)
	*d.group(to) = *g
	for o := range uint32(g.n) {
		if g.used>>o&1 != 0 {
			d.rename(g, handle(from<<4|o), handle(to<<4|o))
		}
	}
	if g.owned {
		if l, _ := x.index.sources.Load(slot(g.link)); l != nil {
			l.noteGroupLocked(to)
		}
	} else {
		d.relink(x.chains.slabs.at(g.chain), from, to)
	}
	g.owned = false // what is counted of it goes with to
	d.freeGroup(from)
}

// rename makes the table find a hash of a group by another handle.
func (d *dict) rename(g *hashGroup, old, to handle) {
	x := mixHash(g.hash[old&15], g.space())
	s := d.shard(x)
	if uint32(to)>>s.bits != 0 {
		d.remake(s, len(s.slots))
	}
	want := s.entry(x, old)
	at := s.start(x)
	for s.slots[at] != want {
		if at++; int(at) == len(s.slots) {
			at = 0
		}
	}
	s.slots[at] = s.entry(x, to)
}

// relink puts group to in the place of group from in a chain's list.
func (d *dict) relink(c *chain, from, to uint32) {
	if c.last == from {
		c.last = to
	}
	if c.group == from {
		c.group = to
		return
	}
	at := c.group
	for d.group(at).link != from {
		at = d.group(at).link
	}
	d.group(at).link = to
}
