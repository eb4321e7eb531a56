package workload

// Cell is a set of queries, timed one by one.
type Cell struct {
	// Name is h1, h8, h64 (queries into families of so many holders), gate (long ones into families of 64) or miss.
	Name string
	// Queries are the contents of each query's blocks.
	Queries [][]uint64
	// Want is the right answer if a repeated store is no copy; Counted the one if it is, and each removal is announced
	// once.
	Want, Counted Answer
}

const (
	cellQueries = 2000 // at most, for each number of holders
	missQueries = 1000
	mixedWide   = 32 // queries into families of 64 among Mixed
	mixedAll    = 64
)

// addCells draws the queries.
func (g *generator) addCells() {
	for i, name := range []string{"h1", "h8", "h64"} {
		c := Cell{Name: name}
		for _, f := range g.p.families {
			if len(f.members) == mixes[i].holders && len(c.Queries) < cellQueries {
				c.ask(g.p, f, 1+g.r.below(f.blocks))
			}
		}
		g.p.Cells = append(g.p.Cells, c)
	}
	gate := Cell{Name: "gate"}
	for _, f := range g.p.families {
		if len(f.members) == 64 && f.blocks >= gateBlocks {
			gate.ask(g.p, f, gateBlocks)
		}
	}
	miss := Cell{Name: "miss"}
	for range missQueries {
		q := make([]uint64, 1+g.r.below(96))
		for i := range q {
			q[i] = g.r.content()
		}
		miss.Queries = append(miss.Queries, q)
	}
	g.p.Cells = append(g.p.Cells, gate, miss)
}

// ask adds a query of the first blocks of a family, and what its members have of them.
func (c *Cell) ask(p *Pinned, f family, blocks int) {
	c.Queries = append(c.Queries, p.contents(f, blocks))
	for _, m := range f.members {
		depth, counted := blocks, blocks
		if m.hole > 0 {
			depth = min(depth, int(m.hole))
			if !m.twice {
				counted = depth
			}
		}
		c.Want.credit(depth)
		c.Counted.credit(counted)
	}
}

// mixed are long queries into wide families and then queries into families of one holder.
func (p *Pinned) mixed() (out [][]uint64) {
	for _, f := range p.families {
		if len(f.members) == 64 && f.blocks >= gateBlocks && len(out) < mixedWide {
			out = append(out, p.contents(f, gateBlocks))
		}
	}
	for _, f := range p.families {
		if len(f.members) == 1 && len(out) < mixedAll {
			out = append(out, p.contents(f, min(f.blocks, 64)))
		}
	}
	return out
}

func (p *Pinned) contents(f family, n int) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = p.blocks[f.first+i].Content
	}
	return out
}

// publishedMixedSum is the sum of depths of the queries asked while the operations are applied.
const publishedMixedSum = 847

// published are the answers at full scale.
var published = map[string]Answer{
	"h1":   {DepthSum: 108_979, Matched: 2_000},
	"h8":   {DepthSum: 951_637, Matched: 16_000},
	"h64":  {DepthSum: 695_512, Matched: 12_736},
	"gate": {DepthSum: 424_506, Matched: 5_696},
	"miss": {},
}

// compare holds a workload of full scale against the published numbers.
func (p *Pinned) compare() error {
	list := []number{
		{"families", len(p.families), 44_969},
		{"operations", len(p.ops), 1_777_433},
		{"stream blocks", p.Stream, 13_498_103},
		{"generated blocks", p.Generated, 12_838_147},
		{"resident blocks", p.Resident, 12_821_592},
	}
	for _, c := range p.Cells {
		want := published[c.Name]
		list = append(list, number{c.Name + " depth sum", c.Want.DepthSum, want.DepthSum},
			number{c.Name + " matched", c.Want.Matched, want.Matched})
	}
	return compare(list)
}
