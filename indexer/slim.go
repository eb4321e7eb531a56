package indexer

import (
	"math/bits"
	"unsafe"

	"github.com/kvscout/kvscout/events"
)

// slim is the compact part of a ledger's book: blocks of which nothing is to be said but the engine hash, the place and
// the tiers. Consecutive ones share a group; a table of four-byte entries finds a hash in its group. No pointer lies in
// either, so the garbage collector has nothing to look at. It belongs to a ledger and is guarded like it.
//
// A hash is in it at most once. What needs more (several scopes under one hash, digests, two hashes for one place, the
// batch of a report) stays in the ledger's map, and what a batch changes may pass through there.
type slim struct {
	slabs  []*[groupsInSlab]hashGroup
	next   uint32   // first group never used; 0 is none
	free   []uint32 // groups
	cur    uint32   // group filled last
	table  []uint32 // 0: never used, 1: dead, else fingerprint << bits | group << 4 | offset
	bits   uint     // of group and offset in an entry
	used   int      // entries that are not 0
	live   int      // blocks
	sink   uint32   // keeps touch from being optimised away
	masks  []mask   // by number in groups
	number map[mask]uint16
	// more counts copies beyond the first, of blocks in a single tier.
	more map[uint64]uint32
}

// hashGroup is up to groupLen blocks at consecutive positions of a chain with one mask.
type hashGroup struct {
	chain uint32
	at    uint32 // position of the first << 8 | number of positions
	mask  uint16
	used  uint16 // which positions are there
	_     uint32
	hash  [groupLen]uint64
}

const (
	groupLen     = 14
	groupsInSlab = 32
	slimDead     = 1
	maxMasks     = 1 << 15
	maxGroup     = 1 << 26
)

// slimRef is where a block is in a slim: group << 4 | offset, 0 for nowhere.
type slimRef uint32

func newSlim() *slim {
	return &slim{next: 1, number: make(map[mask]uint16), more: make(map[uint64]uint32)}
}

func (s *slim) group(id uint32) *hashGroup { return &s.slabs[id/groupsInSlab][id%groupsInSlab] }

func mixHash(h uint64) uint64 {
	h ^= h >> 32
	h *= 0xD6E8FEB86659FD93
	h ^= h >> 32
	return h * 0xD6E8FEB86659FD93
}

// start is the first entry to look at. The table may have any length.
func (s *slim) start(x uint64) int {
	hi, _ := bits.Mul64(x, uint64(len(s.table)))
	return int(hi)
}

func (s *slim) entry(x uint64, ref slimRef) uint32 { return uint32(x)<<s.bits | uint32(ref) }

// touch reads what the hashes' search will begin with, so that it waits for memory once and not for each.
func (s *slim) touch(hashes []events.Hash) {
	if len(s.table) == 0 {
		return
	}
	sum := uint32(0)
	for i := range hashes {
		sum += s.table[s.start(mixHash(hashes[i].Lo))]
	}
	s.sink = sum
}

// find is where the block under a hash is.
func (s *slim) find(hash uint64) slimRef {
	if len(s.table) == 0 {
		return 0
	}
	x := mixHash(hash)
	low := uint32(1)<<s.bits - 1
	want := s.entry(x, 0)
	for i := s.start(x); ; {
		e := s.table[i]
		if e == 0 {
			return 0
		}
		if e&^low == want && e != slimDead {
			if ref := slimRef(e & low); s.group(uint32(ref >> 4)).hash[ref&15] == hash {
				return ref
			}
		}
		if i++; i == len(s.table) {
			i = 0
		}
	}
}

// at is the place and the mask of a block.
func (s *slim) at(ref slimRef) (place, mask) {
	g := s.group(uint32(ref >> 4))
	return place(g.chain)<<32 | place(g.at>>8+uint32(ref&15)+1), s.masks[g.mask]
}

// number is the mask's, false when there are too many.
func (s *slim) numbered(m mask) (uint16, bool) {
	if n, ok := s.number[m]; ok {
		return n, true
	}
	if len(s.masks) == maxMasks {
		return 0, false
	}
	n := uint16(len(s.masks))
	s.masks = append(s.masks, m)
	s.number[m] = n
	return n, true
}

// put adds a block whose hash is not there yet; false when it has no room for it.
func (s *slim) put(hash uint64, p place, m mask) bool {
	n, ok := s.numbered(m)
	if !ok || s.next >= maxGroup && len(s.free) == 0 {
		return false
	}
	id, end := p.split()
	pos := uint32(end - 1)
	var g *hashGroup
	if s.cur != 0 {
		g = s.group(s.cur)
	}
	if g == nil || g.used == 0 || g.chain != id || g.mask != n || g.at&0xff == groupLen || g.at>>8+g.at&0xff != pos {
		s.cur = s.newGroup()
		g = s.group(s.cur)
		*g = hashGroup{chain: id, at: pos << 8, mask: n}
	}
	o := g.at & 0xff
	g.hash[o] = hash
	g.used |= 1 << o
	g.at++
	s.live++
	s.enter(hash, slimRef(s.cur<<4|o))
	return true
}

func (s *slim) newGroup() uint32 {
	if n := len(s.free); n > 0 {
		id := s.free[n-1]
		s.free = s.free[:n-1]
		return id
	}
	id := s.next
	s.next++
	if int(id/groupsInSlab) == len(s.slabs) {
		s.slabs = append(s.slabs, new([groupsInSlab]hashGroup))
	}
	return id
}

// enter adds an entry to the table.
func (s *slim) enter(hash uint64, ref slimRef) {
	if (s.used+1)*32 > len(s.table)*27 || uint32(ref)>>s.bits != 0 {
		s.rebuild()
		return // which entered this block with the others
	}
	x := mixHash(hash)
	for i := s.start(x); ; {
		if s.table[i] <= slimDead {
			if s.table[i] == 0 {
				s.used++
			}
			s.table[i] = s.entry(x, ref)
			return
		}
		if i++; i == len(s.table) {
			i = 0
		}
	}
}

// rebuild makes the table anew for what is there, with room for half as much again.
func (s *slim) rebuild() {
	s.table = make([]uint32, max(16, s.live*27/16))
	s.bits = uint(bits.Len32(s.next*3/2*16 + 64))
	s.used = 0
	for id := uint32(1); id < s.next; id++ {
		g := s.group(id)
		for m := g.used; m != 0; m &= m - 1 {
			o := uint32(bits.TrailingZeros16(m))
			s.enter(g.hash[o], slimRef(id<<4|o))
		}
	}
}

// drop forgets a block.
func (s *slim) drop(ref slimRef) {
	id, o := uint32(ref>>4), ref&15
	g := s.group(id)
	x := mixHash(g.hash[o])
	want := s.entry(x, ref)
	for i := s.start(x); ; {
		next := i + 1
		if next == len(s.table) {
			next = 0
		}
		if s.table[i] == want {
			if s.table[next] == 0 { // nothing is looked for beyond it
				s.table[i] = 0
				s.used--
			} else {
				s.table[i] = slimDead
			}
			break
		}
		i = next
	}
	s.live--
	if g.used &^= 1 << o; g.used == 0 {
		s.free = append(s.free, id)
		if id == s.cur {
			s.cur = 0
		}
	}
	if len(s.table) > 64 && s.live*6 < len(s.table) {
		s.shrink()
	}
}

// shrink moves what is there into groups and a table of its size.
func (s *slim) shrink() {
	old := *s
	s.slabs, s.next, s.free, s.cur, s.live, s.used, s.table = nil, 1, nil, 0, 0, 0, nil
	for id := uint32(1); id < old.next; id++ {
		g := old.group(id)
		for m := g.used; m != 0; m &= m - 1 {
			o := bits.TrailingZeros16(m)
			s.put(g.hash[o], place(g.chain)<<32|place(g.at>>8+uint32(o)+1), s.masks[g.mask])
		}
	}
}

// each calls do with every block. do must not change s.
func (s *slim) each(do func(hash uint64, p place, m mask)) {
	for id := uint32(1); id < s.next; id++ {
		g := s.group(id)
		for m := g.used; m != 0; m &= m - 1 {
			o := bits.TrailingZeros16(m)
			do(g.hash[o], place(g.chain)<<32|place(g.at>>8+uint32(o)+1), s.masks[g.mask])
		}
	}
}

// bytes is the memory of groups, table and copies, about.
func (s *slim) bytes() int {
	return len(s.slabs)*groupsInSlab*int(unsafe.Sizeof(hashGroup{})) + len(s.table)*4 + len(s.more)*24
}

// compact says whether a source's blocks may lie in a slim.
func compact(src events.Source) bool { return !src.ReuseReports && !witnessed(src) }
