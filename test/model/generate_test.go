package model

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

// profile is one kind of engine: what it is configured as and how it announces.
type profile struct {
	conf    events.Source
	sizes   []int
	space   string // sources of one space name equal blocks by equal hashes
	digests bool
	blind   bool // hashes leave the namespace out (older SGLang)
	hidden  int  // namespaces that only the hash shows (SGLang's extra keys)
	groups  []events.Event
}

func profiles() []profile {
	vllm := func(worker string, rank int) events.Source {
		return events.Source{Worker: worker, Rank: rank, Engine: events.EngineVLLM, Model: "m"}
	}
	sglang := func(worker string) events.Source {
		return events.Source{Worker: worker, Engine: events.EngineSGLang, Model: "m"}
	}
	full := events.Event{Group: 0, HasGroup: true, Spec: events.SpecFull}
	window := events.Event{Group: 1, HasGroup: true, Spec: events.SpecSlidingWindow, Window: 10}
	state := events.Event{Group: 2, HasGroup: true, Spec: events.SpecMamba}
	list := []profile{
		{conf: vllm("a", 0), sizes: []int{4}, space: "shared"},
		{conf: vllm("a", 1), sizes: []int{4}, space: "shared"},
		{conf: vllm("digests", 0), sizes: []int{4}, space: "d", digests: true},
		{conf: vllm("mixed", 0), sizes: []int{4, 8}, space: "mixed"},
		{conf: vllm("window", 0), sizes: []int{4}, space: "window", groups: []events.Event{full, window}},
		{conf: vllm("hybrid", 0), sizes: []int{4}, space: "hybrid", groups: []events.Event{full, window, state}},
		{conf: vllm("eagle", 0), sizes: []int{4}, space: "eagle", groups: []events.Event{full, window}},
		{conf: vllm("reports", 0), sizes: []int{4}, space: "reports"},
		{conf: vllm("other", 0), sizes: []int{8}, space: "shared"},
		{conf: sglang("blind"), sizes: []int{4}, space: "blind", blind: true},
		{conf: sglang("pairs"), sizes: []int{4}, space: "pairs"},
		{conf: sglang("hidden"), sizes: []int{4}, space: "hidden", hidden: 2},
	}
	list[6].conf.SpeculativeEAGLE = true
	list[7].conf.ReuseReports = true
	list[8].conf.Model = "m2"
	list[10].conf.PairKeys = true
	return list
}

// text is a prompt with its images.
type text struct {
	tokens   []uint32
	features []indexer.Feature
}

var namespaces = []indexer.Namespace{{}, {}, {Salt: "t-a"}, {Salt: "t-b"}, {Adapter: "ad"}, {Salt: "t-a", Adapter: "ad"}}

// prompts makes n prompts, most of which begin like one made before, some with an image.
func prompts(rng *rand.Rand, n int) (out []text) {
	for i := range n {
		t := text{tokens: make([]uint32, 48)}
		for j := range t.tokens {
			t.tokens[j] = rng.Uint32N(50000)
		}
		if i > 0 && rng.IntN(4) > 0 {
			from := out[rng.IntN(i)]
			copy(t.tokens, from.tokens[:rng.IntN(len(from.tokens)+1)])
			t.features = from.features
		}
		if rng.IntN(4) == 0 {
			id := strings.Repeat("0123456789abcdef"[i%16:i%16+1], 64)
			t.features = []indexer.Feature{{Hash: id, Offset: rng.IntN(40), Length: 1 + rng.IntN(8)}}
		}
		out = append(out, t)
	}
	return out
}

// generator writes the script of one source.
type generator struct {
	profile
	rng   *rand.Rand
	texts []text
	past  []events.Event // stores of late
	extra int            // the hidden namespace of the store being made
	calm  int            // of so many steps one is a reset, one a gap, one a reopening, and some are clears
}

func (g *generator) step() step {
	switch n := g.rng.IntN(g.calm); {
	case n == 0:
		return step{Kind: stepReset}
	case n == 1:
		return step{Kind: stepGap}
	case n == 2:
		return step{Kind: stepReopen, Batch: events.Batch{Events: slices.Clone(g.past)}}
	case n == 3:
		return step{Kind: stepRestart}
	case n < 6:
		return step{Batch: events.Batch{Events: append(g.some(2), append([]events.Event{{Kind: events.Cleared}}, g.some(2)...)...)}}
	case n < 12:
		return step{Batch: events.Batch{Events: []events.Event{{Kind: events.TierCleared, Tier: g.tier()}}}}
	default:
		return step{Batch: events.Batch{Events: g.some(3)}}
	}
}

// some is up to n times a store or a removal.
func (g *generator) some(n int) (out []events.Event) {
	for range 1 + g.rng.IntN(n) {
		switch k := g.rng.IntN(20); {
		case k < 8:
			out = append(out, g.stores()...)
		case k < 16:
			out = append(out, g.removal())
		case k == 16:
			out = append(out, g.backwards()...)
		case k == 17 && len(g.past) > 0:
			out = append(out, g.placeholder())
		case k == 18 && len(g.past) > 0: // the same again: a copy, or a report
			e := g.past[g.rng.IntN(len(g.past))]
			out = append(out, e, e)
		default:
			out = append(out, g.faulty())
		}
	}
	return out
}

func (g *generator) tier() events.Tier {
	return [...]events.Tier{0, 0, 0, 0, 1, 1, 2, 3, 4}[g.rng.IntN(9)]
}

// stores announces a run of blocks of one prompt: dense, and in hybrid models what the other groups keep of it, as
// vLLM does before the dense store.
func (g *generator) stores() []events.Event {
	t, ns := g.texts[g.rng.IntN(len(g.texts))], namespaces[g.rng.IntN(len(namespaces))]
	size := g.sizes[g.rng.IntN(len(g.sizes))]
	if g.hidden > 0 {
		g.extra = g.rng.IntN(g.hidden)
	}
	blocks := (len(t.tokens) - 1) / size
	from := g.rng.IntN(blocks)
	if g.rng.IntN(2) == 0 {
		from = 0
	}
	e := g.dense(t, ns, size, from, min(blocks, from+1+g.rng.IntN(6)))
	if g.groups == nil {
		e.Tier = g.tier()
		g.remember(e)
		return []events.Event{e}
	}
	var out []events.Event
	for _, like := range g.groups {
		s := e
		s.Group, s.HasGroup, s.Spec, s.Window = like.Group, true, like.Spec, like.Window
		if !like.Spec.Dense() {
			if g.rng.IntN(4) == 0 {
				continue
			}
			s.Hashes = slices.Clone(e.Hashes[g.rng.IntN(len(e.Hashes)+1):])
			if len(s.Hashes) == 0 { // it keeps nothing of the range
				s.Extras = nil
				out = append(out, s)
				continue
			}
			if like.Spec == events.SpecMamba {
				s.Hashes = s.Hashes[:1]
			}
		} else if g.rng.IntN(8) == 0 {
			continue
		}
		g.remember(s)
		out = append(out, s)
	}
	if g.rng.IntN(4) > 0 {
		slices.Reverse(out) // the dense store last
	}
	return out
}

// backwards announces the parts of a prompt last part first, so that each waits for the one before, and removes some
// block of them meanwhile.
func (g *generator) backwards() (out []events.Event) {
	t, ns := g.texts[g.rng.IntN(len(g.texts))], namespaces[g.rng.IntN(len(namespaces))]
	size := g.sizes[0]
	for to := (len(t.tokens) - 1) / size; to > 0; {
		from := max(0, to-1-g.rng.IntN(3))
		e := g.dense(t, ns, size, from, to)
		if g.groups != nil {
			e.Group, e.HasGroup, e.Spec = 0, true, events.SpecFull
		}
		g.remember(e)
		out = append(out, e)
		if g.rng.IntN(3) == 0 {
			gone := e
			gone.Kind, gone.Hashes = events.Removed, e.Hashes[len(e.Hashes)-1:]
			out = append(out, gone)
		}
		to = from
	}
	return out[:1+g.rng.IntN(len(out))]
}

func (g *generator) remember(e events.Event) {
	g.past = append(g.past, e)
	if len(g.past) > 40 {
		g.past = g.past[1:]
	}
}

// dense is the store of blocks from..to-1 of a prompt.
func (g *generator) dense(t text, ns indexer.Namespace, size, from, to int) events.Event {
	e := events.Event{Kind: events.Stored, BlockSize: size, LoraName: ns.Adapter, Pairs: g.conf.PairKeys}
	end := to * size
	if e.Pairs {
		end++
	}
	e.Tokens = t.tokens[from*size : end]
	if g.conf.Engine == events.EngineSGLang {
		e.Salt = ns.Salt
	}
	e.Extras = make([][]events.Extra, to-from)
	for i := from; i < to; i++ {
		e.Extras[i-from] = g.extras(t, ns, size, i)
		e.Hashes = append(e.Hashes, g.hash(t, ns, size, i))
	}
	if from > 0 {
		e.Parent, e.HasParent = g.hash(t, ns, size, from-1), true
	}
	return e
}

func (g *generator) extras(t text, ns indexer.Namespace, size, i int) (out []events.Extra) {
	if ns.Adapter != "" {
		out = append(out, events.Extra{Kind: events.ExtraString, Text: ns.Adapter})
	}
	for _, f := range t.features {
		if f.Offset < (i+1)*size && f.Offset+f.Length > i*size {
			out = append(out, events.Extra{Kind: events.ExtraPair, Text: f.Hash, Offset: int64(f.Offset - i*size)})
		}
	}
	if ns.Salt != "" && i == 0 && g.conf.Engine == events.EngineVLLM {
		out = append(out, events.Extra{Kind: events.ExtraString, Text: ns.Salt})
	}
	return out
}

// hash is the engine's id of block i.
func (g *generator) hash(t text, ns indexer.Namespace, size, i int) events.Hash {
	q := indexer.Query{Tokens: t.tokens, Features: t.features}
	name := fmt.Sprint(g.space, g.extra, size, texts(q, size, g.conf.PairKeys)[i])
	if !g.blind {
		name += fmt.Sprint(ns)
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	if g.digests {
		return events.HashBytes(append(h.Sum([]byte("a digest of 32 bytes: ")), h.Sum(nil)...))
	}
	return events.HashInt(h.Sum64())
}

// removal takes some blocks of a past store, in any order, some of them perhaps twice or not known at all.
func (g *generator) removal() events.Event {
	out := events.Event{Kind: events.Removed}
	if len(g.past) == 0 || g.rng.IntN(20) == 0 {
		out.Hashes = []events.Hash{events.HashInt(g.rng.Uint64())}
		return out
	}
	e := g.past[g.rng.IntN(len(g.past))]
	out.Tier, out.Group, out.HasGroup = e.Tier, e.Group, e.HasGroup
	if g.rng.IntN(10) == 0 {
		out.Tier = g.tier()
	}
	hashes := slices.Clone(e.Hashes)
	switch g.rng.IntN(3) {
	case 0:
		slices.Reverse(hashes)
	case 1:
		g.rng.Shuffle(len(hashes), func(i, j int) { hashes[i], hashes[j] = hashes[j], hashes[i] })
	}
	out.Hashes = hashes[:1+g.rng.IntN(len(hashes))]
	return out
}

// placeholder says that blocks lie in another tier too, by hash alone.
func (g *generator) placeholder() events.Event {
	e := g.past[g.rng.IntN(len(g.past))]
	out := events.Event{Kind: events.Stored, Hashes: e.Hashes, Tier: events.TierHost, Group: e.Group, HasGroup: e.HasGroup}
	if g.rng.IntN(2) == 0 {
		g.remember(out)
	}
	return out
}

// faulty is an event that must change nothing, or nearly so.
func (g *generator) faulty() events.Event {
	t := g.texts[g.rng.IntN(len(g.texts))]
	size := g.sizes[0]
	e := g.dense(t, namespaces[0], size, 1, 3)
	if g.groups != nil {
		e.Group, e.HasGroup, e.Spec = 0, true, events.SpecFull
	}
	switch g.rng.IntN(5) {
	case 0: // its own parent
		e.Parent = e.Hashes[0]
	case 1: // a partial block
		e.Tokens, e.Pairs = e.Tokens[:size-1], false
		e.Hashes, e.Extras = e.Hashes[:1], nil
	case 2: // no block size
		e.BlockSize = -size
	case 3: // more tokens than hashes
		e.Hashes = e.Hashes[:1]
		e.Extras = nil
	default: // the hash of another block, as the first block of a prompt
		e.HasParent, e.Parent = false, events.Hash{}
	}
	return e
}

// query is a prompt, cut, changed or extended, in some namespace.
func query(rng *rand.Rand, list []text) indexer.Query {
	t := list[rng.IntN(len(list))]
	q := indexer.Query{Model: "m", Tokens: t.tokens, Features: t.features, Namespace: namespaces[rng.IntN(len(namespaces))]}
	if rng.IntN(10) == 0 {
		q.Model = "m2"
	}
	switch rng.IntN(6) {
	case 0:
		q.Tokens = slices.Clone(q.Tokens)
		q.Tokens[rng.IntN(len(q.Tokens))]++
	case 1:
		q.Tokens = append(slices.Clone(q.Tokens), 1, 2, 3, 4, 5)
	case 2:
		q.Features = nil
	case 3:
		q.Salt = "t-c"
	default:
		q.Tokens = q.Tokens[:rng.IntN(len(q.Tokens)+1)]
	}
	return q
}
