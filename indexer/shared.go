package indexer

import "github.com/kvscout/kvscout/events"

// This file is about the hashes of space 0, whose groups each chain has in a list by position.

// appendShared enters the hashes of blocks that were appended to a chain, the first of which is at pos.
func (d *dict) appendShared(id uint32, c *chain, pos int, hashes []events.Hash, probes []probe) {
	for len(hashes) > 0 {
		last := c.last
		if last == 0 || !d.group(last).before(pos) {
			last = d.newGroup(id, pos, 0)
			if c.last == 0 {
				c.group = last
			} else {
				d.group(c.last).link = last
			}
			c.last = last
		}
		n := d.fill(last, hashes, probes)
		hashes, probes, pos = hashes[n:], probes[n:], pos+n
	}
}

// shares says how many of the blocks from pos on have these hashes, or none, in space 0; missing says whether some have
// none. It begins to look at group from, which is one of the chain's that begins at or before pos, or 0, and returns the last
// one it looked at.
func (d *dict) shares(c *chain, from uint32, pos int, hashes []events.Hash) (n int, missing bool, at uint32) {
	at = from
	if at == 0 {
		at = c.group
	}
	for n < len(hashes) && at != 0 {
		g := d.group(at)
		p := pos + n
		if p >= g.end() {
			if g.link == 0 {
				break
			}
			at = g.link
			continue
		}
		if p < int(g.base) {
			missing = true
			n = min(int(g.base)-pos, len(hashes))
			continue
		}
		o := p - int(g.base)
		for ; n < len(hashes) && o < int(g.n); o++ {
			if g.hash[o] != hashes[n].Lo {
				return n, missing, at
			}
			n++
		}
	}
	if n < len(hashes) {
		missing, n = true, len(hashes)
	}
	return n, missing, at
}

// hashAt is the hash of a block in space 0.
func (d *dict) hashAt(c *chain, pos int) (hash uint64, ok bool) {
	if c.last == 0 || pos >= d.group(c.last).end() {
		return 0, false
	}
	for at := c.group; at != 0; at = d.group(at).link {
		if g := d.group(at); pos < g.end() {
			if pos < int(g.base) {
				break
			}
			return g.hash[pos-int(g.base)], true
		}
	}
	return 0, false
}

// insertShared enters the hash of a block that has none.
func (d *dict) insertShared(id uint32, c *chain, pos int, hash events.Hash) {
	prev, next := uint32(0), c.group
	if c.last != 0 && int(d.group(c.last).base) <= pos {
		prev, next = c.last, 0
	}
	for next != 0 && int(d.group(next).base) < pos {
		prev, next = next, d.group(next).link
	}
	at := prev
	if at == 0 || !d.group(at).before(pos) {
		at = d.newGroup(id, pos, 0)
		d.group(at).link = next
		if prev == 0 {
			c.group = at
		} else {
			d.group(prev).link = at
		}
		if next == 0 {
			c.last = at
		}
	}
	d.fill(at, []events.Hash{hash}, []probe{d.probe(hash.Lo, 0)})
}

// cutShared drops the hashes of a chain from a position on.
func (d *dict) cutShared(c *chain, from int) {
	prev := uint32(0)
	for id := c.group; id != 0; {
		g := d.group(id)
		next := g.link
		keep := min(max(from-int(g.base), 0), int(g.n))
		for o := keep; o < int(g.n); o++ {
			d.drop(handle(id<<4 | uint32(o)))
		}
		g.n = uint8(keep)
		if keep > 0 {
			prev = id
		} else {
			if prev == 0 {
				c.group = next
			} else {
				d.group(prev).link = next
			}
			d.freeGroup(id)
		}
		id = next
	}
	c.last = prev
	d.tidy()
}
