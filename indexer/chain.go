package indexer

import (
	"slices"
	"sync/atomic"
)

// chain is a run of blocks without a fork: their keys, stored once however many sources hold them, and for each lane how
// many of them it has from the chain's start. Chains never split: where prompts part, a child chain hangs off (chain,
// position), so the place of a block never changes.
//
// The content of a position never changes while the chain lives: keys are appended, or cut off at the end and then never
// appended again. So each member's entry is true by itself, and readers may load keys and members at different moments.
type chain struct {
	edge   edge   // how it hangs off its parent; 0 for a scope's root, which has no keys
	serial uint64 // names the chain in edges; never used twice
	keys   words
	// held is the members: lane<<32 | blocks held from the chain's start. An entry belongs to its lane as long as the list is
	// in use: a reader must not meet a lane twice.
	held words
	kids atomic.Int32 // child chains
	// islands counts the lanes that hold blocks behind a hole.
	islands atomic.Int32

	// The rest is the writers'.
	parent  *chain
	scope   *scope
	forks   []*chain // child chains
	fork    uint32   // position in parent
	kid     uint32   // index in parent.forks
	id      uint32
	refs    int             // of places in the chain
	holding int             // how many of them hold something
	live    int             // leading blocks that someone refers to or that lead to a child
	hint    int             // index of the member found last
	index   map[lane]uint32 // of all members, where they are many
	sealed  bool
	touched bool // in chains.touched
	gone    bool

	_ [24]byte // 192 bytes lie on whole cache lines, so that what readers need is one
}

// manyMembers is when a chain's members are found by a map.
const manyMembers = 2048

// maxChain is how many blocks a chain has at most; a longer prompt goes on in a child.
const maxChain = 1<<24 - 1

// length is how many keys the chain has.
func (c *chain) length() int { return len(c.keys.view()) }

// append adds a key at the end and returns how many bytes that took. ahead is how many more are about to follow.
func (c *chain) append(k Key, ahead int) int { return c.keys.add(uint64(k), ahead) }

// cut drops the keys behind the first n and returns how many bytes that took. What they were must stay true for readers
// that still see them, so the chain is not appended to again.
func (c *chain) cut(n int) int {
	c.sealed = true
	return c.keys.replace(c.keys.view()[:n], 0)
}

// members is the entries as published now.
func (c *chain) members() []atomic.Uint64 { return c.held.atoms() }

func entry(ln lane, n int) uint64    { return uint64(ln)<<32 | uint64(uint32(n)) }
func entryLane(e uint64) lane        { return lane(e >> 32) }
func entryBlocks(e uint64) int       { return int(uint32(e)) }
func (c *chain) at(p int) place      { return place(c.id)<<32 | place(p) }
func (p place) split() (uint32, int) { return uint32(p >> 32), int(uint32(p)) }

// member is the lane's entry and how many blocks it says, nil if there is none.
func (c *chain) member(ln lane) (*atomic.Uint64, int) {
	list := c.members()
	if c.hint < len(list) {
		if e := list[c.hint].Load(); entryLane(e) == ln {
			return &list[c.hint], entryBlocks(e)
		}
	}
	if c.index != nil {
		i, ok := c.index[ln]
		if !ok {
			return nil, 0
		}
		c.hint = int(i)
		return &list[i], entryBlocks(list[i].Load())
	}
	for i := range list {
		if e := list[i].Load(); entryLane(e) == ln {
			c.hint = i
			return &list[i], entryBlocks(e)
		}
	}
	return nil, 0
}

// join makes an entry of n blocks for a lane that has none. keep says which lanes without leading blocks stay when the
// list is made anew. It returns how many bytes that took.
func (c *chain) join(ln lane, n int, keep func(lane) bool) (grown int) {
	if c.held.full() {
		var kept []uint64
		members := c.members()
		for i := range members {
			if e := members[i].Load(); entryBlocks(e) > 0 || keep(entryLane(e)) {
				kept = append(kept, e)
			}
		}
		grown = c.held.replace(kept, 0)
		c.reindex(kept)
	}
	grown += c.held.add(entry(ln, n), 0)
	c.hint = len(c.members()) - 1
	if c.index != nil {
		c.index[ln] = uint32(c.hint)
	}
	return grown
}

// reindex finds the members of a chain that has many in a map.
func (c *chain) reindex(list []uint64) {
	c.index = nil
	if len(list) < manyMembers {
		return
	}
	c.index = make(map[lane]uint32, len(list)+len(list)/8)
	for i, e := range list {
		c.index[entryLane(e)] = uint32(i)
	}
}

// lane is one residency of one source: one tier of one group, or for a source that is told by its hashes all of them.
// Its number is used again after its source is closed; whoever read it before is then out of date (table.since).
type lane uint32

// laneOf is a lane with what it stands for in the masks of its source.
type laneOf struct {
	lane lane
	bit  mask // 0: in the masks under each hash
	// since is Index.clears when the source got it: what was read of the tree before that was another's.
	since uint64
}

// owner is whose a lane is, and what of the source's table readers of one lane need.
type owner struct {
	ledger *Ledger
	since  uint64 // Index.clears; what was read of the tree before that is gone
	plain  bool   // table.plain
	size   int    // tokens in a block, of a plain source
}

// extent is blocks from..to-1 of a chain.
type extent struct{ from, to uint32 }

// laneIn names what a lane holds behind a hole of a chain.
type laneIn struct {
	serial uint64
	lane   lane
}

// viaAt names what a source that is told by its hashes holds of a block.
type viaAt struct {
	serial uint64
	slot   slot
	block  uint32
}

// via is what such a source holds of a block under one hash.
type via struct {
	hash uint64
	mask mask
}

// extents with block p added.
func withBlock(list []extent, p uint32) []extent {
	i, _ := slices.BinarySearchFunc(list, p, func(s extent, p uint32) int { return int(int64(s.to) - int64(p)) })
	// list[i] is the first extent that ends at or behind p.
	out := make([]extent, 0, len(list)+1)
	out = append(out, list[:i]...)
	add := extent{p, p + 1}
	if i < len(list) && list[i].to == p {
		add.from = list[i].from
		i++
	}
	if i < len(list) && list[i].from == p+1 {
		add.to = list[i].to
		i++
	}
	return append(append(out, add), list[i:]...)
}

// extents with block p, which is in them, taken out.
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

func inSpans(list []extent, p uint32) bool {
	i, _ := slices.BinarySearchFunc(list, p+1, func(s extent, p uint32) int { return int(int64(s.to) - int64(p)) })
	return i < len(list) && list[i].from <= p
}
