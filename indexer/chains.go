package indexer

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/puzpuzpuz/xsync/v4"
)

// chains is the tree of chains.
//
//  1. The content of a block of a chain never changes while the chain lives.
//  2. An entry of n blocks in lane l says: l holds blocks 0..n-1 of the chain. What else l holds there are its islands,
//     none of which begins at n or before. Readers of one lane of a dense group need no islands.
//  3. A chain with neither references nor children is gone at the next settle.
//  4. A key follows (chain, position) either in the chain or in a child, never in both.
//  5. Ids of chains, extents of keys and of members are used again only when no reader is left that could look at them.
type chains struct {
	slabs   chainSlabs
	keys    arena[Key]
	held    arena[atomic.Uint32] // members of chains that have more than a few
	edges   edgeTable
	islands *xsync.Map[laneIn, []extent] // values are replaced, never changed
	vias    *xsync.Map[viaAt, []via]     // likewise
	lanes   owners
	epochs  epochs
	count   atomic.Int64 // live blocks
	waiting atomic.Int64 // bytes of keys and members in limbo

	// The rest is the writers'.
	dict    dict
	scopes  []*scope                // of chainNote.scope
	unused  []uint32                // free numbers of scopes
	index   map[uint32]*memberTable // of chains with many members
	hint    memberHint
	touched []uint32 // since the last settle
	limbo   []retired
	now     uint32 // counts batches, for chainNote.stored
	// again counts, where a source has a block in a lane under several hashes, those beyond the first.
	again map[laneAt]uint32
}

// laneAt is a block in a lane.
type laneAt struct {
	laneIn
	block uint32
}

func newChains() *chains {
	t := &chains{
		islands: xsync.NewMap[laneIn, []extent](),
		vias:    xsync.NewMap[viaAt, []via](),
		index:   make(map[uint32]*memberTable),
		again:   make(map[laneAt]uint32),
	}
	t.dict.maxMoved, t.dict.fewSlabs = maxMoved, fewSlabs
	t.edges.init()
	t.epochs.init()
	return t
}

// keysOf is the chain's keys as published now.
func (t *chains) keysOf(c *chain) []Key {
	w := c.keys.Load()
	if w>>32 == 0 {
		return nil
	}
	return t.keys.view(uint32(w>>32), int(uint32(w)))
}

// make is a chain that is at no edge yet.
func (t *chains) make(parent uint32, fork int, scope uint32) (uint32, *chain) {
	id := t.slabs.alloc()
	c := t.slabs.at(id)
	c.keys.Store(0)
	c.held.Store(0)
	c.kids.Store(0)
	c.islands.Store(0)
	c.parent, c.fork = parent, uint32(fork)
	c.group, c.last, c.refs = 0, 0, 0
	*t.slabs.note(id) = chainNote{scope: scope, stored: t.now}
	return id, c
}

func (t *chains) root(s *scope) (place, uint64) {
	var n uint32
	if k := len(t.unused); k > 0 {
		n, t.unused = t.unused[k-1], t.unused[:k-1]
	} else {
		n = uint32(len(t.scopes))
		t.scopes = append(t.scopes, nil)
	}
	t.scopes[n] = s
	id, c := t.make(0, 0, n)
	c.refs = 1
	return placeAt(id, 0), uint64(id)
}

func (t *chains) up(p place) (parent place, key Key, root bool) {
	id, n := p.split()
	c := t.slabs.at(id)
	key = t.keysOf(c)[n-1]
	if n > 1 {
		return placeAt(id, n-1), key, false
	}
	return placeAt(c.parent, int(c.fork)), key, t.slabs.at(c.parent).parent == 0
}

// scopeOf is the scope of a place.
func (t *chains) scopeOf(p place) *scope { return t.scopes[t.slabs.note(uint32(p>>32)).scope] }

func (t *chains) child(parent place, key Key) place {
	id, n := parent.split()
	c := t.slabs.at(id)
	keys := t.keysOf(c)
	switch {
	case n < len(keys) && keys[n] == key:
	case n == len(keys) && t.extendable(id, c, n, key):
		t.extend(id, c, []Key{key})
	default:
		if kid := t.find(edge{id, n, key}); kid != 0 {
			id, n = kid, 0
		} else {
			id, n = t.sprout(id, n, []Key{key}), 0
		}
		c = t.slabs.at(id)
	}
	c.refs++
	note := t.slabs.note(id)
	note.idle++
	if n == int(note.live) {
		note.live++
		t.count.Add(1)
	}
	return placeAt(id, n+1)
}

// extendable says whether the chain, which has n keys, may be appended key. A root may not.
func (t *chains) extendable(id uint32, c *chain, n int, key Key) bool {
	if n == 0 || n >= maxChain {
		return false
	}
	if note := t.slabs.note(id); note.sealed != 0 {
		if int32(uint32(t.epochs.oldest())-note.sealed) <= 0 { // epochs outgrow 32 bits
			return false
		}
		note.sealed = 0
	}
	return c.kids.Load() == 0 || t.find(edge{id, n, key}) == 0
}

// extend appends keys, for which the chain has room by maxChain.
func (t *chains) extend(id uint32, c *chain, add []Key) {
	w := c.keys.Load()
	ext, n := uint32(w>>32), int(uint32(w))
	m := n + len(add)
	note := t.slabs.note(id)
	if ext == 0 || m > classLen(int(note.class)) {
		class := classOf(m)
		next := t.keys.alloc(class)
		if ext != 0 {
			copy(t.keys.view(next, n), t.keys.view(ext, n))
			t.retire(retiredKeys, ext, note.class)
		}
		ext, note.class = next, uint8(class)
	}
	copy(t.keys.view(ext, m)[n:], add)
	c.keys.Store(uint64(ext)<<32 | uint64(m))
}

// sprout makes the child of a chain after n blocks that has keys, at most maxChain of them.
func (t *chains) sprout(parent uint32, n int, keys []Key) uint32 {
	p := t.slabs.at(parent)
	note := t.slabs.note(parent)
	id, c := t.make(parent, n, note.scope)
	t.extend(id, c, keys)
	if t.slabs.note(id).next = note.kid; note.kid != 0 {
		t.slabs.note(note.kid).prev = id
	}
	note.kid = id
	p.kids.Add(1)
	note.maxFork = max(note.maxFork, uint16(n))
	t.edges.add(edge{parent, n, keys[0]}, id)
	return id
}

func (t *chains) release(p place) {
	id, _ := p.split()
	t.slabs.at(id).refs--
	if note := t.slabs.note(id); note.idle > 0 { // a root's reference is not idle
		note.idle--
	}
	t.touch(id)
}

func (t *chains) touch(id uint32) {
	if note := t.slabs.note(id); !note.touched {
		note.touched = true
		t.touched = append(t.touched, id)
	}
}

func (t *chains) hold(p place, l *Ledger, hash uint64, was, now mask) {
	id, n := p.split()
	c, block := t.slabs.at(id), n-1
	note := t.slabs.note(id)
	switch {
	case was == 0:
		note.idle--
	case now == 0:
		note.idle++
	}
	note.stored = t.now
	if witnessed(l.src) {
		t.holdVia(id, c, block, l, hash, now)
		return
	}
	for d := was ^ now; d != 0; d &= d - 1 {
		i := bits.TrailingZeros64(uint64(d))
		ln := t.lanes.of(l, i, 1<<i)
		if now>>i&1 != 0 {
			t.enter(id, c, l, ln, block)
		} else {
			t.leave(id, c, ln, block)
		}
	}
}

// holdVia is hold for a source whose hashes tell its blocks apart: one lane finds the blocks, and a list for each says
// what is held under which hash.
func (t *chains) holdVia(id uint32, c *chain, block int, l *Ledger, hash uint64, now mask) {
	at := viaAt{chain: id, slot: l.slot, block: uint32(block)}
	old, _ := t.vias.Load(at)
	next := make([]via, 0, len(old)+1)
	for _, v := range old {
		if v.hash != hash {
			next = append(next, v)
		}
	}
	if now != 0 {
		next = append(next, via{hash: hash, mask: now})
	}
	ln := t.lanes.of(l, 0, 0)
	if len(next) == 0 {
		t.leave(id, c, ln, block)
		t.vias.Delete(at)
		return
	}
	t.vias.Store(at, next)
	if len(old) == 0 {
		t.enter(id, c, l, ln, block)
	}
}

func (t *chains) close(l *Ledger) {
	t.lanes.give(l)
	t.reclaim()
}

func (t *chains) size() int { return int(t.count.Load()) }

// What an entry of a map takes with its share of the map, about.
const isleBytes = 96

func (t *chains) bytes() int {
	n := int(t.keys.mem.Load()+t.held.mem.Load()+t.dict.mem.Load()+t.slabs.mem.Load()) + t.edges.bytes()
	return n + (t.islands.Size()+t.vias.Size())*isleBytes
}

// inUse is bytes without what slabs have room for. Writers only.
func (t *chains) inUse() int {
	n := classUnit(t.keys.used, unsafe.Sizeof(Key(0))) + classUnit(t.held.used, unsafe.Sizeof(atomic.Uint32{}))
	n += t.slabs.rooms.used*chainBytes + t.dict.inUse() + t.edges.bytes()
	return n + (t.islands.Size()+t.vias.Size())*isleBytes
}

// classUnit is the size of so many units of an arena.
func classUnit(units int, size uintptr) int { return units * unitLen * int(size) }

// weight is about what goes with a chain, hashes of sources with spaces of their own left out.
func (t *chains) weight(c *chain, note *chainNote) int {
	n := chainBytes + 2*edgeBytes
	if w := c.keys.Load(); w>>32 != 0 {
		n += classUnit(classUnits(int(note.class)), unsafe.Sizeof(Key(0)))
	}
	if w := c.held.Load(); w>>32 != 0 {
		n += classUnit(classUnits(int(note.hclass)), unsafe.Sizeof(atomic.Uint32{}))
	}
	if c.group != 0 {
		n += (c.length() + groupLen - 1) / groupLen * int(unsafe.Sizeof(hashGroup{}))
	}
	return n
}
