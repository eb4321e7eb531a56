package model

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

// shape is the size of a wide script.
type shape struct {
	sources, prompts, blocks int // blocks of the longest prompt
	batch                    int // blocks of most stores
	steps                    int
	whole                    bool // the first source holds the whole first prompt before anything else happens
}

// shapes of which a seed draws one: few sources that change a lot, dozens, hundreds on one prompt, chains of thousands.
var shapes = []shape{
	{sources: 6, prompts: 10, blocks: 48, batch: 8, steps: 700},
	{sources: 6, prompts: 3, blocks: 300, batch: 16, steps: 500},
	{sources: 40, prompts: 6, blocks: 64, batch: 8, steps: 400},
	{sources: 330, prompts: 3, blocks: 20, batch: 4, steps: 150},
	{sources: 4, prompts: 2, blocks: 5200, batch: 256, steps: 120},
}

// hashing is how a source names blocks.
type hashing int

const (
	hashShared  hashing = iota // as all others do
	hashOwn                    // as no other does
	hashTurning                // as all others at first, then as no other
	hashCounter                // 1, 2, 3 as they come: the same numbers as others for other blocks
	hashWrapped                // the same, and the numbers come again soon
	hashTwice                  // by one of two names, either one
	hashKinds
)

// wideText is a prompt with a sum over its first n tokens for each n.
type wideText struct {
	tokens []uint32
	sums   []uint64
}

// wide writes the script of many sources with one group each, on prompts that begin alike.
type wide struct {
	shape
	rng   *rand.Rand
	texts []wideText
	list  []*wideSource
}

// wideSource is what a source announced of late.
type wideSource struct {
	conf    events.Source
	sizes   []int
	hashing hashing
	stores  int
	numbers map[string]uint64
	next    uint64
	runs    map[runOf]map[int][]told
	calm    int // of so many steps one is a reset, one a gap, one a reopening, one a clear; 0 is never
}

// runOf is a prompt in a namespace, cut into blocks of size.
type runOf struct {
	text, ns, size int
}

// told is a copy of a block that was announced.
type told struct {
	hash events.Hash
	tier events.Tier
}

// wideScript draws a script. calm sources now and then lose everything at once.
func wideScript(seed uint64, s shape, calm int) *script {
	w := &wide{shape: s, rng: rand.New(rand.NewPCG(seed, 7))}
	w.prompts()
	out := &script{MaxOrphans: []int{64, 20000}[w.rng.IntN(2)]}
	for i := range s.sources {
		src := w.source(i, calm)
		w.list = append(w.list, src)
		out.Sources = append(out.Sources, src.conf)
	}
	for i, src := range w.list { // all hold the beginning of one prompt
		to := 1 + w.rng.IntN(min(20, s.blocks))
		if s.whole && i == 0 {
			to = s.blocks
		}
		first := events.Batch{Events: []events.Event{w.store(src, runOf{0, 0, src.sizes[0]}, 0, to, events.TierDevice)}}
		out.Ops = append(out.Ops, op{Source: i, Early: true, step: step{Batch: first}})
	}
	if s.whole {
		out.Ops[0].Asks = []ask{{Query: indexer.Query{Model: "m", Tokens: w.texts[0].tokens}}}
	}
	for range s.steps {
		i := w.rng.IntN(len(w.list))
		o := op{Source: i, step: w.step(w.list[i])}
		for range 1 + w.rng.IntN(2) {
			o.Asks = append(o.Asks, w.ask())
		}
		out.Ops = append(out.Ops, o)
	}
	return out
}

// prompts draws prompts of 4 tokens a block, most of which begin like one before.
func (w *wide) prompts() {
	for i := range w.shape.prompts {
		t := wideText{tokens: make([]uint32, 4*max(1, w.blocks*(1+w.rng.IntN(3))/3))}
		if i == 0 {
			t.tokens = make([]uint32, 4*w.blocks)
		}
		for j := range t.tokens {
			t.tokens[j] = w.rng.Uint32N(1000)
		}
		if i > 0 && w.rng.IntN(5) > 0 {
			from := w.texts[w.rng.IntN(i)]
			copy(t.tokens, from.tokens[:w.rng.IntN(len(from.tokens)+1)])
		}
		sum := uint64(0)
		for _, token := range t.tokens {
			sum = (sum ^ uint64(token)) * 0x9E3779B97F4A7C15
			sum ^= sum >> 29
			t.sums = append(t.sums, sum)
		}
		w.texts = append(w.texts, t)
	}
}

func (w *wide) source(i, calm int) *wideSource {
	s := &wideSource{hashing: hashing(w.rng.IntN(int(hashKinds))), sizes: []int{4}, calm: calm}
	s.conf = events.Source{Worker: fmt.Sprintf("w%d", i), Engine: events.EngineVLLM, Model: "m"}
	switch w.rng.IntN(10) {
	case 0:
		s.sizes = []int{8}
	case 1:
		s.sizes = []int{4, 16}
	case 2:
		s.conf.Engine = events.EngineSGLang
	}
	if w.rng.IntN(2) == 0 {
		s.hashing = hashShared
	}
	if w.rng.IntN(4) == 0 {
		s.calm = 0
	}
	s.forget()
	return s
}

func (s *wideSource) forget() {
	s.numbers, s.next, s.runs = make(map[string]uint64), 0, make(map[runOf]map[int][]told)
}

func (w *wide) step(s *wideSource) step {
	if s.calm > 0 {
		switch w.rng.IntN(s.calm) {
		case 0:
			s.forget()
			return step{Kind: stepReset}
		case 1:
			s.forget()
			return step{Kind: stepGap}
		case 2:
			late := w.some(s)
			s.forget()
			return step{Kind: stepReopen, Batch: events.Batch{Events: late}}
		case 5:
			return step{Kind: stepRestart}
		case 3:
			before := w.some(s)
			s.forget()
			list := append(before, events.Event{Kind: events.Cleared})
			return step{Batch: events.Batch{Events: append(list, w.some(s)...)}}
		case 4:
			return step{Batch: events.Batch{Events: []events.Event{{Kind: events.TierCleared, Tier: w.tier()}}}}
		}
	}
	out := w.some(s)
	for w.rng.IntN(3) == 0 {
		out = append(out, w.some(s)...)
	}
	return step{Batch: events.Batch{Events: out}}
}

func (w *wide) tier() events.Tier { return [...]events.Tier{0, 1, 1, 2, 3, 4}[w.rng.IntN(6)] }

// low is a number below n, small ones more often.
func (w *wide) low(n int) int { return min(w.rng.IntN(n), w.rng.IntN(n)) }

// some is one thing that an engine does.
func (w *wide) some(s *wideSource) []events.Event {
	r := runOf{w.low(len(w.texts)), 0, s.sizes[w.rng.IntN(len(s.sizes))]}
	if w.rng.IntN(4) == 0 {
		r.ns = w.rng.IntN(len(namespaces))
	}
	blocks := len(w.texts[r.text].tokens) / r.size
	if blocks == 0 {
		return nil
	}
	if k := w.rng.IntN(20); k >= 10 && len(s.runs[r]) > 0 {
		return w.change(s, r, k)
	}
	from := 0
	if have := s.runs[r]; len(have) > 0 { // go on where it ends
		from = min(slices.Max(slices.Collect(maps.Keys(have)))+1, blocks-1)
	}
	switch w.rng.IntN(8) {
	case 0: // anywhere, so that it may wait for its parent
		from = w.rng.IntN(blocks)
	case 1:
		from = 0
	}
	var out []events.Event
	for range 1 + w.rng.IntN(3) {
		to := min(blocks, from+1+w.rng.IntN(2*w.batch))
		out = append(out, w.store(s, r, from, to, events.TierDevice))
		if from = to; from >= blocks {
			break
		}
	}
	return out
}

// change does something to blocks that were announced.
func (w *wide) change(s *wideSource, r runOf, k int) []events.Event {
	have := slices.Sorted(maps.Keys(s.runs[r]))
	n := 1 + w.rng.IntN(min(len(have), 2*w.batch))
	at := w.rng.IntN(len(have) - n + 1)
	switch {
	case k < 13: // the end, in the engine's order
		list := have[len(have)-n:]
		slices.Reverse(list)
		return w.remove(s, r, list)
	case k == 13: // the beginning
		return w.remove(s, r, have[:n])
	case k == 14: // the middle
		return w.remove(s, r, have[at:at+n])
	case k == 15: // one block, then the same again
		out := w.remove(s, r, have[at:at+1])
		return append(out, w.store(s, r, have[at], have[at]+1, events.TierDevice))
	case k == 16: // a part once more
		return []events.Event{w.store(s, r, have[at], have[at]+n, events.TierDevice)}
	case k == 17: // into a slower tier
		return []events.Event{w.store(s, r, have[at], have[at]+n, w.tier())}
	case k == 18: // into a slower tier by hash, then away from the device
		place := events.Event{Kind: events.Stored, Tier: w.tier()}
		for _, i := range have[at : at+n] {
			t := s.runs[r][i][0]
			place.Hashes = append(place.Hashes, t.hash)
			s.runs[r][i] = append(s.runs[r][i], told{t.hash, place.Tier})
		}
		return []events.Event{place}
	default: // everything
		return w.remove(s, r, have)
	}
}

// remove takes one copy of each block away, with an event for each tier in between.
func (w *wide) remove(s *wideSource, r runOf, list []int) (out []events.Event) {
	for _, i := range list {
		copies := s.runs[r][i]
		k := w.rng.IntN(len(copies))
		t := copies[k]
		if n := len(out); n > 0 && out[n-1].Tier == t.tier {
			out[n-1].Hashes = append(out[n-1].Hashes, t.hash)
		} else {
			out = append(out, events.Event{Kind: events.Removed, Tier: t.tier, Hashes: []events.Hash{t.hash}})
		}
		if s.runs[r][i] = slices.Delete(slices.Clone(copies), k, k+1); len(copies) == 1 {
			delete(s.runs[r], i)
		}
	}
	return out
}

// store announces blocks from..to-1 of a prompt, or what of them there is.
func (w *wide) store(s *wideSource, r runOf, from, to int, tier events.Tier) events.Event {
	t, ns := w.texts[r.text], namespaces[r.ns]
	to = min(to, len(t.tokens)/r.size)
	if from >= to {
		from = to - 1
	}
	e := events.Event{Kind: events.Stored, BlockSize: r.size, LoraName: ns.Adapter, Tier: tier, Tokens: t.tokens[from*r.size : to*r.size]}
	if s.conf.Engine == events.EngineSGLang {
		e.Salt = ns.Salt
	} else {
		e.Extras = extrasOf(ns, from, to)
	}
	if from > 0 {
		e.Parent, e.HasParent = w.hash(s, r, from-1), true
		if before := s.runs[r][from-1]; len(before) > 0 {
			e.Parent = before[len(before)-1].hash
		}
	}
	if s.runs[r] == nil {
		s.runs[r] = make(map[int][]told)
	}
	for i := from; i < to; i++ {
		h := w.hash(s, r, i)
		e.Hashes = append(e.Hashes, h)
		s.runs[r][i] = append(slices.Clone(s.runs[r][i]), told{h, tier})
	}
	s.stores++
	return e
}

// extrasOf are vLLM's extra keys of blocks from..to-1: the adapter's name on each, the salt on the prompt's first.
func extrasOf(ns indexer.Namespace, from, to int) [][]events.Extra {
	if ns == (indexer.Namespace{}) {
		return nil
	}
	out := make([][]events.Extra, to-from)
	for i := range out {
		if ns.Adapter != "" {
			out[i] = append(out[i], events.Extra{Kind: events.ExtraString, Text: ns.Adapter})
		}
		if ns.Salt != "" && from+i == 0 {
			out[i] = append(out[i], events.Extra{Kind: events.ExtraString, Text: ns.Salt})
		}
	}
	return out
}

// hash is the name that a source gives to a block.
func (w *wide) hash(s *wideSource, r runOf, i int) events.Hash {
	name := fmt.Sprint(w.texts[r.text].sums[(i+1)*r.size-1], r.size, namespaces[r.ns])
	h := fnv.New64a()
	h.Write([]byte(name))
	own := s.hashing == hashOwn || s.hashing == hashTurning && s.stores > 5
	switch {
	case own:
		h.Write([]byte(s.conf.Worker))
	case s.hashing == hashTwice && w.rng.IntN(2) == 0:
		h.Write([]byte("again"))
	case s.hashing == hashCounter || s.hashing == hashWrapped:
		if s.numbers[name] == 0 || w.rng.IntN(10) == 0 {
			s.next++
			s.numbers[name] = s.next
		}
		n := s.numbers[name]
		if s.hashing == hashWrapped {
			n = cmp.Or(n%61, 61)
		}
		return events.HashInt(n)
	}
	return events.HashInt(h.Sum64())
}

// ask draws a prompt, most often one of the script's up to some block.
func (w *wide) ask() ask {
	t := w.texts[w.low(len(w.texts))]
	a := ask{Query: indexer.Query{Model: "m", Tokens: t.tokens}}
	if w.rng.IntN(4) == 0 {
		a.Namespace = namespaces[w.rng.IntN(len(namespaces))]
	}
	switch w.rng.IntN(6) {
	case 0:
		a.Tokens = slices.Clone(t.tokens)
		a.Tokens[w.rng.IntN(len(a.Tokens))] += 1000
	case 1:
		a.Tokens = append(slices.Clone(t.tokens), 1, 2, 3, 4, 5)
	case 2:
	default:
		a.Tokens = t.tokens[:w.rng.IntN(len(t.tokens)+1)]
	}
	if w.rng.IntN(6) == 0 && len(a.Tokens) > 0 {
		a.KeySize = 4 << w.rng.IntN(3)
	}
	return a
}
