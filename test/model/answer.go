package model

import (
	"slices"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

// Answer is what a source holds of a prompt, in tokens, as indexer.Match gives it.
type Answer struct {
	Held, Reusable int
	With, Covered  [events.TierCount]int
}

// asked is one prompt put to one source.
type asked struct {
	*Source
	q     *Prompt
	sizes []int // of blocks, ascending, that the source uses and the request can be asked in
	found map[int]map[blockOf]int
	runs  map[within]int
}

// within is a question to run.
type within struct{ tiers, limit int }

// blockOf is block i of the prompt in one group.
type blockOf struct{ i, group int }

// Answer answers for a prompt by comparing whole prefixes.
func (s *Source) Answer(q *Prompt) Answer {
	a := &asked{Source: s, q: q, found: map[int]map[blockOf]int{}, runs: map[within]int{}}
	a.sizes = a.usable()
	n := len(q.Tokens)
	if s.conf.PairKeys {
		n--
	}
	var out Answer
	if len(a.sizes) == 0 {
		return out
	}
	out.Held = a.run(1, n)
	if !a.anyDense() {
		out.Held = a.accepted(1, n, false)
	}
	before := 0
	for t := range events.TierUnknown {
		tiers := 1<<(t+1) - 1
		run := a.accepted(tiers, n, false)
		out.Covered[t], before = run-before, run
		out.With[t] = a.accepted(tiers, n-1, s.conf.SpeculativeEAGLE) // rule 7
		if s.conf.SpeculativeEAGLE {
			out.With[t] = max(0, out.With[t]-a.sizes[0])
		}
	}
	out.With[events.TierUnknown] = out.With[events.TierShared]
	out.Reusable = out.With[events.TierDevice]
	return out
}

func (a *asked) usable() []int {
	out := []int{}
	for _, g := range a.groups {
		for _, size := range g.sizes {
			if !slices.Contains(out, size) && (a.q.KeySize == 0 || a.q.KeySize == size) {
				out = append(out, size)
			}
		}
	}
	slices.Sort(out)
	return out
}

// has says whether a group holds block i of the prompt, in blocks of size, in one of these tiers.
func (a *asked) has(size, i, group, tiers int) bool {
	if a.found[size] == nil {
		a.found[size] = a.find(size)
	}
	return a.found[size][blockOf{i, group}]&tiers != 0
}

// find is the set of tiers in which the source holds each block of the prompt, in blocks of size.
func (a *asked) find(size int) map[blockOf]int {
	out := map[blockOf]int{}
	at := map[int]int{}
	for i, prefix := range a.q.prefixes(size, a.conf.PairKeys) {
		at[prefix] = i
	}
	for c := range a.copies {
		if c.scope != (scope{a.q.Model, a.q.Salt, a.q.Adapter, size, a.conf.PairKeys}) {
			continue
		}
		if i, ok := at[a.prefixes[c.handle]]; ok {
			out[blockOf{i, c.group}] |= 1 << c.tier
		}
	}
	return out
}

// texts spells every full block of a prompt with all that comes before it.
func texts(q indexer.Query, size int, pairs bool) (out []string) {
	n, text := len(q.Tokens), ""
	if pairs {
		n--
	}
	for i := range n / size {
		text += queryBlock(q, i, size, pairs)
		out = append(out, text)
	}
	return out
}

func (a *asked) anyDense() bool {
	for _, g := range a.groups {
		if g.spec.Dense() {
			return true
		}
	}
	return false
}

// run is the longest run of full blocks from token 0, ending within limit, that every group that keeps all blocks
// holds; blocks of several sizes may follow one another (rules 1, 4 and 5).
func (a *asked) run(tiers, limit int) int {
	limit -= limit % a.sizes[0] // sizes are multiples of the smallest: no block ends in between
	if run, ok := a.runs[within{tiers, limit}]; ok {
		return run
	}
	run := 0
	for grown := a.anyDense(); grown; {
		grown = false
		for _, size := range a.sizes {
			whole := (run/size+1)*size <= limit
			for id, g := range a.groups {
				whole = whole && (!g.spec.Dense() || a.has(size, run/size, id, tiers))
			}
			if whole {
				run, grown = (run/size+1)*size, true
			}
		}
	}
	a.runs[within{tiers, limit}] = run
	return run
}

// accepted is the largest length within limit that every group accepts (rule 6).
func (a *asked) accepted(tiers, limit int, eagle bool) int {
	most := limit
	if a.anyDense() {
		most = a.run(tiers, limit)
	}
	for length := most; length > 0; length-- {
		if a.anyDense() && a.run(tiers, length) != length || length%a.sizes[0] != 0 {
			continue
		}
		ok := len(a.groups) > 0
		for id, g := range a.groups {
			ok = ok && a.ends(id, g, tiers, length, eagle)
		}
		if ok {
			return length
		}
	}
	return 0
}

// ends says whether a window or state group accepts that a match ends at length. Such groups use one block size here.
func (a *asked) ends(id int, g group, tiers, length int, eagle bool) bool {
	size, need := g.sizes[0], 0
	switch g.spec {
	case events.SpecSlidingWindow:
		need = (g.window - 1 + size - 1) / size
		if eagle {
			need++
		}
	case events.SpecMamba:
		need = 1
	}
	for i := max(0, length/size-need); i < length/size; i++ {
		if !a.has(size, i, id, tiers) {
			return false
		}
	}
	return true
}
