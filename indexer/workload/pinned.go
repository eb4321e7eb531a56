package workload

import (
	"errors"
	"fmt"
	"iter"
	"slices"
)

// Pinned's constants.
const (
	// PinnedHolders is the number of holders.
	PinnedHolders = 256

	pinnedSeed   = 20260901
	pinnedTarget = 10_000_000 // shared blocks of all holders, at full scale
	perStore     = 8          // blocks of one store
	gateBlocks   = 78         // length of the gate's queries
)

// mixes says how many holders share a family, and what part of the shared blocks such families have, in percent.
var mixes = []struct{ holders, percent int }{{1, 50}, {8, 35}, {64, 15}}

// ErrScale is a scale that is not in (0, 1].
var ErrScale = errors.New("bad scale")

// Pinned is the pinned workload: families of holders that share a prefix, stored all at the same time.
type Pinned struct {
	// Stream counts the blocks of all operations; Generated the blocks that holders stored, repeats left out.
	Stream, Generated int
	// Resident counts the blocks that holders have in the end if a repeated store is no copy, so that one removal is
	// enough; CountedResident if it is one, and each removal is announced once. Copies counts the second copies that are
	// then left.
	Resident, CountedResident, Copies int
	// Mixed are the queries to ask while the operations are applied; MixedSum is the published sum of their depths if one
	// is asked after each MixedEvery stored blocks, in turn; -1 at other scales than 1.
	Mixed    [][]uint64
	MixedSum int
	// Cells are the queries to ask in the end.
	Cells []Cell

	blocks   []Block // of all families and tails
	families []family
	ops      []pinnedOp
}

// MixedEvery is the number of stored blocks after which one of Mixed is asked.
const MixedEvery = 250_000

// family is one shared prefix.
type family struct {
	first, blocks int // in Pinned.blocks
	members       []member
}

// member is one holder of a family.
type member struct {
	holder uint16
	hole   uint16 // the block of the family that it removes in the end; 0 for none
	twice  bool   // it stores that block twice
}

// pinnedOp is an Op in few bytes: there are millions.
type pinnedOp struct {
	first, parent uint32 // in Pinned.blocks; noParent
	holder        uint16
	n             uint8
	copies        uint8 // of the block of a removal; 0 for a store
}

const noParent = ^uint32(0)

// NewPinned makes the workload at a scale in (0, 1]: 1 is the published one, and errs with ErrDiffers if this machine
// makes another. A smaller one has the same shape, fewer families, and no published numbers.
func NewPinned(scale float64) (*Pinned, error) {
	if !(scale > 0 && scale <= 1) {
		return nil, fmt.Errorf("%w: %v is not in (0, 1]", ErrScale, scale)
	}
	target := int(pinnedTarget * scale)
	g := &generator{r: pinnedSeed, p: &Pinned{MixedSum: -1}}
	for _, m := range mixes {
		g.addFamilies(m.holders, target*m.percent/100)
	}
	for i := range g.p.families {
		f := &g.p.families[i]
		for j := range f.members {
			g.script(f, &f.members[j])
		}
	}
	g.interleave()
	g.p.Mixed = g.p.mixed()
	g.addCells()
	if scale == 1 {
		g.p.MixedSum = publishedMixedSum
		if err := g.p.compare(); err != nil {
			return nil, err
		}
	}
	return g.p, nil
}

// Ops yields the operations in their order. The blocks of an Op must not be changed.
func (p *Pinned) Ops() iter.Seq[Op] {
	return func(yield func(Op) bool) {
		for _, o := range p.ops {
			op := Op{
				Holder: int(o.holder),
				Remove: o.copies > 0,
				Copies: int(o.copies),
				Blocks: p.blocks[o.first : o.first+uint32(o.n) : o.first+uint32(o.n)],
			}
			if o.parent != noParent {
				op.Parent, op.HasParent = p.blocks[o.parent].Key, true
			}
			if !yield(op) {
				return
			}
		}
	}
}

// Len is the number of operations.
func (p *Pinned) Len() int { return len(p.ops) }

// generator makes a Pinned. The order of its draws is the workload: nothing may be drawn earlier or later.
type generator struct {
	r       rng
	p       *Pinned
	scripts [PinnedHolders][]pinnedOp
	forced  bool // the one family with a given length is made
}

// addFamilies makes families shared by so many holders until their blocks use up the budget.
func (g *generator) addFamilies(holders, budget int) {
	for used := 0; used < budget; {
		n := 96
		if holders == 64 && !g.forced {
			g.forced = true
		} else {
			n = g.r.logUniform(8, 512)
		}
		f := family{first: len(g.p.blocks), blocks: n}
		var key uint64
		for i := range n {
			content := g.r.content()
			if i == 0 {
				key = content
			} else {
				key = (key^rotl(content, 17))*0x2545F4914F6CDD1D | 1
			}
			g.p.blocks = append(g.p.blocks, Block{Content: content, Key: key})
		}
		base := g.r.below(PinnedHolders)
		for k := range holders {
			f.members = append(f.members, member{holder: uint16((base + 7*k) % PinnedHolders)})
		}
		slices.SortFunc(f.members, func(a, b member) int { return int(a.holder) - int(b.holder) })
		used += n * holders
		g.p.families = append(g.p.families, f)
	}
}

// script writes what one member of a family does: it stores the prefix, then a tail of its own; then some of these
// stores again; then it may remove one block from the middle of the prefix.
func (g *generator) script(f *family, m *member) {
	ops := g.stores(nil, m.holder, f.first, f.blocks, noParent)
	last := f.first + f.blocks - 1
	first, n := len(g.p.blocks), 4+int(g.r.next()%61)
	key := g.p.blocks[last].Key
	for range n {
		content := g.r.content()
		key = ((key^rotl(content, 29))*0x9E3779B97F4A7C15 + uint64(m.holder)) | 1
		g.p.blocks = append(g.p.blocks, Block{Content: content, Key: key})
	}
	ops = g.stores(ops, m.holder, first, n, uint32(last))
	g.p.Generated += f.blocks + n

	again := make([]bool, len(ops))
	for i, o := range ops[:len(again)] {
		if again[i] = g.r.chance(5); again[i] {
			ops = append(ops, o)
			g.p.Copies += int(o.n)
		}
	}
	if f.blocks > 2 && g.r.chance(20) {
		hole := 1 + g.r.below(f.blocks-2)
		m.hole, m.twice = uint16(hole), again[hole/perStore]
		o := pinnedOp{first: uint32(f.first + hole), parent: noParent, holder: m.holder, n: 1, copies: 1}
		if m.twice {
			o.copies = 2
		}
		ops = append(ops, o)
	}
	g.scripts[m.holder] = append(g.scripts[m.holder], ops...)
}

// stores appends the stores of n blocks that lie one after the other.
func (g *generator) stores(ops []pinnedOp, holder uint16, first, n int, parent uint32) []pinnedOp {
	for at := first; at < first+n; at += perStore {
		size := min(perStore, first+n-at)
		ops = append(ops, pinnedOp{first: uint32(at), parent: parent, holder: holder, n: uint8(size)})
		parent = uint32(at + size - 1)
	}
	return ops
}

// interleave takes the next operation of a holder drawn at random until all are done.
func (g *generator) interleave() {
	var live []int
	total := 0
	for h := range g.scripts {
		if len(g.scripts[h]) > 0 {
			live = append(live, h)
			total += len(g.scripts[h])
		}
	}
	p := g.p
	p.Resident, p.CountedResident = p.Generated, p.Generated
	p.ops = make([]pinnedOp, 0, total)
	for len(live) > 0 {
		i := g.r.below(len(live))
		h := live[i]
		o := g.scripts[h][0]
		g.scripts[h] = g.scripts[h][1:]
		p.ops = append(p.ops, o)
		p.Stream += int(o.n)
		if o.copies > 0 {
			p.Resident--
		}
		switch o.copies {
		case 1:
			p.CountedResident--
		case 2:
			p.Copies--
		}
		if len(g.scripts[h]) == 0 {
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
		}
	}
}
