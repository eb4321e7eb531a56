package indexer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events"
)

// twins are an index and one with the plain structure, with the same sources.
type twins struct {
	x, plain *Index
	of       map[*Ledger]*Ledger
	list     []*Ledger
}

func newTwins(t *testing.T, sources ...events.Source) *twins {
	t.Helper()
	w := &twins{x: New(Options{}), plain: New(Options{Plain: true}), of: make(map[*Ledger]*Ledger)}
	for _, src := range sources {
		a, err := w.x.Open(src)
		if err != nil {
			t.Fatal(err)
		}
		b, err := w.plain.Open(src)
		if err != nil {
			t.Fatal(err)
		}
		w.of[a] = b
		w.list = append(w.list, a)
	}
	return w
}

func (w *twins) apply(l *Ledger, e events.Event) {
	b := events.Batch{Events: []events.Event{e}}
	l.Apply(&b)
	w.of[l].Apply(&b)
}

// same compares what both say about a prompt, and returns how many tokens they credit.
func (w *twins) same(t *testing.T, q Query) (credited int) {
	t.Helper()
	var lists [2][]Match
	for i, x := range []*Index{w.plain, w.x} {
		list, err := x.Lookup(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(list, func(a, b Match) int { return strings.Compare(a.Source.ID(), b.Source.ID()) })
		lists[i] = list
	}
	if diff := cmp.Diff(lists[0], lists[1]); diff != "" {
		t.Fatalf("prompt %+v: plain (-) and chains (+) differ:\n%s", q, diff)
	}
	if a, b := w.plain.Stats(), w.x.Stats(); a.Blocks != b.Blocks || a.HolderBlocks != b.HolderBlocks || a.Scopes != b.Scopes {
		t.Fatalf("plain %+v, chains %+v", a, b)
	}
	for _, m := range lists[0] {
		credited += m.Held
	}
	return credited
}

// Sources whose hashes alone tell the namespace (SGLang's dynamo format) answer alike in both structures, whatever is
// stored and removed: several namespaces share one scope and one place, each under a hash of its own.
func TestRule03_TwinsOfWitnessedSources(t *testing.T) {
	const size, blocks = 4, 12
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var sources []events.Source
		for i := range 3 {
			sources = append(sources, events.Source{Worker: fmt.Sprint("w", i), Engine: events.EngineSGLang,
				HashFormat: events.HashFormatDynamo, Model: "m", PairKeys: i == 2})
		}
		w := newTwins(t, sources...)
		namespaces := []Namespace{{}, {Extra: "x"}, {Extra: "y"}}
		prompts := make([][]uint32, 4)
		for i := range prompts {
			prompts[i] = sequence(1, size*blocks+1)
			for j := rng.IntN(len(prompts[i])); j < len(prompts[i]); j++ {
				prompts[i][j] += uint32(1000 * i)
			}
		}
		credited := 0
		for range 200 {
			l := w.list[rng.IntN(len(w.list))]
			pairs := l.src.PairKeys
			tokens, ns := prompts[rng.IntN(len(prompts))], namespaces[rng.IntN(len(namespaces))]
			told := newWitness(tokens, size, pairs, ns, "")
			var hashes []events.Hash
			for range blocks {
				hashes = append(hashes, events.HashInt(told.step()))
			}
			n := 1 + rng.IntN(blocks)
			if rng.IntN(2) == 0 {
				from := rng.IntN(n)
				w.apply(l, events.Event{Kind: events.Removed, Hashes: hashes[from:n]})
			} else {
				e := events.Event{Kind: events.Stored, Hashes: hashes[:n], Tokens: tokens[:n*size], BlockSize: size, Pairs: pairs}
				if pairs {
					e.Tokens = tokens[:n*size+1]
				}
				w.apply(l, e)
			}
			q := Query{Model: "m", Tokens: prompts[rng.IntN(len(prompts))], Namespace: namespaces[rng.IntN(len(namespaces))]}
			credited += w.same(t, q)
			w.same(t, Query{Model: "m", KeySize: size, Keys: Keys(q.Tokens, nil, size, false, Namespace{})})
		}
		if err := w.x.sound(); err != nil {
			t.Fatal(err)
		}
		if credited == 0 {
			t.Fatal("nobody was ever credited: the test proves nothing")
		}
		for _, l := range w.list {
			l.Close()
		}
		if err := w.x.empty(); err != nil {
			t.Fatal(err)
		}
	}
}

// Long prompts that fork everywhere, held by many sources, are stored, evicted from either end and from the middle,
// and stored again: chains grow, are cut, go on in children, and members come and go.
func TestRule01_TwinsOfLongPrompts(t *testing.T) {
	const size, blocks, sources = 1, 200, 24
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 11))
		var list []events.Source
		for i := range sources {
			list = append(list, events.Source{Worker: fmt.Sprint("w", i), Engine: events.EngineVLLM, Model: "m"})
		}
		w := newTwins(t, list...)
		if seed%2 == 1 {
			w.x.chainsOf("m").dict.maxMoved = 0 // sources claim what they would move
		}
		prompts := make([][]uint32, 10)
		for i := range prompts {
			prompts[i] = make([]uint32, blocks)
			if i > 0 {
				copy(prompts[i], prompts[rng.IntN(i)])
			}
			for j := rng.IntN(blocks); j < blocks; j++ {
				prompts[i][j] = rng.Uint32N(3)
			}
		}
		readers := []*Reader{w.x.NewReader(), w.plain.NewReader()}
		for step := range 600 {
			at := rng.IntN(sources)
			l, tokens := w.list[at], prompts[rng.IntN(len(prompts))]
			own := uint64(0)
			if at%3 == 0 {
				own = uint64(at) // hashes of its own
			}
			var hashes []events.Hash
			sum := own
			for _, tok := range tokens {
				sum = mixHash(sum^uint64(tok)+1, 0)
				hashes = append(hashes, events.HashInt(sum|1))
			}
			from := rng.IntN(blocks)
			to := from + 1 + rng.IntN(blocks-from)
			tier := events.TierDevice
			if at%4 == 1 {
				tier = events.Tier(rng.IntN(2))
			}
			switch k := rng.IntN(100); {
			case k < 45:
				e := events.Event{Kind: events.Stored, Hashes: hashes[:to], Tokens: tokens[:to], BlockSize: size, Tier: tier}
				if at%5 == 2 { // a hybrid model's window
					e.HasGroup, e.Group = true, rng.IntN(2)
					if e.Group == 1 {
						e.Spec, e.Window = events.SpecSlidingWindow, 5
					}
				}
				w.apply(l, e)
			case k < 98:
				e := events.Event{Kind: events.Removed, Hashes: slices.Clone(hashes[from:to]), Tier: tier}
				if at%5 == 2 {
					e.HasGroup, e.Group = true, rng.IntN(2)
				}
				if k%2 == 0 {
					slices.Reverse(e.Hashes)
				}
				w.apply(l, e)
			default:
				w.apply(l, events.Event{Kind: events.Cleared})
			}
			q := prompt(prompts[rng.IntN(len(prompts))]...)
			w.same(t, q)
			sameHolders(t, readers, &q)
			if step%100 == 0 {
				if err := w.x.sound(); err != nil {
					t.Fatalf("seed %d, step %d: %v", seed, step, err)
				}
			}
		}
		for _, l := range w.list {
			l.Close()
		}
		if err := w.x.empty(); err != nil {
			t.Fatal(err)
		}
	}
}

func sameHolders(t *testing.T, readers []*Reader, q *Query) {
	t.Helper()
	var got [2]map[string]int
	for i, r := range readers {
		list, err := r.Holders(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		got[i] = make(map[string]int)
		for _, h := range list {
			got[i][r.x.Source(h.Source).Source().ID()] += int(h.Held)
		}
	}
	if diff := cmp.Diff(got[1], got[0]); diff != "" {
		t.Fatalf("holders by plain (-) and chains (+) differ:\n%s", diff)
	}
}
