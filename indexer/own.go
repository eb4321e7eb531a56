package indexer

import (
	"slices"

	"github.com/kvscout/kvscout/events"
)

// This file is about sources with a space of their own: engines that seed their hashes by process.

// appendOwnLocked enters hashes of the source's own for the blocks of a chain from pos on.
func (l *Ledger) appendOwnLocked(id uint32, pos int, hashes []events.Hash, probes []probe) {
	d := &l.x.chains.dict
	for len(hashes) > 0 {
		var at uint32
		if n := len(l.groups); n > 0 {
			at = l.groups[n-1]
		}
		if g := d.groupOf(at); g == nil || !g.of(l.space) || g.claimed || g.chain != id || !g.before(pos) {
			at = d.newGroup(id, pos, l.space)
			l.noteGroupLocked(at)
		}
		n := d.fill(at, hashes, probes)
		hashes, probes, pos = hashes[n:], probes[n:], pos+n
	}
}

// groupOf is a group that may be 0 or free.
func (d *dict) groupOf(id uint32) *hashGroup {
	if id == 0 || !d.rooms.has(id) {
		return nil
	}
	return d.group(id)
}

func (l *Ledger) noteGroupLocked(id uint32) {
	if len(l.groups) == cap(l.groups) && len(l.groups) >= 64 {
		l.groups = l.ownGroupsLocked()
		if n := len(l.groups); n*8 > cap(l.groups)*7 {
			l.groups = slices.Grow(l.groups, n/4)
		}
	}
	l.groups = append(l.groups, id)
}

// ownGroupsLocked are the groups of the source's space.
func (l *Ledger) ownGroupsLocked() []uint32 {
	d := &l.x.chains.dict
	slices.Sort(l.groups)
	l.groups = slices.DeleteFunc(slices.Compact(l.groups), func(id uint32) bool {
		g := d.groupOf(id)
		return g == nil || !g.of(l.space)
	})
	return l.groups
}

// dropOwnLocked forgets a hash of the source's own space.
func (l *Ledger) dropOwnLocked(h handle) {
	d := &l.x.chains.dict
	d.drop(h)
	if id := uint32(h >> 4); d.group(id).used == 0 {
		d.freeGroup(id)
	}
	d.tidy()
}

// maxMoved is how many hashes a source moves at most to a space of its own. One with more claims what it can where it is,
// which is quicker at once, and slower afterwards: its hashes are then to be looked for in two places.
const maxMoved = 1 << 14

// ownSpaceLocked gives the source a space of its own, and moves the hashes of its simple blocks there.
func (l *Ledger) ownSpaceLocked() {
	t := l.x.chains
	l.space = uint32(l.slot)
	l.cur.ok = false
	lanes := l.table.Load().lanes
	move := l.stats.handles.Load() <= int64(t.dict.maxMoved)
	for _, id := range l.chainsLocked() {
		c := t.slabs.at(id)
		switch {
		case c.group == 0 || !t.holdsAny(id, c, lanes):
		case move || !t.onlyHolder(id, c, lanes):
			l.copyOutLocked(id, c)
		default:
			l.claimLocked(id, c)
		}
	}
}

// onlyHolder says whether nobody but these lanes holds blocks of a chain.
func (t *chains) onlyHolder(id uint32, c *chain, lanes []laneOf) bool {
	list := t.members(c)
	for i := range list {
		e := list[i].Load()
		ln := entryLane(e)
		if slices.ContainsFunc(lanes, func(of laneOf) bool { return of.lane == ln }) {
			continue
		}
		if entryBlocks(e) > 0 || len(t.islesOf(id, c, ln)) > 0 {
			return false
		}
	}
	return true
}

// claimLocked makes the shared hashes of a chain the source's own, where they are. Those that are no simple block of the
// source go.
func (l *Ledger) claimLocked(id uint32, c *chain) {
	d := &l.x.chains.dict
	l.claimed = true
	for at := c.group; at != 0; {
		g := d.group(at)
		next := g.link
		for o := range int(g.n) {
			if !l.hasSimpleLocked(placeAt(id, int(g.base)+o+1)) {
				d.drop(handle(at<<4 | uint32(o)))
			}
		}
		if g.used == 0 {
			d.freeGroup(at)
		} else {
			g.owned, g.claimed, g.link = true, true, l.space
			d.owned++
			l.noteGroupLocked(at)
		}
		at = next
	}
	c.group, c.last = 0, 0
}

// copyOutLocked copies the shared hashes of the source's simple blocks of a chain.
func (l *Ledger) copyOutLocked(id uint32, c *chain) {
	d := &l.x.chains.dict
	var run []events.Hash
	from := 0
	for at := c.group; at != 0; at = d.group(at).link {
		g := d.group(at)
		for o := range int(g.n) {
			pos := int(g.base) + o
			if len(run) > 0 && pos != from+len(run) {
				l.appendOwnLocked(id, from, run, d.probes(nil, run, l.space))
				run = run[:0]
			}
			if !l.hasSimpleLocked(placeAt(id, pos+1)) {
				continue
			}
			if len(run) == 0 {
				from = pos
			}
			run = append(run, events.HashInt(g.hash[o]))
		}
	}
	l.appendOwnLocked(id, from, run, d.probes(nil, run, l.space))
}
