package indexer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kvscout/kvscout/events"
)

// capTest is an index with a bound of memory beside one without, with the same sources, and an engine for each that
// remembers what it holds.
type capTest struct {
	t     *testing.T
	x     *Index
	whole *Index
	list  []*capped
	rng   *rand.Rand
	most  int // bytes that were ever seen
}

// capped is a source of both.
type capped struct {
	src      events.Source
	l, whole *Ledger
	seed     uint64      // of its hashes
	tiers    bool        // it stores all on the host too
	held     map[int]int // how many blocks of each prompt the engine holds
	order    []int       // prompts, oldest first
}

const capBlock = 4

func newCapTest(t *testing.T, seed uint64, limit int) *capTest {
	c := &capTest{t: t, x: New(Options{MaxBytes: limit, MaxOrphanBlocks: 256}), whole: New(Options{MaxOrphanBlocks: 256}), rng: rand.New(rand.NewPCG(seed, 5))}
	for i, src := range []events.Source{
		{Engine: events.EngineVLLM}, {Engine: events.EngineVLLM},
		{Engine: events.EngineVLLM, Version: "own"}, // seeds its hashes by process
		{Engine: events.EngineVLLM, ReuseReports: true},
		{Engine: events.EngineSGLang, HashFormat: events.HashFormatDynamo},
		{Engine: events.EngineVLLM, Version: "tiers"},
	} {
		s := &capped{held: make(map[int]int)}
		if src.Version == "own" {
			s.seed = 1 << 40
		}
		s.tiers = src.Version == "tiers"
		src.Worker, src.Model, src.Version = fmt.Sprint("w", i), "m", ""
		s.src = src
		s.l, s.whole = c.open(c.x, src), c.open(c.whole, src)
		c.list = append(c.list, s)
	}
	return c
}

func (c *capTest) open(x *Index, src events.Source) *Ledger {
	c.t.Helper()
	l, err := x.Open(src)
	if err != nil {
		c.t.Fatal(err)
	}
	l.Joined(true)
	return l
}

// promptOf is the tokens of a prompt; every fourth prompt shares its first blocks with the three before it.
func promptOf(id, blocks int) []uint32 {
	out := sequence(1, blocks*capBlock)
	for i := range out {
		out[i] += uint32(id/4) << 12
		if i >= 8*capBlock {
			out[i] += uint32(id%4+1) << 28
		}
	}
	return out
}

// hashesOf is the engine hashes of a prompt's blocks.
func (s *capped) hashesOf(id, blocks int) (out []events.Hash) {
	tokens := promptOf(id, blocks)
	if witnessed(s.src) {
		w := newWitness(tokens, capBlock, false, Namespace{}, "")
		for range blocks {
			out = append(out, events.HashInt(w.step()))
		}
		return out
	}
	at := uint64(1)
	for _, k := range Keys(tokens, nil, capBlock, false, Namespace{}) {
		at = mixHash(at^uint64(k), 7)
		out = append(out, events.HashInt(at+s.seed))
	}
	return out
}

func (c *capTest) apply(s *capped, e events.Event) {
	b := events.Batch{Events: []events.Event{e}}
	s.whole.Apply(&b)
	s.l.Apply(&b)
	c.most = max(c.most, c.x.Stats().Bytes)
}

// step stores a prompt, goes on with one, or has an engine evict.
func (c *capTest) step(fresh int) {
	s := c.list[c.rng.IntN(len(c.list))]
	id := max(0, fresh-c.rng.IntN(12))
	from := s.held[id]
	to := min(from+1+c.rng.IntN(60), 200)
	switch {
	case c.rng.IntN(3) == 0 && len(s.order) > 0:
		id := s.order[c.rng.IntN(len(s.order))]
		n := s.held[id]
		keep := max(8, c.rng.IntN(n)) // the first blocks are others' too
		if keep >= n {
			break
		}
		s.held[id] = keep
		gone := s.hashesOf(id, n)[keep:]
		c.apply(s, events.Event{Kind: events.Removed, Hashes: gone})
		if s.tiers {
			c.apply(s, events.Event{Kind: events.Removed, Hashes: gone, Tier: events.TierHost})
		}
	case to > from:
		e := events.Event{Kind: events.Stored, BlockSize: capBlock, Hashes: s.hashesOf(id, to)[from:], Tokens: promptOf(id, to)[from*capBlock:]}
		if from > 0 {
			e.HasParent, e.Parent = true, s.hashesOf(id, from)[from-1]
		}
		c.apply(s, e)
		if s.tiers {
			e.Tier = events.TierHost
			c.apply(s, e)
		}
		if s.held[id] = to; !slices.Contains(s.order, id) {
			s.order = append(s.order, id)
		}
	}
}

// check compares the answers about a prompt: with the bound each credits at most what it does without, and says so.
func (c *capTest) check(id int) (lost, held int) {
	c.t.Helper()
	q := Query{Model: "m", Tokens: append(promptOf(id, 200), 1)}
	answers := func(x *Index) map[string]Match {
		list, err := x.Lookup(context.Background(), q)
		if err != nil {
			c.t.Fatal(err)
		}
		out := make(map[string]Match)
		for _, m := range list {
			out[m.Source.ID()] = m
		}
		return out
	}
	whole := answers(c.whole)
	for name, m := range answers(c.x) {
		w := whole[name]
		less := m.Held < w.Held || m.Reusable < w.Reusable
		for t := range m.With {
			less = less || m.With[t] < w.With[t]
			if m.With[t] > w.With[t] {
				c.t.Fatalf("%s, prompt %d: %d with tier %d, without a bound %d", name, id, m.With[t], t, w.With[t])
			}
		}
		if m.Held > w.Held || m.Reusable > w.Reusable {
			c.t.Fatalf("%s, prompt %d: %+v, without a bound %+v", name, id, m, w)
		}
		if less {
			lost++
			if m.Bound.Doubt&DoubtCapped == 0 || w.Bound.Kind == Exact && m.Bound.Kind != Lower {
				c.t.Fatalf("%s, prompt %d: %d of %d held, and the bound is %+v", name, id, m.Held, w.Held, m.Bound)
			}
		}
		held += m.Held
	}
	return lost, held
}

// With a bound of memory nothing is credited beyond what is without one; what is missing shows as a lower bound and is
// counted; prompts that are stored into survive; and nothing is left when all is closed.
func TestRule17_MaxBytes(t *testing.T) {
	const limit = 4 << 20
	for seed := range uint64(3) {
		c := newCapTest(t, seed, limit)
		lost := 0
		for i := range 6000 {
			fresh := i / 20
			c.step(fresh)
			if i%50 == 0 {
				n, _ := c.check(c.rng.IntN(fresh + 1))
				lost += n
			}
			if i%500 == 0 {
				if err := c.x.sound(); err != nil {
					t.Fatal(err)
				}
			}
		}
		var evicted uint64
		r := &rig{t: t, x: c.x}
		for _, s := range c.list {
			r.books(s.src.ID(), s.l)
			evicted += s.l.Stats().Evicted
		}
		for id := range 12 {
			if _, held := c.check(299 - id); id < 6 && held == 0 {
				t.Errorf("seed %d: nothing is left of prompt %d, which was stored just now", seed, 299-id)
			}
		}
		whole := c.whole.Stats()
		if evicted == 0 || lost == 0 || whole.Bytes < 2*limit {
			t.Errorf("seed %d: %d evicted, %d answers were less, %d bytes without a bound: the test proves nothing", seed, evicted, lost, whole.Bytes)
		}
		t.Logf("seed %d: at most %d bytes, now %d, %d without a bound; %d holder-blocks of %d, %d evicted", seed, c.most, c.x.Stats().Bytes,
			whole.Bytes, c.x.Stats().HolderBlocks, whole.HolderBlocks, evicted)
		if now := c.x.Stats().Bytes; c.most > limit+limit/32 || now < limit*3/4 {
			t.Errorf("seed %d: at most %d bytes, now %d, bound to %d", seed, c.most, now, limit)
		}
		for _, s := range c.list {
			s.l.Close()
		}
		if err := c.x.empty(); err != nil {
			t.Error(err)
		}
		if n := c.x.stripeOf("m").books.Load(); n != 0 {
			t.Errorf("%d bytes of books are left", n)
		}
	}
}

// full is an index at its bound, of which w0 lost the prompt that it stored first.
func full(t *testing.T) (x *Index, w0, other *Ledger) {
	t.Helper()
	x = New(Options{MaxBytes: 1 << 20})
	var err error
	if w0, err = x.Open(events.Source{Worker: "w0", Engine: events.EngineVLLM, Model: "m"}); err != nil {
		t.Fatal(err)
	}
	if other, err = x.Open(events.Source{Worker: "other", Engine: events.EngineVLLM, Model: "m"}); err != nil {
		t.Fatal(err)
	}
	w0.Joined(true)
	other.Joined(true)
	for _, b := range benchPrompt(0, 64, 1) {
		w0.Apply(&b)
	}
	return x, w0, other
}

// fill stores prompts of the source until the index forgets, and then some.
func fill(l *Ledger, from int) (next int) {
	for id, was := from, l.Stats().Evicted; ; id++ {
		for _, b := range benchPrompt(id, 64, uint64(id)<<20) {
			l.Apply(&b)
		}
		if l.Stats().Evicted > was+1000 {
			return id + 1
		}
	}
}

func heldBy(t *testing.T, x *Index, worker string, id, blocks int) Match {
	t.Helper()
	list, err := x.Lookup(context.Background(), Query{Model: "m", Tokens: benchTokens(id, blocks*benchBlock)})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(m Match) bool { return m.Source.Worker == worker })
	return list[i]
}

// What the engine says later of what was forgotten changes no other answer: removals of it are counted, what goes on from
// it waits and is given up for room, and the next clear ends the doubt.
func TestRule13_AfterMaxBytes(t *testing.T) {
	x, w0, other := full(t)
	next := fill(other, 1)
	want := newBound(DoubtCapped)
	if m := heldBy(t, x, "w0", 0, 64); m.Held != 0 || m.Bound != want || w0.Stats().Evicted != 64 || w0.Stats().Handles != 0 {
		t.Fatalf("after the bound was met: %+v, %+v", m, w0.Stats())
	}
	prompt := benchPrompt(0, 96, 1)
	w0.Apply(&events.Batch{Events: []events.Event{{Kind: events.Removed, Hashes: prompt[0].Events[0].Hashes[:3]}}})
	s := w0.Stats()
	if s.Rejected[events.ReasonUnknownRemoval] != 3 || s.Bound != want {
		t.Errorf("removals of what was forgotten: %d counted, bound %+v", s.Rejected[events.ReasonUnknownRemoval], s.Bound)
	}
	w0.Apply(&prompt[len(prompt)-1]) // goes on from what is not there; given up at once if the bound is met by it
	if s := w0.Stats(); s.OrphanStores+s.OrphansDropped != 1 || s.Bound.Kind != Lower {
		t.Errorf("a store behind what was forgotten: %+v", s)
	}
	fill(other, next)
	if s := w0.Stats(); s.OrphanStores != 0 || s.OrphansDropped != 1 || s.Bound.Kind != Lower {
		t.Errorf("what waited, after the bound was met again: %+v", s)
	}
	b := w0.Export()
	y := New(Options{})
	again, err := y.Open(w0.Source())
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Restore(b, 1<<40); err != nil {
		t.Fatal(err)
	}
	again.Proven()
	if s := again.Stats(); s.Bound.Doubt&DoubtCapped == 0 || s.Evicted != 64 {
		t.Errorf("restored: %+v", s)
	}
	w0.Apply(&events.Batch{Events: []events.Event{{Kind: events.Cleared}}})
	for _, b := range benchPrompt(0, 64, 1) {
		w0.Apply(&b)
	}
	if m := heldBy(t, x, "w0", 0, 64); m.Held != 64*benchBlock || m.Bound.Doubt&DoubtCapped != 0 {
		t.Errorf("after a clear: %+v", m)
	}
	if err := x.sound(); err != nil {
		t.Error(err)
	}
}

// Case 108: ends of prompts go before their starts, so that what is left of one can be used.
func TestRule17_Case108_StartsGoLast(t *testing.T) {
	x := New(Options{MaxBytes: 1 << 20})
	l, err := x.Open(events.Source{Worker: "w0", Engine: events.EngineVLLM, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	l.Joined(true)
	const shared, own = 8, 8
	start := benchTokens(0, shared*benchBlock)
	l.Apply(&events.Batch{Events: []events.Event{dense(1, 0, start, benchBlock)}}) // long before the rest
	ask := func(id int) Query {
		return Query{Model: "m", Tokens: append(slices.Clone(start), benchTokens(id, own*benchBlock)...)}
	}
	id := 1 // the first goes on in the chain of the start
	for ; l.Stats().Evicted < 10000; id++ {
		e := dense(uint64(id)<<20, 0, benchTokens(id, own*benchBlock), benchBlock)
		e.HasParent, e.Parent = true, events.HashInt(shared)
		l.Apply(&events.Batch{Events: []events.Event{e}})
	}
	for at, want := range map[int]int{2: shared, id - 1: shared + own} {
		list, err := x.Lookup(context.Background(), ask(at))
		if err != nil || list[0].Held != want*benchBlock || list[0].Bound != newBound(DoubtCapped) {
			t.Errorf("prompt %d of %d: %+v, %v; want %d blocks", at, id-1, list, err, want)
		}
	}
}

// A prompt that is stored again is not the oldest any more.
func TestRule17_MaxBytesKeepsWhatIsStoredAgain(t *testing.T) {
	x, w0, other := full(t)
	for id := 1; other.Stats().Evicted < 5000; id++ {
		for _, b := range benchPrompt(id, 64, uint64(id)<<20) {
			other.Apply(&b)
		}
		for _, b := range benchPrompt(0, 64, 1) {
			w0.Apply(&b)
		}
	}
	if m := heldBy(t, x, "w0", 0, 64); m.Held != 64*benchBlock || m.Bound.Kind != Exact {
		t.Errorf("%+v", m)
	}
}

// Whoever looks up while blocks are forgotten is told so with the first that is missing.
func TestRule13_MaxBytesBesideReaders(t *testing.T) {
	for range 20 {
		x, _, other := full(t)
		done := make(chan string, 1)
		go func() { // ends when the prompt is gone, or is found wrong; waited for by done
			r := x.NewReader()
			q := Query{Model: "m", Tokens: benchTokens(0, 64*benchBlock)}
			for {
				list, err := r.Lookup(context.Background(), &q)
				if err != nil {
					done <- err.Error()
					return
				}
				i := slices.IndexFunc(list, func(m Match) bool { return m.Source.Worker == "w0" })
				if m := list[i]; m.Held < 64*benchBlock && m.Bound.Doubt&DoubtCapped == 0 {
					done <- fmt.Sprintf("%+v", m)
					return
				} else if m.Held == 0 {
					done <- ""
					return
				}
			}
		}()
		fill(other, 1)
		if fault := <-done; fault != "" {
			t.Fatal(fault)
		}
	}
}
