package model

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

// world is an index beside the models of its sources.
type world struct {
	script  *script
	known   *Prefixes
	x       *indexer.Index
	twin    *indexer.Index    // of the plain structure
	readers []*indexer.Reader // of both
	list    []*pair
	// mishear, if set, is what index and twin hear instead of a batch: a fault to be found.
	mishear func(events.Batch) events.Batch

	credited int        // tokens, over all answers
	mu       sync.Mutex // guards faults
	faults   []string
}

// pair is one source of the index beside its model.
type pair struct {
	conf   events.Source
	model  *Source
	ledger *indexer.Ledger
	twin   *indexer.Ledger // in the twin
}

func newWorld(s *script) *world {
	w := &world{script: s, known: NewPrefixes()}
	w.x = indexer.New(indexer.Options{MaxOrphanBlocks: s.MaxOrphans})
	w.twin = indexer.New(indexer.Options{MaxOrphanBlocks: s.MaxOrphans, Plain: true})
	w.readers = []*indexer.Reader{w.x.NewReader(), w.twin.NewReader()}
	for _, conf := range s.Sources {
		p := &pair{conf: conf, model: NewSource(conf, s.MaxOrphans, w.known)}
		w.open(p)
		w.list = append(w.list, p)
	}
	return w
}

// fail notes a difference. Only the first thousands of characters count.
func (w *world) fail(format string, args ...any) bool {
	text := fmt.Sprintf(format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, text[:min(len(text), 6000)])
	return false
}

func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.faults) > 0
}

func (w *world) open(p *pair) {
	for x, l := range map[*indexer.Index]**indexer.Ledger{w.x: &p.ledger, w.twin: &p.twin} {
		opened, err := x.Open(p.conf)
		if err != nil {
			w.fail("%v", err)
			return
		}
		opened.Joined(true)
		*l = opened
	}
}

// run does one step to model and index.
func (w *world) run(p *pair, s step) {
	switch s.Kind {
	case stepApply:
		p.model.Apply(s.Batch)
	case stepReset, stepGap:
		p.model.Clear()
	case stepReopen:
		p.model = NewSource(p.conf, w.script.MaxOrphans, w.known)
	case stepRestart:
		p.model.ForgetWaiting()
	}
	w.tell(p, s)
}

// tell does one step to the index and its twin.
func (w *world) tell(p *pair, s step) {
	if w.mishear != nil {
		s.Batch = w.mishear(s.Batch)
	}
	switch s.Kind {
	case stepApply:
		p.ledger.Apply(&s.Batch)
		p.twin.Apply(&s.Batch)
	case stepReset:
		p.ledger.Reset()
		p.twin.Reset()
	case stepGap:
		p.ledger.Gap(1)
		p.twin.Gap(1)
	case stepReopen:
		for _, old := range []*indexer.Ledger{p.ledger, p.twin} {
			old.Close()
			old.Apply(&s.Batch) // late events of a closed source go nowhere
		}
		w.open(p)
	case stepRestart:
		w.restart(p)
	}
}

// restart closes a source and opens it again from what it saved: index and twin each from the other's.
func (w *world) restart(p *pair) {
	books := []*indexer.Book{p.ledger.Export(), p.twin.Export()}
	p.ledger.Close()
	p.twin.Close()
	w.open(p)
	for i, l := range []*indexer.Ledger{p.twin, p.ledger} {
		if err := l.Restore(books[i], time.Hour); err != nil {
			w.fail("%v", err)
		}
		if l.Stats().Bound.Doubt&indexer.DoubtResumed == 0 {
			w.fail("restored, and no doubt about it")
		}
		l.Proven()
	}
}

// check compares every source's answer to one prompt, and says whether all agree.
func (w *world) check(a ask) bool {
	q := a.query()
	list, err := w.x.Lookup(context.Background(), q)
	if err != nil {
		return w.fail("%v", err)
	}
	ok := w.twins(q, list)
	got := make(map[string]Answer)
	for _, m := range list {
		got[m.Source.ID()] = Answer{m.Held, m.Reusable, m.With, m.Covered}
	}
	want := make(map[string]Answer)
	prompt := NewPrompt(w.known, a.Query, a.KeySize)
	for _, p := range w.list {
		if p.conf.Model != q.Model {
			continue
		}
		if a.KeySize > 0 && p.conf.PairKeys { // keys of tokens are none of pairs
			want[p.conf.ID()] = Answer{}
			continue
		}
		answer := p.model.Answer(prompt)
		want[p.conf.ID()] = answer
		w.credited += answer.Reusable
	}
	if !maps.Equal(want, got) {
		return w.fail("prompt %s: model (-) and index (+) differ:\n%s", a.brief(), cmp.Diff(want, got))
	}
	return ok
}

func (a ask) brief() string {
	text := fmt.Sprintf("%+v", a)
	return text[:min(len(text), 1000)]
}

// twins compares the index with its twin: what they answer about one prompt, bounds and all, and how many blocks and
// scopes they have.
func (w *world) twins(q indexer.Query, got []indexer.Match) bool {
	ctx := context.Background()
	want, err := w.twin.Lookup(ctx, q)
	if err != nil {
		return w.fail("%v", err)
	}
	byID := func(a, b indexer.Match) int { return strings.Compare(a.Source.ID(), b.Source.ID()) }
	slices.SortFunc(got, byID)
	slices.SortFunc(want, byID)
	if !reflect.DeepEqual(want, got) {
		return w.fail("twin (-) and index (+) differ:\n%s", cmp.Diff(want, got, cmpopts.EquateEmpty()))
	}
	ignore := cmpopts.IgnoreFields(indexer.Stats{}, "Bytes", "Retired")
	if diff := cmp.Diff(w.twin.Stats(), w.x.Stats(), ignore); diff != "" {
		return w.fail("twin (-) and index (+) count differently:\n%s", diff)
	}
	if !w.holders(q, got) {
		return false
	}
	held, err := w.x.Holdings(ctx, q)
	twin, err2 := w.twin.Holdings(ctx, q)
	byMatch := func(a, b indexer.Holding) int { return byID(a.Match, b.Match) }
	slices.SortFunc(held, byMatch)
	slices.SortFunc(twin, byMatch)
	if !reflect.DeepEqual(twin, held) || err != nil || err2 != nil {
		return w.fail("twin (-) and index (+) hold differently, %v, %v:\n%s", err, err2, cmp.Diff(twin, held))
	}
	return true
}

// holder is the id of a holder's source, and what it holds.
func holder(x *indexer.Index, h indexer.Holder) (id string, held int, ok bool) {
	l := x.Source(h.Source)
	if l == nil {
		return "", 0, false
	}
	return l.Source().ID(), int(h.Held), true
}

// holders compares what a reader that was used before says of both structures with what the full answer says.
func (w *world) holders(q indexer.Query, matches []indexer.Match) bool {
	want := make(map[string]int)
	for _, m := range matches {
		if m.Held > 0 {
			want[m.Source.ID()] = m.Held
		}
	}
	for n, r := range w.readers {
		list, err := r.Holders(context.Background(), &q)
		got := make(map[string]int)
		for i := range list {
			id, held, _ := holder([]*indexer.Index{w.x, w.twin}[n], list[i])
			if _, twice := got[id]; twice {
				w.fail("%s is twice among the holders", id)
			}
			got[id] = held
		}
		if !maps.Equal(want, got) || err != nil {
			return w.fail("reader %d: matches (-) and holders (+) differ, %v:\n%s", n, err, cmp.Diff(want, got))
		}
		again, err := r.Lookup(context.Background(), &q)
		if err != nil || len(again) != len(matches) {
			return w.fail("reader %d: %d matches, the index has %d, %v", n, len(again), len(matches), err)
		}
		for _, m := range again {
			if m.Held != want[m.Source.ID()] {
				return w.fail("reader %d: %s holds %d, the index says %d", n, m.Source.ID(), m.Held, want[m.Source.ID()])
			}
		}
	}
	return true
}

// counts compares what a source's statistics count.
func (w *world) counts(p *pair) bool {
	type numbers struct{ Handles, Waiting, WaitingBlocks, Device, Host, Disk, Shared, Unknown int }
	s := p.ledger.Stats()
	r := s.Resident
	got := numbers{s.Handles, s.OrphanStores, s.OrphanBlocks, r[0], r[1], r[2], r[3], r[4]}
	var n [events.TierCount]int
	for c := range p.model.copies {
		n[c.tier]++
	}
	want := numbers{len(p.model.prefixes), len(p.model.waiting), p.model.waitingBlocks(), n[0], n[1], n[2], n[3], n[4]}
	if got != want {
		return w.fail("%s: model (-) and index (+) differ:\n%s", p.conf.ID(), cmp.Diff(want, got))
	}
	return true
}

// finish closes every source and checks that nothing is left.
func (w *world) finish() {
	for _, p := range w.list {
		p.ledger.Close()
		p.twin.Close()
		if s := p.ledger.Stats(); s.Handles != 0 || s.OrphanBlocks != 0 || s.Resident != [events.TierCount]int{} {
			w.fail("%s: closed, still %d handles, %d waiting, %v blocks", p.conf.ID(), s.Handles, s.OrphanBlocks, s.Resident)
		}
	}
	if s := w.x.Stats(); s.Sources != 0 || s.Blocks != 0 || s.Scopes != 0 || s.HolderBlocks != 0 {
		w.fail("closed index is not empty: %+v", s)
	}
}
