package indexer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events"
)

// chainsOf is the tree in which a model lies.
func (x *Index) chainsOf(model string) *chains { return x.stripeOf(model).chains }

// sound checks the trees of all stripes.
func (x *Index) sound() (err error) {
	x.each(func(s *stripe) { err = errors.Join(err, s.chains.sound()) })
	return err
}

// empty checks that nothing is left in any stripe.
func (x *Index) empty() (err error) {
	x.each(func(s *stripe) { err = errors.Join(err, s.chains.empty()) })
	return err
}

// modelNames are n models, each in a stripe of its own.
func modelNames(n int) []string {
	var out []string
	seen := make(map[int]bool)
	for i := 0; len(out) < n; i++ {
		name := fmt.Sprint("model-", i)
		if at := stripeNumber(name); !seen[at] {
			seen[at] = true
			out = append(out, name)
		}
	}
	return out
}

// beside is a model in the stripe of another.
func beside(model string) string {
	for i := 0; ; i++ {
		if name := fmt.Sprint("beside-", i); stripeNumber(name) == stripeNumber(model) {
			return name
		}
	}
}

func openModel(t testing.TB, x *Index, worker, model string) *Ledger {
	t.Helper()
	l, err := x.Open(events.Source{Worker: worker, Engine: events.EngineVLLM, Model: model})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// openModels opens a source for each of n models in different stripes.
func openModels(t testing.TB, x *Index, n int) (list []*Ledger) {
	t.Helper()
	for i, name := range modelNames(n) {
		list = append(list, openModel(t, x, fmt.Sprint("w", i), name))
	}
	return list
}

// asked is what the sources of a model answer, by worker, in held tokens.
func asked(t testing.TB, r *Reader, q *Query) map[string]int {
	t.Helper()
	list, err := r.Lookup(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]int)
	for i := range list {
		out[list[i].Source.Worker] = list[i].Held
	}
	return out
}

// within10s fails when do does not end.
func within10s(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	t.Cleanup(func() { <-done }) // by then the test has let go of what do may wait for
	go func() {                  // ends with do; waited for here or in the cleanup
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Errorf("%s waited", what)
	}
}

// A writer that is in the middle of a batch holds up no writer of a model in another stripe, nor sources of such models
// that come and go, nor any lookup.
func TestRule16_ModelsAreWrittenSideBySide(t *testing.T) {
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprintf("plain=%v", plain), func(t *testing.T) {
			x := New(Options{Plain: plain})
			list := openModels(t, x, 3)
			one, other, third := list[0], list[1], list[2].src.Model
			for _, l := range list {
				l.Apply(&benchPrompt(1, 4, 1)[0])
			}
			r := x.NewReader()
			tokens := benchTokens(1, 8*benchBlock)

			one.x.mu.Lock()
			defer one.x.mu.Unlock()
			within10s(t, "a batch", func() {
				other.Apply(&benchPrompt(1, 8, 1)[0])
			})
			within10s(t, "a stream's life", func() {
				w, err := x.NewWriter(events.Source{Worker: "new", Engine: events.EngineVLLM, Model: third}, events.Limits{})
				if err != nil {
					t.Error(err)
					return
				}
				w.Joined(0, true)
				w.Apply(0, mustPack(t, []any{1.5, []any{chainOf(101, 3)}}), time.Unix(1, 0))
				w.Gap(1, 2)
				w.Reset()
				w.Apply(5, mustPack(t, []any{1.5, []any{chainOf(101, 3)}}), time.Unix(1, 0))
				if !w.Export(new(Saved)) {
					t.Error("nothing to save")
				}
				w.Close()
			})
			within10s(t, "opening a source of the model that is written", func() {
				if _, err := x.Open(events.Source{Worker: "w9", Engine: events.EngineVLLM, Model: one.src.Model}); err != nil {
					t.Error(err)
				}
			})
			within10s(t, "a lookup", func() {
				wants := []map[string]int{{"w0": 4 * benchBlock, "w9": 0}, {"w1": 8 * benchBlock}, {"w2": 4 * benchBlock}}
				for i, want := range wants {
					if diff := cmp.Diff(want, asked(t, r, &Query{Model: list[i].src.Model, Tokens: tokens})); diff != "" {
						t.Errorf("%s:\n%s", list[i].src.Model, diff)
					}
				}
			})
			within10s(t, "counting", func() {
				if s := x.Stats(); s.Sources != 4 || s.Scopes != 3 || s.Blocks != 16 || s.HolderBlocks != 16 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// A model that nobody serves has no answers, and asking for it makes nothing; one that comes later is found by a reader
// that asked before.
func TestRule17_UnknownModelsTakeNothing(t *testing.T) {
	x := New(Options{})
	r := x.NewReader()
	names := modelNames(stripeCount)
	for _, name := range names {
		q := Query{Model: name, Tokens: benchTokens(1, 8*benchBlock)}
		list, err := r.Holders(context.Background(), &q)
		held, err2 := x.Holdings(context.Background(), q)
		told, err3 := x.Explain(context.Background(), q)
		if err := errors.Join(err, err2, err3); err != nil {
			t.Fatal(err)
		}
		if len(asked(t, r, &q))+len(list)+len(held)+len(told) > 0 || x.HoldsAdapter(name, "a") {
			t.Fatalf("%s is answered: %v; %v; %v", name, list, held, told)
		}
	}
	x.each(func(s *stripe) { t.Errorf("there is stripe %d", s.number) })
	for i, name := range names {
		l := openModel(t, x, fmt.Sprint("w", i), name)
		l.Apply(&benchPrompt(1, 8, 1)[0])
		got := asked(t, r, &Query{Model: name, Tokens: benchTokens(1, 8*benchBlock)})
		if diff := cmp.Diff(map[string]int{l.src.Worker: 8 * benchBlock}, got); diff != "" {
			t.Fatalf("%s:\n%s", name, diff)
		}
	}
}

// Writers of several models, sources that come and go, and readers that alternate between the models: at no time more
// than was ever held is seen, and in the end exactly what is held.
func TestRule16_ReadersAlternateBesideWriters(t *testing.T) {
	const models, blocks = 5, 24
	rounds := 400
	if testing.Short() {
		rounds = 60
	}
	x := New(Options{})
	list := openModels(t, x, models-1)
	list = append(list, openModel(t, x, "b", beside(list[0].src.Model)))
	tokens := benchTokens(1, (blocks+models)*benchBlock)
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for i, l := range list {
		writers.Go(func() { // ends by itself; waited for below
			n := blocks + i
			store := benchPrompt(1, n, 1)[0]
			gone := events.Batch{Events: []events.Event{{Kind: events.Removed, Hashes: store.Events[0].Hashes[n/2:]}}}
			for range rounds {
				l.Apply(&store)
				guest, err := x.Open(events.Source{Worker: "guest", Rank: i, Engine: events.EngineVLLM, Model: l.src.Model})
				if err != nil {
					t.Error(err)
					return
				}
				guest.Apply(&store)
				l.Apply(&gone)
				guest.Close()
			}
			l.Apply(&store)
		})
	}
	for range 2 {
		readers.Go(func() { // ended by stop; waited for below
			r := x.NewReader()
			for at := 0; ; at++ {
				select {
				case <-stop:
					return
				default:
				}
				i := at % models
				found, err := r.Lookup(context.Background(), &Query{Model: list[i].src.Model, Tokens: tokens})
				if err != nil {
					t.Error(err)
					return
				}
				for _, m := range found {
					if m.Source.Model != list[i].src.Model || m.Held > (blocks+i)*benchBlock {
						t.Errorf("%s of %s holds %d tokens of %s", m.Source.ID(), m.Source.Model, m.Held, list[i].src.Model)
						return
					}
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	r := x.NewReader()
	for i, l := range list {
		got := asked(t, r, &Query{Model: l.src.Model, Tokens: tokens})
		if diff := cmp.Diff(map[string]int{l.src.Worker: (blocks + i) * benchBlock}, got); diff != "" {
			t.Errorf("%s:\n%s", l.src.Model, diff)
		}
	}
	if err := x.sound(); err != nil {
		t.Error(err)
	}
	for _, l := range list {
		l.Close()
	}
	if err := x.empty(); err != nil {
		t.Error(err)
	}
}

// What a reader looks at in one stripe stays for as long as it does, wherever it was before and will be.
func TestRule16_EpochsOfEachStripe(t *testing.T) {
	x := New(Options{})
	list := openModels(t, x, 3)
	q := Query{Tokens: benchTokens(1, 8*benchBlock)}
	r := x.NewReader()
	for round := range 2 {
		for i, l := range list {
			q.Model = l.src.Model
			l.Apply(&benchPrompt(1, 8, 1)[0])
			if !r.turn(q.Model) {
				t.Fatal("no stripe")
			}
			if err := r.collect(context.Background(), &q, false); err != nil {
				t.Fatal(err)
			}
			for at, l := range list {
				l.Reset()
				l.x.chains.reclaim()
				if waits := l.x.chains.waiting.Load() > 0; waits != (at == i) {
					t.Errorf("round %d, a reader in stripe %d: memory of %d waits: %v", round, i, at, waits)
				}
			}
			r.end()
			l.x.chains.reclaim()
			if n := l.x.chains.waiting.Load(); n != 0 {
				t.Errorf("%d bytes wait for nobody", n)
			}
		}
	}
}

// A reader that goes from model to model allocates nothing once it was in all of them.
func TestReader_AlternatesWithoutAllocating(t *testing.T) {
	x := New(Options{})
	list := openModels(t, x, 3)
	list = append(list, openModel(t, x, "b", beside(list[0].src.Model)))
	queries := make([]*Query, len(list))
	for i, l := range list {
		l.Apply(&benchPrompt(1, 32+i, 1)[0])
		queries[i] = &Query{Model: l.src.Model, Tokens: benchTokens(1, 40*benchBlock)}
	}
	r := x.NewReader()
	round := func() {
		for i, q := range queries {
			found, err := r.Lookup(context.Background(), q)
			if err != nil || len(found) != 1 || found[0].Held != (32+i)*benchBlock {
				t.Fatalf("%+v, %v", found, err)
			}
			if who, err := r.Holders(context.Background(), q); err != nil || len(who) != 1 {
				t.Fatalf("%+v, %v", who, err)
			}
		}
	}
	round()
	if n := testing.AllocsPerRun(50, round); n != 0 {
		t.Errorf("%v allocations per round, want 0", n)
	}
}
