package indexer

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/kvscout/kvscout/events"
)

// This file keeps the index below Options.MaxBytes. When it is above, the chains that were stored into longest ago are
// forgotten, whoever holds them, children before what they hang off, until it is a little below: so the search for them
// comes now and then, not with each batch. Whoever loses blocks so is in doubt until its next clear (DoubtCapped), and
// every copy is counted.
//
// Memory that waits for readers is on its way out, and so no reason to forget more. Nor is room inside slabs, as far as
// it can be helped: capFloor ends the search where mostly such room would be left.

const (
	// capStep is the part of what is in use that is forgotten at once, at least; capSteps is how often in one batch.
	capStep  = 16
	capSteps = 8
	// capFloor is the part of MaxBytes to which what is in use may fall before room in slabs is suffered above it.
	capFloor = 2
)

// capLocked forgets what there is no room for. Needs x.mu, and nothing loose, hinted or touched.
func (x *stripe) capLocked() {
	limit := x.maxBytes()
	if limit <= 0 || x.chains == nil || x.weighAll() <= limit {
		return
	}
	x.capOrphansLocked()
	t := x.chains
	var order *aging
	for range capSteps {
		t.reclaim()
		used := x.inUse()
		if x.weighAll() <= limit && order != nil || used <= limit/capFloor {
			return
		}
		if order == nil {
			order = t.leaves()
		}
		victims := order.take(float64(max(used/capStep, used-limit)) / float64(used))
		if len(victims) == 0 {
			return
		}
		x.evictLocked(victims)
		t.settle()
	}
	t.reclaim()
}

// maxBytes is the stripe's share of Options.MaxBytes: all that were made have the same.
func (x *stripe) maxBytes() int {
	n := 0
	x.index.each(func(*stripe) { n++ })
	return x.opts.MaxBytes / max(n, 1)
}

// weighAll is about how much memory the stripe takes, less what waits for readers.
func (x *stripe) weighAll() int {
	return x.chains.bytes() + int(x.books.Load()) - int(x.chains.waiting.Load())
}

// inUse is weighAll without room in slabs.
func (x *stripe) inUse() int {
	return x.chains.inUse() + int(x.books.Load()) - int(x.chains.waiting.Load())
}

// capOrphansLocked gives up the stores of sources that lost blocks: most wait for a parent that was forgotten.
func (x *stripe) capOrphansLocked() {
	x.ledgers(func(l *Ledger) {
		n := l.orphans.stores
		if n == 0 || Doubt(l.doubts.Load())&DoubtCapped == 0 {
			return
		}
		l.orphans.clear()
		l.stats.orphansDropped.Add(int64(n))
		for range n {
			l.Reject(events.ReasonOrphanDropped)
		}
		l.doubt(DoubtOrphans, false)
		l.weighLocked()
	})
}

// aging is chains that may be forgotten, by when they were stored into.
type aging struct {
	t     *chains
	list  []aged
	total int // weight of all chains that are left
}

type aged struct {
	age uint32 // in batches
	id  uint32
}

func (a *aging) Len() int           { return len(a.list) }
func (a *aging) Less(i, j int) bool { return a.list[i].age > a.list[j].age }
func (a *aging) Swap(i, j int)      { a.list[i], a.list[j] = a.list[j], a.list[i] }
func (a *aging) Push(v any)         { a.list = append(a.list, v.(aged)) }
func (a *aging) Pop() any {
	last := a.list[len(a.list)-1]
	a.list = a.list[:len(a.list)-1]
	return last
}

// leaves are the chains without children, roots left out.
func (t *chains) leaves() *aging {
	a := &aging{t: t}
	t.slabs.each(func(id uint32, c *chain, note *chainNote) {
		a.total += t.weight(c, note)
		if c.parent != 0 && c.kids.Load() == 0 {
			a.list = append(a.list, aged{t.now - note.stored, id})
		}
	})
	heap.Init(a)
	return a
}

// take is the oldest chains that are a part of the weight of all, children before their parents. What their holders' books
// have of them is taken to be in proportion.
func (a *aging) take(part float64) (out []uint32) {
	t := a.t
	gone := make(map[uint32]uint32) // children taken, by parent
	left := a.total - int(part*float64(a.total))
	for a.total > left && len(a.list) > 0 {
		id := heap.Pop(a).(aged).id
		if !t.slabs.rooms.has(id) || t.slabs.note(id).gone {
			continue // it went with its last child
		}
		out = append(out, id)
		c := t.slabs.at(id)
		a.total -= t.weight(c, t.slabs.note(id))
		up := c.parent
		gone[up]++
		if p := t.slabs.at(up); p.parent != 0 && p.kids.Load() == gone[up] {
			heap.Push(a, aged{t.now - t.slabs.note(up).stored, up})
		}
	}
	return out
}

// storedAgainLocked notes that a block that is held was stored again, or reported.
func (x *stripe) storedAgainLocked(p place) {
	if x.chains != nil {
		id, _ := p.split()
		x.chains.slabs.note(id).stored = x.chains.now
	}
}

// evictLocked makes everybody forget chains.
func (x *stripe) evictLocked(victims []uint32) {
	t := x.chains
	gone := make(map[uint32]bool, len(victims))
	of := make(map[*Ledger][]uint32)
	for _, id := range victims {
		gone[id] = true
		c := t.slabs.at(id)
		list := t.members(c)
		for i := range list {
			ln := entryLane(list[i].Load())
			l := t.lanes.at(ln).ledger.Load()
			if l == nil {
				continue // closed, and so holds nothing
			}
			if ids := of[l]; len(ids) == 0 || ids[len(ids)-1] != id {
				of[l] = append(ids, id)
			}
		}
	}
	for l, ids := range of {
		l.evictLocked(ids, gone)
	}
}

// evictLocked forgets what the source holds of some chains, which are among gone.
func (l *Ledger) evictLocked(ids []uint32, gone map[uint32]bool) {
	was := l.doubts.Load()
	l.doubt(DoubtCapped, true) // before: what is missing must not look like a fact
	n := l.evictOddLocked(gone) + l.evictSimpleLocked(ids, gone)
	if n == 0 {
		l.doubt(DoubtCapped, Doubt(was)&DoubtCapped != 0)
		return
	}
	l.stats.evicted.Add(uint64(n))
	l.cur, l.removed = cursor{}, 0
	l.weighLocked()
}

// evictOddLocked forgets the blocks of the book in some chains, and says how many copies of how many tiers those were.
func (l *Ledger) evictOddLocked(gone map[uint32]bool) (n int) {
	var all []*block
	for _, b := range l.blocks {
		for ; b != nil; b = b.next {
			if id, _ := b.place.split(); gone[id] {
				all = append(all, b)
			}
		}
	}
	// From the ends of prompts to their starts: what is held shrinks without holes.
	slices.SortFunc(all, func(a, b *block) int { return cmp.Compare(b.place, a.place) })
	for _, b := range all {
		for _, c := range b.copies {
			l.stats.resident[tierOf(c.bit)].Add(-1)
			n++
		}
		b.copies = nil
		l.publishLocked(b, 0)
		l.forgetLocked(b)
	}
	return n
}

// evictSimpleLocked is evictOddLocked for simple blocks, once no others are left there.
func (l *Ledger) evictSimpleLocked(ids []uint32, gone map[uint32]bool) (n int) {
	if !l.compact {
		return 0
	}
	t := l.x.chains
	lanes := l.table.Load().lanes
	for _, id := range ids {
		c := t.slabs.at(id)
		blocks := t.heldIn(id, c, lanes)
		if blocks == 0 {
			continue
		}
		for i := range lanes {
			held := t.heldIn(id, c, lanes[i:i+1])
			l.stats.resident[tierOf(lanes[i].bit)].Add(-int64(held))
			n += held
			t.vacate(id, c, lanes[i].lane)
		}
		delete(l.more, id)
		c.refs -= uint64(blocks)
		t.touch(id)
		l.stats.handles.Add(-int64(blocks))
		l.x.leaveLocked(t.scopes[t.slabs.note(id).scope], blocks)
	}
	if l.space != 0 {
		l.dropGroupsLocked(gone)
	}
	return n
}

// dropGroupsLocked forgets the hashes of the source's own space in some chains.
func (l *Ledger) dropGroupsLocked(gone map[uint32]bool) {
	d := &l.x.chains.dict
	l.groups = slices.DeleteFunc(l.ownGroupsLocked(), func(id uint32) bool {
		if !gone[d.group(id).chain] {
			return false
		}
		d.dropGroup(id)
		return true
	})
	d.tidy()
}
