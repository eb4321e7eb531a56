package workload

import "container/heap"

// pool is the cache of one worker: a tree of blocks that gives up its least recently used leaves.
type pool struct {
	blocks map[uint32]poolBlock
	leaves leafHeap // the leaves, and entries that hold no more
}

type poolBlock struct {
	parent uint32 // noBlock for none
	kids   uint32
	tick   uint32 // of its last use
}

const noBlock = ^uint32(0)

func newPool() *pool { return &pool{blocks: make(map[uint32]poolBlock)} }

// prefix counts the leading blocks of a chain that are there.
func (p *pool) prefix(chain []uint32) int {
	for i, id := range chain {
		if _, ok := p.blocks[id]; !ok {
			return i
		}
	}
	return len(chain)
}

// use brings a whole chain in, marks it as used at tick, and returns how many of its leading blocks were there.
func (p *pool) use(chain []uint32, tick uint32) int {
	had := p.prefix(chain)
	parent := noBlock
	for i, id := range chain {
		b := p.blocks[id]
		if i >= had {
			b.parent = parent
			if parent != noBlock {
				above := p.blocks[parent]
				above.kids++
				p.blocks[parent] = above
			}
		}
		b.tick = tick
		p.blocks[id] = b
		parent = id
	}
	// Of the blocks just used only the last can be a leaf.
	if parent != noBlock && p.blocks[parent].kids == 0 {
		heap.Push(&p.leaves, leaf{tick, parent})
	}
	return had
}

// evict takes the oldest leaves out until capacity, at least 1, is kept, and returns them in that order.
func (p *pool) evict(capacity int) (out []uint32) {
	for len(p.blocks) > capacity {
		l := heap.Pop(&p.leaves).(leaf)
		b, ok := p.blocks[l.id]
		if !ok || b.kids > 0 || b.tick != l.tick {
			continue // used since, or no leaf any more
		}
		delete(p.blocks, l.id)
		out = append(out, l.id)
		if b.parent == noBlock {
			continue
		}
		above := p.blocks[b.parent]
		above.kids--
		p.blocks[b.parent] = above
		if above.kids == 0 {
			heap.Push(&p.leaves, leaf{above.tick, b.parent})
		}
	}
	return out
}

// leaf is a block that had no child at tick.
type leaf struct{ tick, id uint32 }

// leafHeap has the oldest leaf on top. There are no ties: of the blocks used at one tick only one is a leaf at a time.
type leafHeap []leaf

func (h leafHeap) Len() int           { return len(h) }
func (h leafHeap) Less(i, j int) bool { return h[i].tick < h[j].tick }
func (h leafHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *leafHeap) Push(x any)        { *h = append(*h, x.(leaf)) }
func (h *leafHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
