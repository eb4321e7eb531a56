package indexer

import "unsafe"

// settle frees chains that nobody refers to, and their parents likewise, and cuts off long ends that nobody holds.
func (t *chains) settle() {
	for _, id := range t.touched {
		t.slabs.note(id).touched = false
	}
	for _, id := range t.touched {
		for id != 0 {
			c, note := t.slabs.at(id), t.slabs.note(id)
			if note.gone {
				break
			}
			if c.refs > 0 || c.kids.Load() > 0 {
				t.trim(id, c, note)
				break
			}
			id = t.drop(id, c, note)
		}
	}
	t.touched = t.touched[:0]
	if len(t.limbo) >= 64 {
		t.reclaim()
	}
}

// drop frees a chain and returns its parent. Readers that are in it find nobody there; its keys stay as they are until
// they have left.
func (t *chains) drop(id uint32, c *chain, note *chainNote) (parent uint32) {
	note.gone = true
	t.count.Add(-int64(note.live))
	if c.parent == 0 {
		t.scopes[note.scope] = nil
		t.unused = append(t.unused, note.scope)
	} else {
		t.edges.drop(edge{c.parent, int(c.fork), t.keysOf(c)[0]}, id)
		t.unlink(c, note)
	}
	t.dict.cutShared(c, 0)
	if w := c.keys.Load(); w>>32 != 0 {
		t.retire(retiredKeys, uint32(w>>32), note.class)
	}
	if w := c.held.Load(); w>>32 != 0 {
		t.retire(retiredMembers, uint32(w>>32), note.hclass)
	}
	c.held.Store(0)
	delete(t.index, id)
	t.retire(retiredChain, id, 0)
	return c.parent
}

// unlink takes a chain out of its parent's children.
func (t *chains) unlink(c *chain, note *chainNote) {
	up := t.slabs.note(c.parent)
	if note.prev == 0 {
		up.kid = note.next
	} else {
		t.slabs.note(note.prev).next = note.next
	}
	if note.next != 0 {
		t.slabs.note(note.next).prev = note.prev
	}
	t.slabs.at(c.parent).kids.Add(^uint32(0))
	if c.fork != uint32(up.maxFork) {
		return
	}
	up.maxFork = 0
	for kid := up.kid; kid != 0 && uint32(up.maxFork) < c.fork; kid = t.slabs.note(kid).next {
		up.maxFork = max(up.maxFork, uint16(t.slabs.at(kid).fork))
	}
}

// trim notes how much of the chain is in use, and cuts the rest off if that is much.
func (t *chains) trim(id uint32, c *chain, note *chainNote) {
	if note.idle > 0 || c.parent == 0 {
		return // somebody refers to blocks that nobody holds
	}
	live := t.liveIn(id, c, note)
	t.count.Add(int64(live) - int64(note.live))
	note.live = uint16(live)
	if n := c.length(); n-live >= max(16, n/4) {
		t.cut(c, note, live)
	}
}

// liveIn is how many leading blocks of the chain are held or lead to a child.
func (t *chains) liveIn(id uint32, c *chain, note *chainNote) (live int) {
	live = int(note.maxFork)
	list := t.members(c)
	islands := c.hasIslands()
	for i := 0; i < len(list) && live < int(note.live); i++ {
		e := list[i].Load()
		live = max(live, entryBlocks(e))
		if islands {
			if s, _ := t.islands.Load(laneIn{id, entryLane(e)}); len(s) > 0 {
				live = max(live, int(s[len(s)-1].to))
			}
		}
	}
	return min(live, int(note.live))
}

// cut drops the keys behind the first n. What they were must stay true for readers that still see them, so the chain is
// not appended to before those have left.
func (t *chains) cut(c *chain, note *chainNote, n int) {
	ext := uint32(c.keys.Load() >> 32)
	if class := classOf(n); class < int(note.class) {
		next := t.keys.alloc(class)
		copy(t.keys.view(next, n), t.keys.view(ext, n))
		t.retire(retiredKeys, ext, note.class)
		ext, note.class = next, uint8(class)
	}
	c.keys.Store(uint64(ext)<<32 | uint64(n))
	note.sealed = max(1, uint32(t.epochs.now.Load()))
	t.dict.cutShared(c, n)
}

func (t *chains) retire(kind retiredKind, id uint32, class uint8) {
	r := retired{epoch: t.epochs.now.Load(), id: id, class: class, kind: kind}
	t.limbo = append(t.limbo, r)
	t.waiting.Add(r.bytes())
}

func (r retired) bytes() int64 {
	switch r.kind {
	case retiredKeys:
		return int64(classLen(int(r.class))) * int64(unsafe.Sizeof(Key(0)))
	case retiredMembers:
		return int64(classLen(int(r.class))) * 4
	default:
		return int64(unsafe.Sizeof(chain{}) + unsafe.Sizeof(chainNote{}))
	}
}

// reclaim releases what was retired and no reader can see any more.
func (t *chains) reclaim() {
	if len(t.limbo) == 0 {
		return
	}
	safe := t.epochs.oldest()
	i := 0
	for ; i < len(t.limbo) && t.limbo[i].epoch < safe; i++ {
		r := t.limbo[i]
		t.waiting.Add(-r.bytes())
		switch r.kind {
		case retiredKeys:
			t.keys.release(r.id, int(r.class))
		case retiredMembers:
			t.held.release(r.id, int(r.class))
		case retiredChain:
			t.slabs.give(r.id)
		}
	}
	if t.limbo = t.limbo[:copy(t.limbo, t.limbo[i:])]; len(t.limbo) == 0 && cap(t.limbo) > 4096 {
		t.limbo = nil
	}
	if t.keys.used > 0 && t.keys.vacate() {
		t.move()
	}
}

// move puts the keys of chains elsewhere that lie in slabs to be emptied. Only its chain names an extent, so that is a copy
// and one store.
func (t *chains) move() {
	t.slabs.each(func(_ uint32, c *chain, note *chainNote) {
		w := c.keys.Load()
		ext, n := uint32(w>>32), int(uint32(w))
		if ext == 0 || !t.keys.leaves(ext) {
			return
		}
		next := t.keys.alloc(int(note.class))
		copy(t.keys.view(next, n), t.keys.view(ext, n))
		c.keys.Store(uint64(next)<<32 | uint64(n))
		t.retire(retiredKeys, ext, note.class)
	})
}
