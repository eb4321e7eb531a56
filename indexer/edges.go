package indexer

import (
	"math/bits"
	"sync/atomic"
)

// edgeTable finds a chain by its edge. Readers take no lock and try nothing twice: a slot is written before its tag, a
// chain is checked against the edge, and a table that has grown is published as a whole.
type edgeTable struct {
	now  atomic.Pointer[edgeSlots]
	live int // writers only
}

// edgeSlots is one table, whose slots come in buckets of eight. tags has a byte for each slot of a bucket: 0 never used,
// 1 dead, else a part of the hash. So a search for what is not there, the usual end of a lookup, reads one word of a
// table that is small.
type edgeSlots struct {
	tags  []atomic.Uint64
	slots []atomic.Pointer[chain]
	high  []uint32 // upper half of the hash of each slot, for growing; writers only
	shift uint
	used  int // slots that are live or dead; writers only
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
	deadTag  = 1
)

func newEdgeSlots(log uint) *edgeSlots {
	return &edgeSlots{
		tags:  make([]atomic.Uint64, 1<<log),
		slots: make([]atomic.Pointer[chain], 8<<log),
		high:  make([]uint32, 8<<log),
		shift: 64 - log,
	}
}

func (t *edgeTable) init() { t.now.Store(newEdgeSlots(4)) }

func (e edge) hash() uint64 {
	x := uint64(e.key) ^ uint64(e.parent)*0x9E3779B97F4A7C15
	x *= 0xBF58476D1CE4E5B9
	x ^= x >> 32
	return x * 0x94D049BB133111EB
}

// edgeTag is the hash's tag in every byte, from the upper half below the bits that choose the bucket of most tables.
func edgeTag(h uint64) uint64 { return max(h>>32&0xff, deadTag+1) * lowBits }

// same has the high bit of each byte set in which w is tag's. A byte above such a one may be set wrongly, which its slot
// then disproves.
func same(w, tag uint64) uint64 {
	x := w ^ tag
	return (x - lowBits) &^ x & highBits
}

// find is the chain at an edge, nil if there is none.
func (t *edgeTable) find(e edge) *chain {
	s := t.now.Load()
	h := e.hash()
	tag := edgeTag(h)
	mask := uint64(len(s.tags) - 1)
	for b := h >> s.shift; ; b++ {
		b &= mask
		w := s.tags[b].Load()
		for m := same(w, tag); m != 0; m &= m - 1 {
			if c := s.slots[b*8+uint64(bits.TrailingZeros64(m)/8)].Load(); c != nil && c.edge == e {
				return c
			}
		}
		if same(w, 0) != 0 {
			return nil
		}
	}
}

// add enters a chain whose edge is not there yet.
func (t *edgeTable) add(c *chain) {
	s := t.now.Load()
	if (s.used+1)*4 > len(s.slots)*3 {
		s = t.resize(s)
	}
	t.live++
	s.put(c.edge.hash(), c)
}

func (s *edgeSlots) put(h uint64, c *chain) {
	mask := uint64(len(s.tags) - 1)
	for b := h >> s.shift; ; b++ {
		b &= mask
		w := s.tags[b].Load()
		for i := range uint64(8) {
			old := w >> (8 * i) & 0xff
			if old > deadTag {
				continue
			}
			if old == 0 {
				s.used++
			}
			s.slots[b*8+i].Store(c)
			s.high[b*8+i] = uint32(h >> 32)
			s.tags[b].Store(w&^(0xff<<(8*i)) | edgeTag(h)&(0xff<<(8*i)))
			return
		}
	}
}

// resize publishes a table with room for what is there.
func (t *edgeTable) resize(old *edgeSlots) *edgeSlots {
	log := uint(4)
	for t.live*2 > 8<<log {
		log++
	}
	s := newEdgeSlots(log)
	for i := range old.slots {
		if c := old.slots[i].Load(); c != nil {
			s.put(uint64(old.high[i])<<32, c)
		}
	}
	t.now.Store(s)
	return s
}

// drop takes a chain out.
func (t *edgeTable) drop(c *chain) {
	s := t.now.Load()
	h := c.edge.hash()
	mask := uint64(len(s.tags) - 1)
	for b := h >> s.shift; ; b++ {
		b &= mask
		w := s.tags[b].Load()
		for i := range uint64(8) {
			if s.slots[b*8+i].Load() != c {
				continue
			}
			w &^= 0xff << (8 * i)
			if same(w|deadTag<<(8*i), 0) != 0 {
				s.used-- // the bucket had room: no search ever went past it
			} else {
				w |= deadTag << (8 * i)
			}
			s.tags[b].Store(w)
			s.slots[b*8+i].Store(nil)
			t.live--
			if len(s.tags) > 16 && t.live*16 < len(s.slots) {
				t.resize(s)
			}
			return
		}
		if same(w, 0) != 0 {
			return
		}
	}
}
