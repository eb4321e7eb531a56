package indexer

import (
	"errors"
	"slices"
)

// errNotBrief is a lookup that needs more than leading runs. It never leaves the package.
var errNotBrief = errors.New("not brief")

// maxBrief is how many comparisons meetBriefly makes at most.
const maxBrief = 8192

// collect walks the chains that the prompt begins with.
func (t *chains) collect(r *Reader, origin uint64, keys *keyer) error {
	n := keys.blocks()
	serial, fork := origin, 0
	for base := 0; base < n; {
		if err := r.check(base); err != nil {
			return err
		}
		c := t.edges.find(edgeAt(serial, fork, keys.at(base)))
		if c == nil {
			return nil
		}
		r.sink = c.held.touch() // while the keys come
		m, err := matched(r, keys, base, c.keys.view())
		if err != nil {
			return err
		}
		r.path = append(r.path, step{walk: int32(len(r.walks) - 1), base: uint32(base), serial: c.serial})
		if !r.brief {
			t.meet(r, c, base, m)
		} else if !t.meetBriefly(r, c, base, m) {
			return errNotBrief
		}
		if c.kids.Load() == 0 {
			return nil
		}
		base += m
		serial, fork = c.serial, m
	}
	return nil
}

// matched is how many blocks of the chain the prompt has from base on. The first is known to match.
func matched(r *Reader, keys *keyer, base int, chain []uint64) (int, error) {
	n := min(len(chain), keys.blocks()-base)
	if keys.given != nil && n <= checkEvery {
		return commonPrefix(chain[:n], keys.given[base:base+n]), nil
	}
	for i := 1; i < n; i++ {
		if err := r.check(base + i); err != nil {
			return 0, err
		}
		if uint64(keys.at(base+i)) != chain[i] {
			return i, nil
		}
	}
	return n, nil
}

// commonPrefix is how many leading keys of a and b, which are of one length, are equal.
func commonPrefix(a []uint64, b []Key) int {
	n := min(len(a), len(b))
	a, b = a[:n], b[:n]
	i := 0
	for ; i+8 <= n; i += 8 { // eight compares to one branch
		x, y := a[i:i+8:i+8], b[i:i+8:i+8]
		if (Key(x[0])^y[0])|(Key(x[1])^y[1])|(Key(x[2])^y[2])|(Key(x[3])^y[3])|
			(Key(x[4])^y[4])|(Key(x[5])^y[5])|(Key(x[6])^y[6])|(Key(x[7])^y[7]) != 0 {
			break
		}
	}
	for ; i < n && Key(a[i]) == b[i]; i++ {
	}
	return i
}

// meet notes what lanes hold of the first m blocks of a chain, which are blocks base.. of the prompt. The entry is read
// on either side of the islands, since blocks may pass from one to the other meanwhile.
func (t *chains) meet(r *Reader, c *chain, base, m int) {
	list := c.members()
	for i := range list {
		e := list[i].Load()
		ln := entryLane(e)
		if n := min(entryBlocks(e), m); n > 0 {
			r.add(ln, base, base+n)
		}
		if c.islands.Load() == 0 {
			continue
		}
		if o := t.lanes.at(ln); o == nil || o.plain {
			continue // only its leading run counts
		}
		isles, _ := t.islands.Load(laneIn{c.serial, ln})
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

// meetBriefly is meet as far as each lane's leading run goes. It is false when that may not be all that counts, or is
// slower.
func (t *chains) meetBriefly(r *Reader, c *chain, base, m int) bool {
	list := c.members()
	isles := c.islands.Load() > 0
	if base == 0 {
		r.runs = slices.Grow(r.runs[:0], len(list))[:len(list)]
	} else if len(list)*len(r.runs) > maxBrief {
		return false
	}
	k := 0
	for i := range list {
		e := list[i].Load()
		n, ln := min(entryBlocks(e), m), entryLane(e)
		switch {
		case n == 0:
			if isles && !t.plainLane(ln) {
				return false
			}
		case base == 0:
			r.runs[k] = entry(ln, n)
			k++
		default:
			at := slices.IndexFunc(r.runs, func(o uint64) bool { return entryLane(o) == ln })
			if at >= 0 && entryBlocks(r.runs[at]) == base {
				r.runs[at] = entry(ln, base+n)
			} else if !t.plainLane(ln) {
				return false // what lies behind a hole may count
			}
		}
	}
	if base == 0 {
		r.runs = r.runs[:k]
	}
	return true
}

// plainLane says whether of the lane only its leading run counts.
func (t *chains) plainLane(ln lane) bool {
	o := t.lanes.at(ln)
	return o == nil || o.plain
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
	at := 0
	for i := d.from; i < d.to; i++ {
		for r.path[at].walk != int32(w) || at+1 < len(r.path) && r.path[at+1].walk == int32(w) && r.path[at+1].base <= i {
			at++
		}
		list, _ := t.vias.Load(viaAt{serial: r.path[at].serial, slot: l.slot, block: i - r.path[at].base})
		for _, v := range list {
			if !check || v.hash == r.walks[w].expect.at(r.q, out.size, out.pairs, int(i)) {
				out.masks[i] |= v.mask
			}
		}
	}
}
