package workload

import (
	"errors"
	"fmt"
)

// ErrDiffers is a workload that is not the published one.
var ErrDiffers = errors.New("workload differs from the published one")

// Block is one block of a prompt: what is in it, and the key under which its holder announces it.
type Block struct {
	Content, Key uint64
}

// Op is one change of what one holder has.
type Op struct {
	// Holder counts from 0.
	Holder int
	// Remove takes Blocks away; otherwise they are stored, in prompt order.
	Remove bool
	// Parent is the key of the block before Blocks[0] of a store; it means something only with HasParent.
	Parent    uint64
	HasParent bool
	// Copies is how often the holder has stored each block of a removal. Where a repeated store is a second copy, that
	// many removals are needed until the block is gone.
	Copies int
	Blocks []Block
}

// Answer is what an index should answer to a set of queries.
type Answer struct {
	// DepthSum adds up, over all queries and holders, the leading blocks of the query that the holder has.
	DepthSum int
	// Matched counts the holders, over all queries, that have at least the first block.
	Matched int
}

// credit counts one holder's depth.
func (a *Answer) credit(depth int) {
	if depth > 0 {
		a.DepthSum += depth
		a.Matched++
	}
}

// number is one count of a workload beside the published one.
type number struct {
	name      string
	got, want int
}

// compare returns every number that differs, joined, each wrapping ErrDiffers.
func compare(list []number) error {
	var faults []error
	for _, n := range list {
		if n.got != n.want {
			faults = append(faults, fmt.Errorf("%w: %s %d, published %d", ErrDiffers, n.name, n.got, n.want))
		}
	}
	return errors.Join(faults...)
}
