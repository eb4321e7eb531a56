package workload

import (
	"errors"
	"fmt"
)

// MooncakeWorkers is the number of workers that take the requests in turn.
const MooncakeWorkers = 16

// MaxCopies is how often a trace may be repeated.
const MaxCopies = 32

// maxMooncakeBlocks bounds the blocks of all queries, of which each takes about 50 bytes here.
const maxMooncakeBlocks = 1 << 25

// ErrVariant is a capacity or a number of copies that cannot be used.
var ErrVariant = errors.New("bad variant")

// Mooncake is a trace served by workers with caches of a given capacity.
type Mooncake struct {
	Requests []Request
	// Stored and Removed count the blocks of the operations, Resident those that workers have in the end.
	Stored, Removed, Resident int
	// Want is the right answer to all queries, each asked before the operations of its request; Final to all queries
	// asked again in the end.
	Want, Final Answer
}

// Request is a query to ask, and then what changes because a worker serves it: a store, a removal, both or nothing.
type Request struct {
	// Query is the content of each block.
	Query []uint64
	Ops   []Op
}

// NewMooncake makes the workload: copies of the trace one after the other, each with block ids of its own, over workers
// that hold capacity blocks. It errs with ErrVariant, and with ErrDiffers if the trace and the variant are published
// ones and the numbers are not.
func NewMooncake(t *Trace, capacity, copies int) (*Mooncake, error) {
	if capacity < 1 {
		return nil, fmt.Errorf("%w: capacity %d is not positive", ErrVariant, capacity)
	}
	if copies < 1 || copies > MaxCopies {
		return nil, fmt.Errorf("%w: %d copies, want 1 to %d", ErrVariant, copies, MaxCopies)
	}
	if t.blocks*copies > maxMooncakeBlocks {
		return nil, fmt.Errorf("%w: %d copies of %d blocks, limit %d", ErrVariant, copies, t.blocks, maxMooncakeBlocks)
	}
	m := &Mooncake{}
	var pools [MooncakeWorkers]*pool
	for w := range pools {
		pools[w] = newPool()
	}
	for chain := range t.repeat(copies) {
		for _, p := range pools {
			m.Want.credit(p.prefix(chain))
		}
		i := len(m.Requests)
		w := i % MooncakeWorkers
		had := pools[w].use(chain, uint32(i))
		m.add(w, chain, had, pools[w].evict(capacity))
	}
	for _, p := range pools {
		m.Resident += len(p.blocks)
	}
	for chain := range t.repeat(copies) {
		for _, p := range pools {
			m.Final.credit(p.prefix(chain))
		}
	}
	return m, m.compare(t, capacity, copies)
}

// repeat yields the chains of all copies. A chain is good until the next is asked for.
func (t *Trace) repeat(copies int) func(yield func([]uint32) bool) {
	return func(yield func([]uint32) bool) {
		var chain []uint32
		for c := range copies {
			for _, base := range t.chains {
				chain = chain[:0]
				for _, id := range base {
					chain = append(chain, id+uint32(c)*t.ids)
				}
				if !yield(chain) {
					return
				}
			}
		}
	}
}

// add appends the request of a chain of which the worker had some blocks, and for which it evicted others.
func (m *Mooncake) add(worker int, chain []uint32, had int, gone []uint32) {
	r := Request{Query: make([]uint64, len(chain))}
	for i, id := range chain {
		r.Query[i] = blockOf(id).Content
	}
	if had < len(chain) {
		o := Op{Holder: worker, Blocks: blocksOf(chain[had:])}
		if had > 0 {
			o.Parent, o.HasParent = blockOf(chain[had-1]).Key, true
		}
		r.Ops = append(r.Ops, o)
		m.Stored += len(o.Blocks)
	}
	if len(gone) > 0 {
		r.Ops = append(r.Ops, Op{Holder: worker, Remove: true, Copies: 1, Blocks: blocksOf(gone)})
		m.Removed += len(gone)
	}
	m.Requests = append(m.Requests, r)
}

func blocksOf(ids []uint32) []Block {
	out := make([]Block, len(ids))
	for i, id := range ids {
		out[i] = blockOf(id)
	}
	return out
}

func blockOf(id uint32) Block {
	return Block{Content: splitMix(uint64(id)) | 1, Key: splitMix(uint64(id)^0xA5A5A5A5A5A5A5A5) | 1}
}

// publishedTrace is the Mooncake conversation trace: requests, blocks of all requests, ids.
var publishedTrace = [3]int{12_031, 288_500, 182_790}

// variant is what is published about a capacity and a number of copies.
type variant struct{ capacity, copies, stored, removed, resident, sum, final, matched int }

var publishedVariants = []variant{
	{100_000, 1, 259_922, 0, 259_922, 430_007, 877_618, 192_360},
	{4_000, 1, 262_575, 198_575, 64_000, 380_200, 365_906, 192_360},
	{100_000, 8, 2_079_376, 479_376, 1_600_000, 3_440_056, 5_562_749, 1_538_880},
}

// compare holds the workload against the published numbers, if there are any.
func (m *Mooncake) compare(t *Trace, capacity, copies int) error {
	if publishedTrace != [3]int{len(t.chains), t.blocks, int(t.ids)} {
		return nil
	}
	for _, v := range publishedVariants {
		if v.capacity == capacity && v.copies == copies {
			return compare([]number{
				{"stored blocks", m.Stored, v.stored},
				{"removed blocks", m.Removed, v.removed},
				{"resident blocks", m.Resident, v.resident},
				{"checksum", m.Want.DepthSum, v.sum},
				{"matched", m.Want.Matched, v.matched},
				{"final checksum", m.Final.DepthSum, v.final},
			})
		}
	}
	return nil
}
