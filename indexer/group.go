package indexer

import (
	"slices"

	"github.com/kvscout/kvscout/events"
)

// mask says in which tiers of which groups a source holds a block: bit group x TierCount + tier.
type mask uint64

// maxGroups is how many KV-cache groups of one source fit a mask.
const maxGroups = 12

// tierSet is a set of tiers, bit by tier.
type tierSet uint8

func bit(group int, tier events.Tier) mask { return 1 << (group*events.TierCount + int(tier)) }

// inTier is one tier of every group.
func inTier(tier events.Tier) (m mask) {
	for g := range maxGroups {
		m |= bit(g, tier)
	}
	return m
}

// in says whether the block is in one of these tiers for the group.
func (m mask) in(group int, tiers tierSet) bool {
	return m>>(group*events.TierCount)&mask(tiers) != 0
}

// group is a KV-cache group of a source, as its stores describe it.
type group struct {
	id     int // as announced; ungrouped without one
	spec   events.SpecKind
	window int   // tokens; 0 when not announced
	sizes  []int // block sizes of the scopes it stored into
}

const ungrouped = -1

// groups are one source's groups. A position, and so a mask, keeps its meaning until the source is cleared.
type groups []group

// table is what a source publishes about its groups. It is not changed once published.
type table struct {
	groups
	since uint64 // stripe.clears at the clear that made it; what was read of the tree before that is gone
	lanes []laneOf
	sizes []int // all block sizes of the groups, ascending
	// plain: one lane of the device, of one group that keeps every block, in one block size.
	plain bool
	// unsure is what the groups leave in doubt.
	unsure Doubt
}

func newTable(src events.Source, g groups, since uint64, lanes []laneOf) *table {
	t := &table{groups: g, since: since, lanes: lanes, unsure: g.doubt(dropsBlock(&src))}
	for i := range g {
		for _, s := range g[i].sizes {
			if !slices.Contains(t.sizes, s) {
				t.sizes = append(t.sizes, s)
			}
		}
	}
	slices.Sort(t.sizes)
	t.plain = len(g) == 1 && g[0].spec.Dense() && len(t.sizes) == 1 && len(lanes) == 1 &&
		lanes[0].bit == bit(0, events.TierDevice) && !witnessed(src)
	return t
}

// find is the position of the group that an event names. An event without one means the only group that keeps every
// block, if the others of its stream are numbered: offload tiers do not always number theirs.
func (g groups) find(id int) int {
	at := slices.IndexFunc(g, func(e group) bool { return e.id == id })
	if at >= 0 || id != ungrouped {
		return at
	}
	for i := range g {
		if !g[i].spec.Dense() {
			continue
		}
		if at >= 0 {
			return -1
		}
		at = i
	}
	return at
}

// learn is g with what a store into a scope of this block size says about its group, nil when that is nothing new, and
// the group's position. ok is false when the table is full.
func (g groups) learn(e *events.Event, size int) (next groups, at int, ok bool) {
	id := ungrouped
	if e.HasGroup {
		id = e.Group
	}
	at = g.find(id)
	if at >= 0 {
		have := g[at]
		if (e.Spec == events.SpecUnset || e.Spec == have.spec) && (e.Window == 0 || e.Window == have.window) &&
			slices.Contains(have.sizes, size) {
			return nil, at, true
		}
	} else if len(g) == maxGroups {
		return nil, 0, false
	}
	next = slices.Clone(g)
	if at < 0 {
		at = len(next)
		next = append(next, group{id: id})
	}
	n := &next[at]
	if e.Spec != events.SpecUnset {
		n.spec = e.Spec
	}
	if e.Window != 0 {
		n.window = e.Window
	}
	if !slices.Contains(n.sizes, size) {
		n.sizes = append(slices.Clone(n.sizes), size)
	}
	return next, at, true
}

// row is what one source holds of a prompt in one scope: entry i is block i. Missing tail entries hold nothing.
type row struct {
	size  int // tokens in a block
	pairs bool
	masks []mask
	asOf  uint64 // stripe.clears before the tree was read
}

func (r *row) at(i int) mask {
	if i < len(r.masks) {
		return r.masks[i]
	}
	return 0
}

// dense is the number of leading blocks, at most limit, that every dense group holds in one of these tiers. ok is
// false when no dense group stores blocks of this size.
func (g groups) dense(r *row, tiers tierSet, limit int) (n int, ok bool) {
	n = limit
	for i := range g {
		if !g[i].spec.Dense() || !slices.Contains(g[i].sizes, r.size) {
			continue
		}
		ok = true
		run := 0
		for run < n && r.at(run).in(i, tiers) {
			run++
		}
		n = run
	}
	return n, ok
}

// accept is the largest number of leading blocks, at most limit, that every group accepts (rule 6): dense groups hold
// all of them, a sliding window holds the last ones, a recurrent state lies exactly at the end. With lookahead the
// engine asks windows for one block more than the window needs (vLLM with EAGLE).
func (g groups) accept(r *row, tiers tierSet, limit int, lookahead bool) int {
	n, ok := g.dense(r, tiers, min(limit, len(r.masks)))
	if !ok {
		n = g.loose(r, tiers, min(limit, len(r.masks)))
	}
	for ; n > 0; n-- {
		if g.sparseAccept(r, tiers, n, lookahead) {
			return n
		}
	}
	return 0
}

// loose is dense for a block size in which no group keeps every block: windows and states ask nothing of what lies
// before them, a kind whose rule is not known stops at its first hole, and no group at all holds nothing.
func (g groups) loose(r *row, tiers tierSet, limit int) int {
	n, any := limit, false
	for i := range g {
		if !slices.Contains(g[i].sizes, r.size) {
			continue
		}
		any = true
		if g[i].narrow() {
			continue
		}
		run := 0
		for run < n && r.at(run).in(i, tiers) {
			run++
		}
		n = run
	}
	if !any {
		return 0
	}
	return n
}

// narrow says whether the group asks for the last blocks before a length only: a window or a state.
func (g *group) narrow() bool {
	switch g.spec {
	case events.SpecSlidingWindow, events.SpecSlidingWindowMLA, events.SpecMamba:
		return true
	default:
		return false
	}
}

func (g groups) sparseAccept(r *row, tiers tierSet, n int, lookahead bool) bool {
	for i := range g {
		if !slices.Contains(g[i].sizes, r.size) {
			continue
		}
		if !g[i].ends(r, i, tiers, n, lookahead) {
			return false
		}
	}
	return true
}

// ends says whether the group, at position at, accepts that a match ends after n blocks.
func (g *group) ends(r *row, at int, tiers tierSet, n int, lookahead bool) bool {
	need := 0
	switch g.spec {
	case events.SpecSlidingWindow, events.SpecSlidingWindowMLA:
		if g.window > 0 {
			need = (g.window - 1 + r.size - 1) / r.size
		}
		if lookahead && need > 0 {
			need++
		}
	case events.SpecMamba:
		need = 1
	}
	for b := max(0, n-need); b < n; b++ {
		if !r.at(b).in(at, tiers) {
			return false
		}
	}
	return true
}

// doubt says why the groups cannot tell the truth, 0 if they can: a kind or a window that was not announced or whose
// rule is not known. Where several groups drop a block (eagle), versions of vLLM differ in how often.
func (g groups) doubt(eagle bool) (d Doubt) {
	for i := range g {
		n := &g[i]
		switch n.spec {
		case events.SpecUnknown, events.SpecChunkedLocal:
			d |= DoubtWindow
			if !slices.ContainsFunc(g, func(e group) bool { return e.spec.Dense() }) {
				d |= DoubtGroups // it may accept what lies behind a hole
			}
		case events.SpecUnset:
			if len(g) > 1 {
				d |= DoubtGroups
			}
		case events.SpecSlidingWindow, events.SpecSlidingWindowMLA:
			if n.window == 0 {
				d |= DoubtWindow
			}
		}
		if n.narrow() && (eagle || len(n.sizes) > 1) {
			d |= DoubtGroups
		}
	}
	return d
}
