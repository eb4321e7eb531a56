package model

import (
	"context"
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

var (
	seedFlag  = flag.Uint64("model.seed", 0, "seed of the model tests; 0 draws one")
	stepsFlag = flag.Int("model.steps", 0, "steps of one run; 0 runs several of 1,000 for some seconds")
)

// world is an index beside the models of its sources.
type world struct {
	t       *testing.T
	x       *indexer.Index
	twin    *indexer.Index    // of the plain structure
	readers []*indexer.Reader // of both
	rng     *rand.Rand
	texts   []text
	list    []*pair
	max     int // blocks that may wait
}

// pair is one source of the index beside its model.
type pair struct {
	gen    *generator
	model  *Source
	ledger *indexer.Ledger
	twin   *indexer.Ledger // in the twin
}

// newWorld opens a source of each kind; calm is how often they are left alone, see generator.
func newWorld(t *testing.T, seed uint64, calm int) *world {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := &world{t: t, rng: rng, texts: prompts(rng, 12), max: []int{16, 1000}[rng.IntN(2)]}
	w.x = indexer.New(indexer.Options{MaxOrphanBlocks: w.max})
	w.twin = indexer.New(indexer.Options{MaxOrphanBlocks: w.max, Plain: true})
	w.readers = []*indexer.Reader{w.x.NewReader(), w.twin.NewReader()}
	for i, p := range profiles() {
		g := &generator{profile: p, rng: rand.New(rand.NewPCG(seed, uint64(2+i))), texts: w.texts, calm: calm}
		s := &pair{gen: g, model: NewSource(p.conf, w.max)}
		w.open(s)
		w.list = append(w.list, s)
	}
	return w
}

func (w *world) open(p *pair) {
	for x, l := range map[*indexer.Index]**indexer.Ledger{w.x: &p.ledger, w.twin: &p.twin} {
		opened, err := x.Open(p.gen.conf)
		if err != nil {
			w.t.Error(err)
			return
		}
		opened.Joined(true)
		*l = opened
	}
}

// run does one step to model and index.
func (w *world) run(p *pair, s step) {
	switch s.kind {
	case stepApply:
		p.model.Apply(s.batch)
		p.ledger.Apply(&s.batch)
		p.twin.Apply(&s.batch)
	case stepReset:
		p.model.Clear()
		p.ledger.Reset()
		p.twin.Reset()
	case stepGap:
		p.model.Clear()
		p.ledger.Gap(1)
		p.twin.Gap(1)
	case stepReopen:
		p.model = NewSource(p.gen.conf, w.max)
		for _, old := range []*indexer.Ledger{p.ledger, p.twin} {
			old.Close()
			old.Apply(&events.Batch{Events: p.gen.past}) // late events of a closed source go nowhere
		}
		w.open(p)
	case stepRestart:
		p.model.ForgetWaiting()
		books := []*indexer.Book{p.ledger.Export(), p.twin.Export()}
		p.ledger.Close()
		p.twin.Close()
		w.open(p)
		for i, l := range []*indexer.Ledger{p.twin, p.ledger} { // each from the other's
			if err := l.Restore(books[i], time.Hour); err != nil {
				w.t.Error(err)
			}
			if l.Stats().Bound.Doubt&indexer.DoubtResumed == 0 {
				w.t.Error("restored, and no doubt about it")
			}
			l.Proven()
		}
	}
}

// check compares every source's answer to one prompt, and says whether all agree.
func (w *world) check(q indexer.Query) bool {
	w.t.Helper()
	asked, size := q, 0
	if len(q.Tokens) > 0 && w.rng.IntN(8) == 0 { // by keys instead of tokens
		size = 4 << w.rng.IntN(2)
		asked.Keys = indexer.Keys(q.Tokens, q.Features, size, false, q.Namespace)
		asked.KeySize, asked.PromptTokens, asked.Tokens = size, len(q.Tokens), nil
	}
	list, err := w.x.Lookup(context.Background(), asked)
	if err != nil {
		w.t.Error(err)
		return false
	}
	ok := w.twins(asked, list)
	got := make(map[string]Answer)
	for _, m := range list {
		got[m.Source.ID()] = Answer{m.Held, m.Reusable, m.With, m.Covered}
	}
	want := make(map[string]Answer)
	for _, p := range w.list {
		if p.gen.conf.Model != q.Model {
			continue
		}
		want[p.gen.conf.ID()] = p.model.Answer(q, size)
		if size > 0 && p.gen.conf.PairKeys { // keys of tokens are none of pairs
			want[p.gen.conf.ID()] = Answer{}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("prompt %+v, keys of %d: model (-) and index (+) differ:\n%s", q, size, diff)
		return false
	}
	return ok
}

// twins compares the index with its twin: what they answer about one prompt, bounds and all, and how many blocks and
// scopes they have.
func (w *world) twins(q indexer.Query, got []indexer.Match) bool {
	w.t.Helper()
	want, err := w.twin.Lookup(context.Background(), q)
	if err != nil {
		w.t.Error(err)
		return false
	}
	byID := func(a, b indexer.Match) int { return strings.Compare(a.Source.ID(), b.Source.ID()) }
	slices.SortFunc(got, byID)
	slices.SortFunc(want, byID)
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("prompt %+v: twin (-) and index (+) differ:\n%s", q, diff)
		return false
	}
	if diff := cmp.Diff(w.twin.Stats(), w.x.Stats(), cmpopts.IgnoreFields(indexer.Stats{}, "Bytes")); diff != "" {
		w.t.Errorf("twin (-) and index (+) count differently:\n%s", diff)
		return false
	}
	if !w.holders(q, got) {
		return false
	}
	held, err := w.x.Holdings(context.Background(), q)
	twin, err2 := w.twin.Holdings(context.Background(), q)
	if diff := cmp.Diff(twin, held, cmpopts.SortSlices(func(a, b indexer.Holding) bool { return byID(a.Match, b.Match) < 0 })); diff != "" || err != nil || err2 != nil {
		w.t.Errorf("prompt %+v: twin (-) and index (+) hold differently, %v, %v:\n%s", q, err, err2, diff)
		return false
	}
	return true
}

// holders compares what a reader that was used before says of both structures with what the full answer says.
func (w *world) holders(q indexer.Query, matches []indexer.Match) bool {
	w.t.Helper()
	want := make(map[string]int)
	for _, m := range matches {
		if m.Held > 0 {
			want[m.Source.ID()] = m.Held
		}
	}
	for i, r := range w.readers {
		list, err := r.Holders(context.Background(), &q)
		got := make(map[string]int)
		for _, h := range list {
			id := h.Ledger.Source().ID()
			if _, twice := got[id]; twice {
				w.t.Errorf("%s is twice among the holders", id)
			}
			got[id] = h.Held
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			w.t.Errorf("reader %d, prompt %+v: matches (-) and holders (+) differ, %v:\n%s", i, q, err, diff)
			return false
		}
	}
	return true
}

// counts compares what a source's statistics count.
func (w *world) counts(p *pair) bool {
	w.t.Helper()
	type numbers struct{ Handles, Waiting, WaitingBlocks, Device, Host, Disk, Shared, Unknown int }
	s := p.ledger.Stats()
	r := s.Resident
	got := numbers{s.Handles, s.OrphanStores, s.OrphanBlocks, r[0], r[1], r[2], r[3], r[4]}
	var n [events.TierCount]int
	for c := range p.model.copies {
		n[c.tier]++
	}
	want := numbers{len(p.model.texts), len(p.model.waiting), p.model.waitingBlocks(), n[0], n[1], n[2], n[3], n[4]}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s: model (-) and index (+) differ:\n%s", p.gen.conf.ID(), diff)
		return false
	}
	return true
}

// finish closes every source and checks that nothing is left.
func (w *world) finish() {
	w.t.Helper()
	for _, p := range w.list {
		p.ledger.Close()
		p.twin.Close()
		if s := p.ledger.Stats(); s.Handles != 0 || s.OrphanBlocks != 0 || s.Resident != [events.TierCount]int{} {
			w.t.Errorf("%s: closed, still %d handles, %d waiting, %v blocks", p.gen.conf.ID(), s.Handles, s.OrphanBlocks, s.Resident)
		}
	}
	if s := w.x.Stats(); s.Sources != 0 || s.Blocks != 0 || s.Scopes != 0 || s.HolderBlocks != 0 {
		w.t.Errorf("closed index is not empty: %+v", s)
	}
}

// seeds calls run with one seed after the other: the given one, or new ones for about the time given.
func seeds(t *testing.T, long time.Duration, run func(seed uint64, steps int)) {
	if testing.Short() {
		long /= 10
	}
	steps := 1000
	if *stepsFlag > 0 {
		steps = *stepsFlag
	}
	for start := time.Now(); ; {
		seed := *seedFlag
		if seed == 0 {
			seed = rand.Uint64()
		}
		run(seed, steps)
		if t.Failed() {
			t.Fatalf("repeat with -run=%s -model.seed=%d -model.steps=%d", t.Name(), seed, steps)
		}
		if *seedFlag != 0 || *stepsFlag != 0 || time.Since(start) > long {
			return
		}
	}
}

// TestModel_Rules1To11 lets random events happen to sources of every kind and compares the index with the model after
// each (rules 1 to 9, 11, 17).
func TestModel_Rules1To11(t *testing.T) {
	credited := 0
	seeds(t, 6*time.Second, func(seed uint64, steps int) {
		w := newWorld(t, seed, 400)
		for i := range steps {
			p := w.list[w.rng.IntN(len(w.list))]
			w.run(p, p.gen.step())
			ok := w.counts(p)
			for range 2 {
				q := query(w.rng, w.texts)
				ok = w.check(q) && ok
				credited += p.model.Answer(q, 0).Reusable
			}
			if !ok {
				t.Fatalf("step %d of %s; repeat with -run=%s -model.seed=%d -model.steps=%d",
					i, p.gen.conf.ID(), t.Name(), seed, steps)
			}
		}
		w.finish()
	})
	if credited == 0 {
		t.Error("no source was ever credited with a token: the test proves nothing")
	}
}
