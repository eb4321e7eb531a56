package indexer

import "sync/atomic"

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

	chainsInSlab = 1 << 10
)

func entry(ln lane, n int) uint32 { return uint32(ln)<<blockBits | uint32(n) }
func entryLane(e uint32) lane     { return lane(e >> blockBits) }
func entryBlocks(e uint32) int    { return int(e & maxChain) }

// hasIslands says whether a lane holds blocks behind a hole.
func (c *chain) hasIslands() bool { return c.islands.Load()%islandChange != 0 }

// length is how many keys the chain has.
func (c *chain) length() int { return int(uint32(c.keys.Load())) }

func placeAt(id uint32, n int) place      { return place(id)<<32 | place(n) }
func (p place) split() (id uint32, n int) { return uint32(p >> 32), int(uint32(p)) }

// chainSlabs are the chains by id, in slabs of which readers see the list grow.
type chainSlabs struct {
	dir   atomic.Pointer[[]*[chainsInSlab]chain]
	notes []*[chainsInSlab]chainNote
	next  uint32
	free  []uint32
}

// at is the chain with an id that was given out.
func (s *chainSlabs) at(id uint32) *chain { return &(*s.dir.Load())[id/chainsInSlab][id%chainsInSlab] }

func (s *chainSlabs) note(id uint32) *chainNote { return &s.notes[id/chainsInSlab][id%chainsInSlab] }

// alloc is an id without a meaning. No chain has id 0.
func (s *chainSlabs) alloc() uint32 {
	if n := len(s.free); n > 0 {
		id := s.free[n-1]
		s.free = s.free[:n-1]
		return id
	}
	s.next = max(s.next, 1)
	id := s.next
	s.next++
	if int(id/chainsInSlab) == len(s.notes) {
		var dir []*[chainsInSlab]chain
		if d := s.dir.Load(); d != nil {
			dir = append(dir, *d...)
		}
		dir = append(dir, new([chainsInSlab]chain))
		s.notes = append(s.notes, new([chainsInSlab]chainNote))
		s.dir.Store(&dir)
	}
	return id
}

// give takes an id back that no reader can see. It is true when none is left.
func (s *chainSlabs) give(id uint32) (none bool) {
	s.free = append(s.free, id)
	if len(s.free)+1 < int(s.next) {
		return false
	}
	s.next, s.free, s.notes = 0, nil, nil
	s.dir.Store(nil)
	return true
}
