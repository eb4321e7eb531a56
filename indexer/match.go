package indexer

import (
	"slices"

	"github.com/kvscout/kvscout/events"
)

// match makes m, which Ledger.precede has begun, the answer of one source.
func (r *Reader) match(l *Ledger, m *Match) {
	q, t := r.q, l.table.Load()
	m.Source, m.Bound = l.src, l.bound(q, t, m.Bound.Doubt)
	if w, blocks, ok := r.plainRun(t); ok && sees(q, l) {
		m.BlockSize = t.sizes[0]
		if blocks > 0 {
			l.matchPlain(m, q, w, blocks)
		}
		return
	}
	l.matchRows(m, q, r.rowsOf(l, t), t)
}

// matchRows is match for a source that needs its groups asked.
func (l *Ledger) matchRows(m *Match, q *Query, rows []*row, t *table) {
	if sizes := l.blockSizes(); len(sizes) > 0 {
		m.BlockSize = sizes[0]
	}
	if len(rows) == 0 {
		return
	}
	m.BlockSize = rows[0].size
	v := &verdict{groups: t.groups, rows: rows, prompt: q.Length(), eagle: dropsBlock(&l.src)}
	if rows[0].pairs {
		v.prompt-- // n tokens make n-1 pairs
	}
	m.Held = v.held()
	before := 0
	for t := range events.TierUnknown {
		tiers := tierSet(1)<<(t+1) - 1
		run := v.accepted(tiers, v.prompt, false)
		m.Covered[t] = run - before
		before = run
		m.With[t] = v.reusable(tiers)
	}
	if covered := len(q.Keys) * q.KeySize; q.Keys != nil && v.prompt >= covered+q.KeySize {
		// A window may accept more than the keys cover though it accepts nothing of it.
		m.cutAt(q, max(before, v.union(tierSet(1)<<events.TierUnknown-1, v.prompt)), v.prompt)
	}
	m.With[events.TierUnknown] = m.With[events.TierUnknown-1]
	m.Reusable = m.With[events.TierDevice]
}

// matchPlain is matchRows for a source with blocks leading blocks in the device and nothing else.
func (l *Ledger) matchPlain(m *Match, q *Query, w *walk, blocks int) {
	prompt := q.Length()
	if w.pairs {
		prompt--
	}
	run := min(blocks, prompt/w.size) * w.size
	m.Held, m.Covered[events.TierDevice] = min(prompt, blocks*w.size), run
	m.Reusable = min(blocks, max(0, prompt-1)/w.size) * w.size
	if dropsBlock(&l.src) {
		m.Reusable = max(0, m.Reusable-w.size)
	}
	for t := range m.With {
		m.With[t] = m.Reusable
	}
	m.cutAt(q, run, prompt)
}

// cutAt notes a doubt where all is held that the request's keys cover, and its prompt goes on.
func (m *Match) cutAt(q *Query, reached, prompt int) {
	if covered := len(q.Keys) * q.KeySize; q.Keys != nil && reached >= covered && prompt >= covered+q.KeySize {
		m.Bound = newBound(m.Bound.Doubt | DoubtCut)
	}
}

// verdict weighs the rows of one source, one for each block size it uses, sorted by size.
type verdict struct {
	groups groups
	rows   []*row
	prompt int // tokens, or pairs
	eagle  bool
}

const device tierSet = 1 << events.TierDevice

// held is the leading run on the device, whatever sparse groups keep.
func (v *verdict) held() int {
	if len(v.rows) > 1 && !v.split() {
		return v.union(device, v.prompt)
	}
	if !slices.ContainsFunc(v.groups, func(g group) bool { return g.spec.Dense() }) {
		return v.accepted(device, v.prompt, false)
	}
	run := v.prompt
	for i := range v.groups {
		if v.groups[i].spec.Dense() {
			run = min(run, v.run(i))
		}
	}
	return run
}

// run is the leading run on the device of a group, in the block size that holds most.
func (v *verdict) run(group int) int {
	best := 0
	for _, r := range v.rows {
		n := 0
		for r.at(n).in(group, device) {
			n++
		}
		best = max(best, n*r.size)
	}
	return best
}

// reusable applies the caps of rule 7: the engine always computes the last token, and vLLM with EAGLE drops the last
// block that it matched.
func (v *verdict) reusable(tiers tierSet) int {
	size := v.rows[0].size
	n := v.accepted(tiers, max(0, v.prompt-1), v.eagle)
	if v.eagle {
		n = max(0, n-size)
	}
	return n
}

// split says whether the groups of the source live in different block sizes, so that all of them must agree. Otherwise
// several sizes are several copies, such as tiers with blocks of their own size.
func (v *verdict) split() bool {
	for i := range v.groups {
		for j := range i {
			if !slices.ContainsFunc(v.groups[i].sizes, func(s int) bool { return slices.Contains(v.groups[j].sizes, s) }) {
				return true
			}
		}
	}
	return false
}

// accepted is the largest number of leading tokens, at most limit, that all groups accept.
func (v *verdict) accepted(tiers tierSet, limit int, lookahead bool) int {
	if len(v.rows) == 1 && !v.split() {
		r := v.rows[0]
		return v.groups.accept(r, tiers, limit/r.size, lookahead) * r.size
	}
	if !v.split() {
		return v.windowed(tiers, limit, lookahead)
	}
	// Each size narrows the length until all agree. A size in which nothing is held accepts nothing.
	for _, g := range v.groups {
		for _, s := range g.sizes {
			if !slices.ContainsFunc(v.rows, func(r *row) bool { return r.size == s }) {
				return 0
			}
		}
	}
	for {
		before := limit
		for _, r := range v.rows {
			limit = v.groups.accept(r, tiers, limit/r.size, lookahead) * r.size
		}
		if limit == before || limit == 0 {
			return limit
		}
	}
}

// windowed is the longest union that every sparse group accepts in one of its block sizes.
func (v *verdict) windowed(tiers tierSet, limit int, lookahead bool) int {
	for {
		n := v.union(tiers, limit)
		if n == 0 || v.sparse(tiers, n, lookahead) {
			return n
		}
		limit = n - 1
	}
}

func (v *verdict) sparse(tiers tierSet, n int, lookahead bool) bool {
	for i := range v.groups {
		g := &v.groups[i]
		if !g.narrow() {
			continue
		}
		if !slices.ContainsFunc(v.rows, func(r *row) bool {
			return slices.Contains(g.sizes, r.size) && n%r.size == 0 && g.ends(r, i, tiers, n/r.size, lookahead)
		}) {
			return false
		}
	}
	return true
}

// union is the leading run that blocks of any size cover together, those that end after limit left out.
func (v *verdict) union(tiers tierSet, limit int) int {
	run := 0
	for grown := true; grown; {
		grown = false
		for _, r := range v.rows {
			for (run/r.size+1)*r.size <= limit && v.covers(r, run/r.size, tiers) {
				run = (run/r.size + 1) * r.size
				grown = true
			}
		}
	}
	return run
}

func (v *verdict) covers(r *row, block int, tiers tierSet) bool {
	ok := false
	for i := range v.groups {
		if v.groups[i].spec.Dense() && slices.Contains(v.groups[i].sizes, r.size) {
			if !r.at(block).in(i, tiers) {
				return false
			}
			ok = true
		}
	}
	return ok
}
