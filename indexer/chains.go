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
type chains struct {
	edges   edgeTable
	islands *xsync.Map[laneIn, []extent] // values are replaced, never changed
	vias    *xsync.Map[viaAt, []via]     // likewise
	lanes   owners
	count   atomic.Int64 // live blocks
	memory  atomic.Int64 // bytes of chains, their keys and members

	// The rest is the writers'.
	serial  uint64
	list    []*chain // by id
	free    []uint32 // ids
	touched []*chain // since the last settle
	ahead   int      // how many children of the next child are about to be made, as far as known
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
		list:    make([]*chain, 1), // no chain has id 0
		again:   make(map[laneAt]uint32),
	}
	t.edges.init()
	return t
}

// make is a chain that hangs nowhere yet.
func (t *chains) make() *chain {
	t.serial++
	c := &chain{serial: t.serial}
	t.memory.Add(int64(chainBytes))
	if n := len(t.free); n > 0 {
		c.id = t.free[n-1]
		t.free = t.free[:n-1]
		t.list[c.id] = c
		return c
	}
	c.id = uint32(len(t.list))
	t.list = append(t.list, c)
	return c
}

func (t *chains) root() (place, uint64) {
	c := t.make()
	c.refs, c.holding = 1, 1
	return c.at(0), c.serial
}

// edgeAt is the edge by which a child hangs off a chain.
func edgeAt(serial uint64, fork int, key Key) edge {
	return edge{parent: place(serial<<24 | uint64(fork)), key: key}
}

func (t *chains) child(parent place, key Key) place {
	id, n := parent.split()
	c := t.list[id]
	keys := c.keys.view()
	switch {
	case n < len(keys) && keys[n] == uint64(key):
	case n == len(keys) && n > 0 && n < maxChain && !c.sealed && !t.forks(c, n, key):
		t.memory.Add(int64(c.append(key, t.ahead)))
	default:
		c, n = t.descend(c, n, key), 0
	}
	c.refs++
	if n == c.live {
		c.live++
		t.count.Add(1)
	}
	return c.at(n + 1)
}

// forks says whether a child with this key hangs off c after n blocks.
func (t *chains) forks(c *chain, n int, key Key) bool {
	if c.kids.Load() == 0 {
		return false
	}
	return t.edges.find(edgeAt(c.serial, n, key)) != nil
}

// descend is the child of c after n blocks that begins with key, made if new.
func (t *chains) descend(c *chain, n int, key Key) *chain {
	e := edgeAt(c.serial, n, key)
	if kid := t.edges.find(e); kid != nil {
		return kid
	}
	kid := t.make()
	kid.edge, kid.parent, kid.fork, kid.kid, kid.scope = e, c, uint32(n), uint32(len(c.forks)), c.scope
	t.memory.Add(int64(kid.append(key, t.ahead)))
	c.forks = append(c.forks, kid)
	c.kids.Add(1)
	t.edges.add(kid)
	return kid
}

func (t *chains) up(p place) (parent place, key Key, root bool) {
	id, n := p.split()
	c := t.list[id]
	key = Key(c.keys.view()[n-1])
	if n > 1 {
		return c.at(n - 1), key, false
	}
	return c.parent.at(int(c.fork)), key, c.parent.parent == nil
}

func (t *chains) release(p place) {
	id, _ := p.split()
	c := t.list[id]
	c.refs--
	t.touch(c)
}

// unref gives back a reference to a place to which there are others.
func (t *chains) unref(p place) { t.of(p).refs-- }

// of is the chain of a place.
func (t *chains) of(p place) *chain { return t.list[p>>32] }

// scopeOf is the scope of a place.
func (t *chains) scopeOf(p place) *scope { return t.of(p).scope }

func (t *chains) touch(c *chain) {
	if !c.touched {
		c.touched = true
		t.touched = append(t.touched, c)
	}
}

func (t *chains) hold(p place, l *Ledger, hash uint64, was, now mask) {
	id, n := p.split()
	c, block := t.list[id], n-1
	switch {
	case was == 0:
		c.holding++
	case now == 0:
		c.holding--
	}
	if witnessed(l.src) {
		t.holdVia(c, block, l, hash, now)
		return
	}
	for d := was ^ now; d != 0; d &= d - 1 {
		i := bits.TrailingZeros64(uint64(d))
		ln := t.lanes.of(l, i, 1<<i)
		if now>>i&1 != 0 {
			t.enter(c, ln, block)
		} else {
			t.leave(c, ln, block)
		}
	}
}

// holdVia is hold for a source whose hashes tell its blocks apart: one lane finds the blocks, and a list for each says
// what is held under which hash.
func (t *chains) holdVia(c *chain, block int, l *Ledger, hash uint64, now mask) {
	at := viaAt{serial: c.serial, slot: l.slot, block: uint32(block)}
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
		t.leave(c, ln, block)
		t.vias.Delete(at)
		return
	}
	t.vias.Store(at, next)
	if len(old) == 0 {
		t.enter(c, ln, block)
	}
}

// enter notes that a lane holds a block.
func (t *chains) enter(c *chain, ln lane, block int) {
	e, n := c.member(ln)
	at := laneIn{c.serial, ln}
	var isles []extent
	if c.islands.Load() > 0 {
		isles, _ = t.islands.Load(at)
	}
	switch {
	case block < n || inSpans(isles, uint32(block)):
		t.again[laneAt{at, uint32(block)}]++
	case block > n:
		if e == nil {
			t.join(c, ln, 0)
		}
		t.setIslands(c, at, isles, withBlock(isles, uint32(block)))
	default:
		n++
		joined := len(isles) > 0 && int(isles[0].from) == n
		if joined {
			n = int(isles[0].to)
		}
		if e == nil {
			t.join(c, ln, n)
		} else {
			e.Store(entry(ln, n))
		}
		if joined { // after: no block may be missing in between
			t.setIslands(c, at, isles, isles[1:])
		}
	}
}

func (t *chains) join(c *chain, ln lane, n int) {
	t.memory.Add(int64(c.join(ln, n, func(o lane) bool {
		_, ok := t.islands.Load(laneIn{c.serial, o})
		return ok
	})))
}

// leave notes that a lane holds a block no more.
func (t *chains) leave(c *chain, ln lane, block int) {
	at := laneIn{c.serial, ln}
	if len(t.again) > 0 {
		if k := (laneAt{at, uint32(block)}); t.again[k] > 1 {
			t.again[k]--
			return
		} else if t.again[k] == 1 {
			delete(t.again, k)
			return
		}
	}
	t.touch(c)
	e, n := c.member(ln)
	var isles []extent
	if c.islands.Load() > 0 {
		isles, _ = t.islands.Load(at)
	}
	if block >= n {
		t.setIslands(c, at, isles, withoutBlock(isles, uint32(block)))
		return
	}
	if block+1 < n { // before: no block may be missing in between
		t.setIslands(c, at, isles, append([]extent{{uint32(block + 1), uint32(n)}}, isles...))
	}
	e.Store(entry(ln, block))
}

func (t *chains) setIslands(c *chain, at laneIn, old, now []extent) {
	if len(now) > 0 {
		t.islands.Store(at, now)
		if len(old) == 0 {
			c.islands.Add(1)
		}
	} else if len(old) > 0 {
		c.islands.Add(-1)
		t.islands.Delete(at)
	}
}

// settle frees chains that nobody refers to, and their parents likewise, and cuts off long ends that nobody holds.
func (t *chains) settle() {
	for i, c := range t.touched {
		t.touched[i] = nil
		c.touched = false
		for c != nil && !c.gone && c.refs == 0 && len(c.forks) == 0 {
			c = t.drop(c)
		}
		if c != nil && !c.gone {
			t.trim(c)
		}
	}
	t.touched = t.touched[:0]
}

// drop frees a chain and returns its parent. Readers that are in it find nobody there.
func (t *chains) drop(c *chain) *chain {
	c.gone = true
	t.memory.Add(-int64(chainBytes + c.keys.size() + c.held.size()))
	t.count.Add(-int64(c.live))
	t.list[c.id] = nil
	t.free = append(t.free, c.id)
	p := c.parent
	if p == nil {
		return nil
	}
	t.edges.drop(c)
	last := len(p.forks) - 1
	p.forks[c.kid] = p.forks[last]
	p.forks[c.kid].kid = c.kid
	p.forks[last] = nil
	p.forks = p.forks[:last]
	p.kids.Add(-1)
	return p
}

// trim notes how much of the chain is in use, and cuts the rest off if that is much.
func (t *chains) trim(c *chain) {
	if c.refs > c.holding || c.parent == nil {
		return // somebody refers to blocks that nobody holds
	}
	live := t.liveIn(c)
	t.count.Add(int64(live - c.live))
	c.live = live
	if n := c.length(); n-live >= max(16, n/4) {
		t.memory.Add(int64(c.cut(live)))
	}
}

// liveIn is how many leading blocks of the chain are held or lead to a child.
func (t *chains) liveIn(c *chain) (live int) {
	list := c.members()
	islands := c.islands.Load() > 0
	for i := range list {
		e := list[i].Load()
		live = max(live, entryBlocks(e))
		if islands {
			if s, _ := t.islands.Load(laneIn{c.serial, entryLane(e)}); len(s) > 0 {
				live = max(live, int(s[len(s)-1].to))
			}
		}
		if live >= c.live {
			return live
		}
	}
	for _, kid := range c.forks {
		if live = max(live, int(kid.fork)); live >= c.live {
			break
		}
	}
	return live
}

func (t *chains) close(l *Ledger) { t.lanes.give(l) }

func (t *chains) size() int { return int(t.count.Load()) }

// Estimates of what an entry of a map takes with its share of the map, and what a value on its own takes.
const (
	edgeBytes  = 26 // 13 in a table that is half full
	chainBytes = int(unsafe.Sizeof(chain{})) + edgeBytes
	isleBytes  = 96
)

func (t *chains) bytes() int {
	return int(t.memory.Load()) + (t.islands.Size()+t.vias.Size())*isleBytes
}
