package indexer

import (
	"math/bits"
	"sync/atomic"
)

// edge is how a chain hangs off another: after how many blocks, and its own first key. Roots are nobody's children.
type edge struct {
	parent uint32
	fork   int
	key    Key
}

// edgeTable finds a chain by its edge. Readers take no lock and try nothing twice: a slot is written before its tag, what
// is found is checked against the edge by who asks, and a table that has grown is published as a whole.
type edgeTable struct {
	now  atomic.Pointer[edgeSlots]
	live int // writers only
}

// edgeSlots is one table, whose slots come in buckets of eight. tags has a byte for each slot of a bucket: 0 never used,
// 1 dead, else a part of the hash. So a search for what is not there, the usual end of a lookup, reads one word of a
// table that is small. A slot is the upper half of the hash, and the chain's id.
type edgeSlots struct {
	tags  []atomic.Uint64
	slots []atomic.Uint64
	shift uint
	used  int // slots that are live or dead; writers only
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
	deadTag  = 1
	// edgeBytes is what an edge takes in a table.
	edgeBytes = 9
)

func newEdgeSlots(log uint) *edgeSlots {
	return &edgeSlots{tags: make([]atomic.Uint64, 1<<log), slots: make([]atomic.Uint64, 8<<log), shift: 64 - log}
}

func (t *edgeTable) init() { t.now.Store(newEdgeSlots(4)) }

func (e edge) hash() uint64 {
	x := uint64(e.key) ^ (uint64(e.parent)<<blockBits^uint64(e.fork))*0x9E3779B97F4A7C15
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

// touch reads what a search by a hash begins with, so that it is on its way from memory when it is needed.
func (t *edgeTable) touch(h uint64) uint32 {
	s := t.now.Load()
	return uint32(s.tags[h>>s.shift&uint64(len(s.tags)-1)].Load())
}

// find is the chain at an edge, 0 if there is none.
func (t *chains) find(e edge) uint32 { return t.findBy(e.hash(), e) }

// findBy is find with the edge's hash.
func (t *chains) findBy(h uint64, e edge) uint32 {
	s := t.edges.now.Load()
	tag := edgeTag(h)
	mask := uint64(len(s.tags) - 1)
	for b := h >> s.shift; ; b++ {
		b &= mask
		w := s.tags[b].Load()
		for m := same(w, tag); m != 0; m &= m - 1 {
			v := s.slots[b*8+uint64(bits.TrailingZeros64(m)/8)].Load()
			if v>>32 == h>>32 && t.hangs(uint32(v), e) {
				return uint32(v)
			}
		}
		if same(w, 0) != 0 {
			return 0
		}
	}
}

// hangs says whether a chain that was found in the table hangs at an edge.
func (t *chains) hangs(id uint32, e edge) bool {
	c := t.slabs.at(id)
	if c.parent != e.parent || c.fork != uint32(e.fork) {
		return false
	}
	keys := t.keysOf(c)
	return len(keys) > 0 && keys[0] == e.key
}

// add enters a chain whose edge is not there yet.
func (t *edgeTable) add(e edge, id uint32) {
	s := t.now.Load()
	if (s.used+1)*4 > len(s.slots)*3 {
		s = t.resize(s)
	}
	t.live++
	s.put(e.hash(), id)
}

func (s *edgeSlots) put(h uint64, id uint32) {
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
			s.slots[b*8+i].Store(h>>32<<32 | uint64(id))
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
	for b := range old.tags {
		w := old.tags[b].Load()
		for i := range 8 {
			if w>>(8*i)&0xff > deadTag {
				v := old.slots[b*8+i].Load()
				s.put(v>>32<<32, uint32(v))
			}
		}
	}
	t.now.Store(s)
	return s
}

// drop takes a chain out.
func (t *edgeTable) drop(e edge, id uint32) {
	s := t.now.Load()
	h := e.hash()
	mask := uint64(len(s.tags) - 1)
	for b := h >> s.shift; ; b++ {
		b &= mask
		w := s.tags[b].Load()
		for i := range uint64(8) {
			if w>>(8*i)&0xff <= deadTag || s.slots[b*8+i].Load() != h>>32<<32|uint64(id) {
				continue
			}
			w &^= 0xff << (8 * i)
			if same(w|deadTag<<(8*i), 0) != 0 {
				s.used-- // the bucket had room: no search ever went past it
			} else {
				w |= deadTag << (8 * i)
			}
			s.tags[b].Store(w)
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

func (t *edgeTable) bytes() int { return len(t.now.Load().slots) * edgeBytes }
