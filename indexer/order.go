package indexer

import (
	"cmp"
	"slices"

	"github.com/kvscout/kvscout/events"
)

// orderer puts a ledger's blocks into the order of a Book. Its memory is used again.
type orderer struct {
	pieces []piece
	nodes  []orderedNode
	runs   []orderedRun
	stack  []int
}

// piece is blocks from..to-1 of a copy, which lie at places that follow each other; of one that only leads to some, that
// one alone.
type piece struct {
	first    place
	from, to int
	held     bool
}

// orderedNode is a block that is in the book once, however many hashes name it.
type orderedNode struct {
	place, parent place
	first, end    int // of its blocks in the copy
	root          bool
	scope         uint32
	key           Key
}

// orderedRun is nodes first..end-1, each following the one before.
type orderedRun struct {
	first, end int
	parent     int // run of the node that the first follows, -1 at a root
	node       int // that node
	at         int // where it begins in the book, -1 before it is there
}

// order fills b from the copy. Where places are held under several hashes it sorts the copy.
func (o *orderer) order(copied []copiedBlock, b *Book) {
	o.cut(copied)
	if !o.collect(copied) {
		slices.SortFunc(copied, func(a, b copiedBlock) int {
			return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.hash.Hi, b.hash.Hi), cmp.Compare(a.hash.Lo, b.hash.Lo), cmp.Compare(b.mask, a.mask))
		})
		o.whole(copied)
	}
	o.link()
	b.Keys, b.Runs, b.Held, b.Hashes = slices.Grow(b.Keys[:0], len(o.nodes)), b.Runs[:0], b.Held[:0], slices.Grow(b.Hashes[:0], len(copied))
	for i := range o.runs {
		// Those that it follows go first.
		for at := i; at >= 0 && o.runs[at].at < 0; at = o.runs[at].parent {
			o.stack = append(o.stack, at)
		}
		for n := len(o.stack) - 1; n >= 0; n-- {
			o.emit(&o.runs[o.stack[n]], copied, b)
		}
		o.stack = o.stack[:0]
	}
}

// cut makes pieces of a copy and sorts them. A book lies in runs, so they are far fewer than blocks.
func (o *orderer) cut(copied []copiedBlock) {
	o.pieces = o.pieces[:0]
	for i := range copied {
		c := &copied[i]
		if i > 0 && c.mask != 0 && copied[i-1].mask != 0 && c.place == copied[i-1].place+1 {
			o.pieces[len(o.pieces)-1].to = i + 1
		} else {
			o.pieces = append(o.pieces, piece{first: c.place, from: i, to: i + 1, held: c.mask != 0})
		}
	}
	slices.SortFunc(o.pieces, func(a, b piece) int {
		switch {
		case a.first != b.first:
			return cmp.Compare(a.first, b.first)
		case a.held == b.held:
			return 0
		case a.held:
			return -1
		default:
			return 1
		}
	})
}

// collect makes nodes and runs of sorted pieces. It is false when a place is held twice.
func (o *orderer) collect(copied []copiedBlock) bool {
	o.nodes, o.runs = o.nodes[:0], o.runs[:0]
	for _, p := range o.pieces {
		if n := len(o.nodes); n > 0 && p.first <= o.nodes[n-1].place {
			if p.held {
				return false
			}
			continue // it is held
		}
		for i := p.from; i < p.to; i++ {
			o.add(&copied[i], i)
		}
	}
	return true
}

// whole makes nodes and runs of a sorted copy.
func (o *orderer) whole(copied []copiedBlock) {
	o.nodes, o.runs = o.nodes[:0], o.runs[:0]
	for i := range copied {
		if n := len(o.nodes); n > 0 && o.nodes[n-1].place == copied[i].place {
			o.nodes[n-1].end = i + 1
		} else {
			o.add(&copied[i], i)
		}
	}
}

// add appends a node. Most follow the one before.
func (o *orderer) add(c *copiedBlock, at int) {
	n := len(o.nodes)
	o.nodes = append(o.nodes, orderedNode{
		place: c.place, parent: c.parent, first: at, end: at + 1, root: c.root, scope: c.scope, key: c.key,
	})
	if n > 0 && !c.root && o.nodes[n-1].place == c.parent {
		o.runs[len(o.runs)-1].end = n + 1
	} else {
		o.runs = append(o.runs, orderedRun{first: n, end: n + 1, parent: -1, at: -1})
	}
}

// link finds what each run follows.
func (o *orderer) link() {
	for i := range o.runs {
		r := &o.runs[i]
		head := &o.nodes[r.first]
		if head.root {
			continue
		}
		r.node, _ = slices.BinarySearchFunc(o.nodes, head.parent, func(n orderedNode, p place) int { return cmp.Compare(n.place, p) })
		at, ok := slices.BinarySearchFunc(o.runs, r.node, func(r orderedRun, n int) int { return cmp.Compare(r.first, n) })
		if !ok {
			at--
		}
		r.parent = at
	}
}

// emit appends a run to the book.
func (o *orderer) emit(r *orderedRun, copied []copiedBlock, b *Book) {
	r.at = len(b.Keys)
	run := KeyRun{Parent: ^int(o.nodes[r.first].scope), Blocks: r.end - r.first}
	if r.parent >= 0 {
		p := &o.runs[r.parent]
		run.Parent = p.at + r.node - p.first
	}
	b.Runs = append(b.Runs, run)
	for i := r.first; i < r.end; i++ {
		n := &o.nodes[i]
		for _, c := range copied[n.first:n.end] {
			if c.mask != 0 {
				b.hold(len(b.Keys), c.hash, c.mask)
			}
		}
		b.Keys = append(b.Keys, n.key)
	}
}

// hold appends a held block.
func (b *Book) hold(at int, h events.Hash, m mask) {
	b.Hashes = append(b.Hashes, h)
	if n := len(b.Held); n > 0 {
		if r := &b.Held[n-1]; r.First+r.Blocks == at && r.Mask == uint64(m) {
			r.Blocks++
			return
		}
	}
	b.Held = append(b.Held, HeldRun{First: at, Blocks: 1, Mask: uint64(m)})
}

// scopes is a function that finds the scope of a block, to be asked for ascending blocks.
func (b *Book) scopes() func(at int) uint32 {
	of := make([]uint32, len(b.Runs))   // by run
	ends := make([]int, 0, len(b.Runs)) // of runs
	end := 0
	for i, r := range b.Runs {
		if r.Parent < 0 {
			of[i] = uint32(^r.Parent)
		} else {
			at, _ := slices.BinarySearch(ends, r.Parent+1)
			of[i] = of[at]
		}
		end += r.Blocks
		ends = append(ends, end)
	}
	run := 0
	return func(at int) uint32 {
		for ends[run] <= at {
			run++
		}
		return of[run]
	}
}
