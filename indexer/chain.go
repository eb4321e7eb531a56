package indexer

import (
	"sync/atomic"
	"unsafe"
)

// chain is a run of blocks without a fork: their keys, stored once however many sources hold them, and for each lane how
// many of them it has from the chain's start. Chains never split: where prompts part, a child chain hangs off (chain,
// position), so the place of a block never changes. A scope's root is a chain without keys.
//
// What a position contains never changes while the chain lives: keys are appended, or cut off at the end and then not
// appended again before every reader of the longer form has left. So each member's entry is true by itself, and readers
// may load keys and members at different moments.
//
// It is one cache line; what only writers need and do not need at once is in a chainNote.
type chain struct {
	keys atomic.Uint64 // extent<<32 | number of keys
	// held is the members: extent<<32 | number of entries; without an extent they are in few. An entry belongs to its lane
	// as long as the list is in use: a reader must not meet a lane twice.
	held    atomic.Uint64
	few     [fewMembers]atomic.Uint32
	kids    atomic.Uint32 // child chains
	islands atomic.Uint32 // lanes that hold blocks behind a hole, plus islandChange for each change of that number
	parent  uint32        // the chain it hangs off; 0 for a root
	fork    uint32        // after how many blocks

	// The rest is the writers'.
	group, last uint32 // first and last group of its shared engine hashes
	refs        uint64 // of places in the chain
}

// chainNote is what writers keep of a chain beside it.
type chainNote struct {
	scope   uint32 // in chains.scopes
	idle    uint32 // references to places that hold nothing
	sealed  uint32 // not appended to before this epoch is past, 0: at once
	stored  uint32 // when it was last stored into, in batches; for the cap
	kid     uint32 // a child; the others follow by next
	prev    uint32 // children of one parent, as is next; 0: none
	next    uint32
	live    uint16 // leading blocks that someone refers to or that lead to a child
	maxFork uint16 // the last position off which a child hangs
	class   uint8  // of the extent of keys
	hclass  uint8  // of the extent of members
	touched bool   // in chains.touched
	gone    bool
}

const (
	fewMembers = 4
	// maxChain is how many blocks a chain has at most; a longer prompt goes on in a child.
	maxChain = 1<<blockBits - 1
	// An entry is a lane and, in the lower bits, how many blocks it holds from the chain's start.
	blockBits = 12
	// maxLanes is how many lanes there are at most.
	maxLanes = 1 << (32 - blockBits)
	// islandChange is above the number of lanes.
	islandChange = maxLanes
	// manyMembers is when a chain's members are found by a table.
	manyMembers = 512
)

// chainBytes is what a chain takes beside its keys and members.
const chainBytes = int(unsafe.Sizeof(chain{}) + unsafe.Sizeof(chainNote{}))

func entry(ln lane, n int) uint32 { return uint32(ln)<<blockBits | uint32(n) }
func entryLane(e uint32) lane     { return lane(e >> blockBits) }
func entryBlocks(e uint32) int    { return int(e & maxChain) }

// hasIslands says whether a lane holds blocks behind a hole.
func (c *chain) hasIslands() bool { return c.islands.Load()%islandChange != 0 }

// length is how many keys the chain has.
func (c *chain) length() int { return int(uint32(c.keys.Load())) }

func placeAt(id uint32, n int) place      { return place(id)<<32 | place(n) }
func (p place) split() (id uint32, n int) { return uint32(p >> 32), int(uint32(p)) }

// chainSlabs are the chains by id. A slab comes and goes by a new list of them for readers; chains are given back only
// when no reader is left that could look at them.
type chainSlabs struct {
	dir   atomic.Pointer[[]*[slabRecords]chain] // replaced, never changed
	notes []*[slabRecords]chainNote
	rooms rooms
	mem   atomic.Int64 // bytes of slabs
}

// at is the chain with an id that was given out.
func (s *chainSlabs) at(id uint32) *chain { return &(*s.dir.Load())[id/slabRecords][id%slabRecords] }

func (s *chainSlabs) note(id uint32) *chainNote { return &s.notes[id/slabRecords][id%slabRecords] }

// alloc is an id without a meaning. No chain has id 0.
func (s *chainSlabs) alloc() uint32 { return s.rooms.take(s) }

// give takes an id back that no reader can see.
func (s *chainSlabs) give(id uint32) {
	note := s.note(id)
	*note = chainNote{gone: true}
	if s.rooms.give(s, id) {
		s.notes = nil
		s.dir.Store(nil)
	}
}

// each calls do with every chain that is there. do may make and drop chains.
func (s *chainSlabs) each(do func(id uint32, c *chain, note *chainNote)) {
	for n := 0; n < len(s.rooms.list); n++ {
		for o := uint32(0); n < len(s.rooms.list) && o < s.rooms.list[n].next; o++ {
			if id := uint32(n)*slabRecords + o; id != 0 && !s.note(id).gone {
				do(id, s.at(id), s.note(id))
			}
		}
	}
}

func (s *chainSlabs) link(id uint32) *uint32 { return &s.note(id).next }

func (s *chainSlabs) addSlab(n int) {
	dir := s.copyDir()
	if n == len(dir) {
		dir, s.notes = append(dir, nil), append(s.notes, nil)
	}
	dir[n], s.notes[n] = new([slabRecords]chain), new([slabRecords]chainNote)
	s.mem.Add(slabRecords * int64(chainBytes))
	s.dir.Store(&dir)
}

func (s *chainSlabs) dropSlab(n int) {
	dir := s.copyDir()
	dir[n], s.notes[n] = nil, nil
	s.mem.Add(-slabRecords * int64(chainBytes))
	s.dir.Store(&dir)
}

func (s *chainSlabs) copyDir() []*[slabRecords]chain {
	if d := s.dir.Load(); d != nil {
		return append([]*[slabRecords]chain(nil), *d...)
	}
	return nil
}
