package indexer

import (
	"errors"
	"sync/atomic"
)

// errNotBrief is a lookup that needs more than leading runs. It never leaves the package.
var errNotBrief = errors.New("not brief")

// collect walks the chains that the prompt begins with.
func (t *chains) collect(r *Reader, origin uint64, keys *keyer) error {
	n := keys.blocks()
	id, fork := uint32(origin), 0
	for base := 0; base < n; {
		if err := r.check(base); err != nil {
			return err
		}
		if id = t.find(edge{id, fork, keys.at(base)}); id == 0 {
			return nil
		}
		c := t.slabs.at(id)
		members := t.members(c)
		r.sink = touchMembers(members) // while the keys come
		m, err := matched(r, keys, base, t.keysOf(c))
		if err != nil {
			return err
		}
		r.path = append(r.path, step{walk: int32(len(r.walks) - 1), base: uint32(base), chain: id})
		switch {
		case !r.brief:
			t.meet(r, id, c, base, m)
		case base == 0:
			if !t.meetFirst(r, c, members, m) {
				return errNotBrief
			}
		case !t.meetNext(r, c, members, base, m):
			return errNotBrief
		}
		if c.kids.Load() == 0 {
			return nil
		}
		base += m
		fork = m
	}
	return nil
}

// walkKeys is collect for keys, as far as leading runs go. It is false when those may not be all that counts.
func (t *chains) walkKeys(r *Reader, origin uint32, keys []Key) bool {
	if len(keys) == 0 {
		return true
	}
	e := edge{origin, 0, keys[0]}
	h := e.hash()
	for base := 0; ; {
		id := t.findBy(h, e)
		if id == 0 {
			return true
		}
		c := t.slabs.at(id)
		members := t.members(c)
		r.sink = touchMembers(members) // while the keys come
		m := commonKeys(t.keysOf(c), keys[base:])
		more := base+m < len(keys) && c.kids.Load() > 0
		if more {
			e = edge{id, m, keys[base+m]}
			h = e.hash()
			r.sink += t.edges.touch(h) // while members are met
		}
		if base == 0 && !t.meetFirst(r, c, members, m) || base > 0 && !t.meetNext(r, c, members, base, m) {
			return false
		}
		if !more {
			return true
		}
		base += m
	}
}

// touchMembers reads the list here and there, so that it is on its way from memory when it is needed.
func touchMembers(list []atomic.Uint32) (sum uint32) {
	for i := 0; i < len(list) && i < 256; i += 16 {
		sum += list[i].Load()
	}
	return sum
}

// matched is how many blocks of the chain the prompt has from base on. The first is known to match.
func matched(r *Reader, keys *keyer, base int, chain []Key) (int, error) {
	n := min(len(chain), keys.blocks()-base)
	if keys.given != nil && n <= checkEvery {
		return commonKeys(chain[:n], keys.given[base:base+n]), nil
	}
	// The deeper it matches the likelier it is that more does: no more keys are made for nothing than were needed.
	for i, most := 1, 8; i < n; most = min(2*most, maxRun) {
		if err := r.check(base + i); err != nil {
			return 0, err
		}
		list := keys.from(base+i, min(most, n-i))
		same := commonKeys(chain[i:i+len(list)], list)
		if i += same; same < len(list) {
			return i, nil
		}
	}
	return n, nil
}

// commonKeys is how many leading keys of a and b are equal.
func commonKeys(a, b []Key) int {
	n := min(len(a), len(b))
	a, b = a[:n], b[:n]
	i := 0
	for ; i+8 <= n; i += 8 { // eight compares to one branch
		x, y := a[i:i+8:i+8], b[i:i+8:i+8]
		if (x[0]^y[0])|(x[1]^y[1])|(x[2]^y[2])|(x[3]^y[3])|(x[4]^y[4])|(x[5]^y[5])|(x[6]^y[6])|(x[7]^y[7]) != 0 {
			break
		}
	}
	for ; i < n && a[i] == b[i]; i++ {
	}
	return i
}

// meet notes what lanes hold of the first m blocks of a chain, which are blocks base.. of the prompt. The entry is read
// on either side of the islands, since blocks may pass from one to the other meanwhile.
func (t *chains) meet(r *Reader, id uint32, c *chain, base, m int) {
	list := t.members(c)
	for i := range list {
		e := list[i].Load()
		ln := entryLane(e)
		if n := min(entryBlocks(e), m); n > 0 {
			r.add(ln, base, base+n)
		}
		if !c.hasIslands() || t.lanes.at(ln).plain() {
			continue // only its leading run counts
		}
		isles, _ := t.islands.Load(laneIn{id, ln})
		if again := list[i].Load(); again != e {
			if n := min(entryBlocks(again), m); n > 0 {
				r.add(ln, base, base+n)
			}
		}
		for _, s := range isles {
			if int(s.from) >= m {
				break
			}
			r.add(ln, base+int(s.from), base+min(int(s.to), m))
		}
	}
}

// meetFirst is meet for a prompt's first chain, as far as each lane's leading run goes. It is false when that may not be
// all that counts.
func (t *chains) meetFirst(r *Reader, c *chain, list []atomic.Uint32, m int) bool {
	if cap(r.runs) < len(list) {
		r.runs = make([]run, 0, len(list)+len(list)/2)
	}
	runs := r.runs[:cap(r.runs)]
	before := c.islands.Load()
	k := 0
	for i := range list {
		e := list[i].Load()
		n := min(uint32(entryBlocks(e)), uint32(m))
		runs[k] = run{entryLane(e), n}
		if n > 0 {
			k++
		}
	}
	r.runs = runs[:k]
	return !t.mayHide(c, list, before)
}

// mayHide says whether members of a chain may hold more than their leading runs, as blocks behind a hole or that passed
// between those and these since before was read of the chain's islands.
func (t *chains) mayHide(c *chain, list []atomic.Uint32, before uint32) bool {
	if now := c.islands.Load(); now%islandChange == 0 && now == before || t.lanes.fancy.Load() == 0 {
		return false
	}
	for i := range list {
		if !t.lanes.at(entryLane(list[i].Load())).plain() {
			return true
		}
	}
	return false
}

// meetNext is meetFirst for a chain that goes on after base blocks: it counts for who holds all of those.
func (t *chains) meetNext(r *Reader, c *chain, list []atomic.Uint32, base, m int) bool {
	many := len(list) > 1
	if many {
		r.placeRuns() // of which none is made any more
	}
	before := c.islands.Load()
	for i := range list {
		e := list[i].Load()
		ln, n := entryLane(e), min(entryBlocks(e), m)
		at := r.runOf(ln, many)
		if at != nil && int(at.blocks) == base {
			at.blocks += uint32(n)
		} else if t.lanes.fancy.Load() > 0 && !t.lanes.at(ln).plain() {
			return false // what lies behind a hole may count
		}
	}
	return !t.mayHide(c, list, before)
}

// rows are what was collected for l.
func (t *chains) rows(r *Reader, l *Ledger, tab *table) []*row {
	for w := range r.walks {
		depth := 0
		for _, of := range tab.lanes {
			depth = max(depth, r.reach(of, w))
		}
		if depth == 0 {
			continue
		}
		out := row{size: r.walks[w].size, pairs: r.walks[w].pairs, asOf: r.asOf, masks: r.room(depth)}
		for _, of := range tab.lanes {
			for d := range r.stretches(of, w) {
				if of.bit == 0 {
					t.fillVias(r, l, &out, w, d)
					continue
				}
				for i := d.from; i < d.to; i++ {
					out.masks[i] |= of.bit
				}
			}
		}
		for len(out.masks) > 0 && out.masks[len(out.masks)-1] == 0 {
			out.masks = out.masks[:len(out.masks)-1]
		}
		if len(out.masks) > 0 {
			r.store = append(r.store, out)
		}
	}
	for i := range r.store {
		r.list = append(r.list, &r.store[i])
	}
	return r.list
}

// fillVias adds to a row what a source holds of the request's namespace, which its hashes tell.
func (t *chains) fillVias(r *Reader, l *Ledger, out *row, w int, d stretch) {
	check := told(r.q, l)
	for check && len(r.expect) < len(r.walks) {
		r.expect = append(r.expect, expected{})
	}
	at := 0
	for i := d.from; i < d.to; i++ {
		for r.path[at].walk != int32(w) || at+1 < len(r.path) && r.path[at+1].walk == int32(w) && r.path[at+1].base <= i {
			at++
		}
		list, _ := t.vias.Load(viaAt{chain: r.path[at].chain, slot: l.slot, block: i - r.path[at].base})
		for _, v := range list {
			if !check || v.hash == r.expect[w].at(r.q, out.size, out.pairs, int(i)) {
				out.masks[i] |= v.mask
			}
		}
	}
}
