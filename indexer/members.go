package indexer

import (
	"slices"
	"sync/atomic"
)

// memberHint is the entry found last.
type memberHint struct {
	chain uint32
	lane  lane
	at    uint32
}

// laneIn names what a lane holds behind a hole of a chain.
type laneIn struct {
	chain uint32
	lane  lane
}

// extent is blocks from..to-1 of a chain.
type extent struct{ from, to uint32 }

// viaAt names what a source that is told by its hashes holds of a block.
type viaAt struct {
	chain uint32
	slot  slot
	block uint32
}

// via is what such a source holds of a block under one hash.
type via struct {
	hash uint64
	mask mask
}

// members is the entries as published now.
func (t *chains) members(c *chain) []atomic.Uint32 {
	w := c.held.Load()
	n := int(uint32(w))
	if ext := uint32(w >> 32); ext != 0 {
		return t.held.view(ext, n)
	}
	return c.few[:n]
}

// member is the lane's entry and how many blocks it says, nil if there is none.
func (t *chains) member(id uint32, c *chain, ln lane) (*atomic.Uint32, int) {
	list := t.members(c)
	if h := &t.hint; h.chain == id && h.lane == ln && int(h.at) < len(list) {
		if e := list[h.at].Load(); entryLane(e) == ln {
			return &list[h.at], entryBlocks(e)
		}
	}
	if len(list) >= manyMembers {
		i := t.index[id].find(list, ln)
		if i < 0 {
			return nil, 0
		}
		t.hint = memberHint{id, ln, uint32(i)}
		return &list[i], entryBlocks(list[i].Load())
	}
	for i := range list {
		if e := list[i].Load(); entryLane(e) == ln {
			t.hint = memberHint{id, ln, uint32(i)}
			return &list[i], entryBlocks(e)
		}
	}
	return nil, 0
}

// islesOf is what a lane holds behind holes of a chain.
func (t *chains) islesOf(id uint32, c *chain, ln lane) []extent {
	if !c.hasIslands() {
		return nil
	}
	list, _ := t.islands.Load(laneIn{id, ln})
	return list
}

// holds says whether a lane holds a block of a chain.
func (t *chains) holds(id uint32, c *chain, ln lane, block int) bool {
	_, n := t.member(id, c, ln)
	return block < n || inExtents(t.islesOf(id, c, ln), uint32(block))
}

// within is whether a lane holds block from of a chain, and the end of the run, at most to, of which that is true.
func (t *chains) within(id uint32, c *chain, ln lane, from, to int) (held bool, end int) {
	_, n := t.member(id, c, ln)
	if from < n {
		return true, min(n, to)
	}
	for _, s := range t.islesOf(id, c, ln) {
		if from < int(s.from) {
			return false, min(int(s.from), to)
		}
		if from < int(s.to) {
			return true, min(int(s.to), to)
		}
	}
	return false, to
}

// join makes an entry of n blocks for a lane that has none.
func (t *chains) join(id uint32, c *chain, ln lane, n int) {
	w := c.held.Load()
	ext, count := uint32(w>>32), int(uint32(w))
	room := fewMembers
	if ext != 0 {
		room = classLen(int(t.slabs.note(id).hclass))
	}
	if count == room {
		ext, count = t.regroup(id, c, ext)
	}
	if ext == 0 {
		c.few[count].Store(entry(ln, n))
	} else {
		t.held.view(ext, count+1)[count].Store(entry(ln, n))
	}
	c.held.Store(uint64(ext)<<32 | uint64(count+1))
	t.hint = memberHint{id, ln, uint32(count)}
	if count+1 >= manyMembers {
		t.indexMember(id, c, count)
	}
}

// regroup moves the members of a chain to where there is room, without those that hold nothing.
func (t *chains) regroup(id uint32, c *chain, ext uint32) (next uint32, count int) {
	var kept []uint32
	old := t.members(c)
	for i := range old {
		e := old[i].Load()
		if entryBlocks(e) > 0 || len(t.islesOf(id, c, entryLane(e))) > 0 {
			kept = append(kept, e)
		}
	}
	class := classOf(len(kept) + max(1, len(kept)/2))
	next = t.held.alloc(class)
	list := t.held.view(next, len(kept))
	for i, e := range kept {
		list[i].Store(e)
	}
	note := t.slabs.note(id)
	if ext != 0 {
		t.retire(retiredMembers, ext, note.hclass)
	}
	note.hclass = uint8(class)
	delete(t.index, id)
	return next, len(kept)
}

// indexMember makes the last of a chain's many members findable.
func (t *chains) indexMember(id uint32, c *chain, at int) {
	m := t.index[id]
	if m != nil && (at+1)*4 <= len(m.slots)*3 {
		m.put(entryLane(t.members(c)[at].Load()), at)
		return
	}
	list := t.members(c)
	m = &memberTable{slots: make([]uint32, max(1024, len(list)*3/2))}
	for i := range list {
		m.put(entryLane(list[i].Load()), i)
	}
	t.index[id] = m
}

// memberTable finds the members of a chain by their lanes: 0 or 1 + a position in the list. None is ever taken out.
type memberTable struct{ slots []uint32 }

func (m *memberTable) start(ln lane) int {
	return int(uint64(uint32(ln)*0x9E3779B1) * uint64(len(m.slots)) >> 32)
}

func (m *memberTable) put(ln lane, at int) {
	i := m.start(ln)
	for m.slots[i] != 0 {
		if i++; i == len(m.slots) {
			i = 0
		}
	}
	m.slots[i] = uint32(at + 1)
}

// find is the lane's position in the list, -1 if it has none.
func (m *memberTable) find(list []atomic.Uint32, ln lane) int {
	for i := m.start(ln); m.slots[i] != 0; {
		if at := int(m.slots[i] - 1); entryLane(list[at].Load()) == ln {
			return at
		}
		if i++; i == len(m.slots) {
			i = 0
		}
	}
	return -1
}

// cover notes that a lane of l holds blocks from..to-1, none of which it held.
func (t *chains) cover(id uint32, c *chain, l *Ledger, ln lane, from, to int) {
	e, n := t.member(id, c, ln)
	isles := t.islesOf(id, c, ln)
	if n == 0 && len(isles) == 0 {
		l.noteChainLocked(id)
	}
	if from > n {
		if e == nil {
			t.join(id, c, ln, 0)
		}
		t.setIslands(id, c, ln, isles, withExtent(isles, extent{uint32(from), uint32(to)}))
		return
	}
	n = to
	joined := len(isles) > 0 && int(isles[0].from) == n
	if joined {
		n = int(isles[0].to)
	}
	if e == nil {
		t.join(id, c, ln, n)
	} else {
		e.Store(entry(ln, n))
	}
	if joined { // after: no block may be missing in between
		t.setIslands(id, c, ln, isles, isles[1:])
	}
}

// enter notes that a lane holds a block under one more hash.
func (t *chains) enter(id uint32, c *chain, l *Ledger, ln lane, block int) {
	if t.holds(id, c, ln, block) {
		t.again[laneAt{laneIn{id, ln}, uint32(block)}]++
		return
	}
	t.cover(id, c, l, ln, block, block+1)
}

// leave notes that a lane holds a block, which it held, under one hash less.
func (t *chains) leave(id uint32, c *chain, ln lane, block int) {
	if len(t.again) > 0 {
		if k := (laneAt{laneIn{id, ln}, uint32(block)}); t.again[k] > 1 {
			t.again[k]--
			return
		} else if t.again[k] == 1 {
			delete(t.again, k)
			return
		}
	}
	t.touch(id)
	e, n := t.member(id, c, ln)
	isles := t.islesOf(id, c, ln)
	if block >= n {
		t.setIslands(id, c, ln, isles, withoutBlock(isles, uint32(block)))
		return
	}
	if block+1 < n { // before: no block may be missing in between
		t.setIslands(id, c, ln, isles, append([]extent{{uint32(block + 1), uint32(n)}}, isles...))
	}
	e.Store(entry(ln, block))
}

func (t *chains) setIslands(id uint32, c *chain, ln lane, old, now []extent) {
	if len(now) > 0 {
		t.islands.Store(laneIn{id, ln}, now)
		if len(old) == 0 {
			c.islands.Add(islandChange + 1)
		}
	} else if len(old) > 0 {
		c.islands.Add(islandChange - 1)
		t.islands.Delete(laneIn{id, ln})
	}
}

// vacate takes everything a lane holds of a chain away and returns how much of it that was.
func (t *chains) vacate(id uint32, c *chain, ln lane) {
	e, n := t.member(id, c, ln)
	if e == nil {
		return
	}
	if n > 0 {
		e.Store(entry(ln, 0))
	}
	t.setIslands(id, c, ln, t.islesOf(id, c, ln), nil)
}

// withExtent is a list with an extent added that overlaps none of it.
func withExtent(list []extent, add extent) []extent {
	i, _ := slices.BinarySearchFunc(list, add.from, func(s extent, p uint32) int { return int(int64(s.to) - int64(p)) })
	// list[i] is the first extent that ends at or behind add.from.
	out := make([]extent, 0, len(list)+1)
	out = append(out, list[:i]...)
	if i < len(list) && list[i].to == add.from {
		add.from = list[i].from
		i++
	}
	if i < len(list) && list[i].from == add.to {
		add.to = list[i].to
		i++
	}
	return append(append(out, add), list[i:]...)
}

// withoutBlock is a list with block p, which is in it, taken out.
func withoutBlock(list []extent, p uint32) []extent {
	out := make([]extent, 0, len(list)+1)
	for _, s := range list {
		if p < s.from || p >= s.to {
			out = append(out, s)
			continue
		}
		if s.from < p {
			out = append(out, extent{s.from, p})
		}
		if p+1 < s.to {
			out = append(out, extent{p + 1, s.to})
		}
	}
	return out
}

func inExtents(list []extent, p uint32) bool {
	i, _ := slices.BinarySearchFunc(list, p+1, func(s extent, p uint32) int { return int(int64(s.to) - int64(p)) })
	return i < len(list) && list[i].from <= p
}
