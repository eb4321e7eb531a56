package indexer

import (
	"context"

	"slices"
	"sync"
	"testing"

	"github.com/kvscout/kvscout/events"
)

// meanwhile is a context that lets something happen at one of the looks that a lookup takes at its deadline.
type meanwhile struct {
	context.Context
	at, looks int
	do        func()
}

func (c *meanwhile) Err() error {
	if c.looks++; c.looks == c.at {
		c.do()
	}
	return nil
}

// asOfBlocks is the length of a prompt, in blocks of 1 token, for which a lookup takes looks at its deadline: the first before it
// reads who holds its second half, the last, if there is one source, behind the walk and before that source's answer is made.
const asOfBlocks = 4 * checkEvery

// during is the answer of the only source to a prompt, to which something happens at the first or the last look of the lookup.
func (r *rig) during(t *testing.T, ask func(context.Context, Query) ([]Match, error), first bool, do func()) Match {
	t.Helper()
	counting := &meanwhile{Context: context.Background()}
	if _, err := ask(counting, span(1, asOfBlocks)); err != nil || counting.looks < 2 {
		t.Fatalf("%v, %d looks", err, counting.looks)
	}
	ctx := &meanwhile{Context: context.Background(), at: counting.looks, do: do}
	if first {
		ctx.at = 1
	}
	list, err := ask(ctx, span(1, asOfBlocks))
	if err != nil || len(list) != 1 || ctx.looks < ctx.at {
		t.Fatalf("%d answers, %v, %d looks", len(list), err, ctx.looks)
	}
	return list[0]
}

// spread is an event that stores blocks from..to of the prompt, in chain.
func spread(from, to int) []any {
	var parent any
	if from > 1 {
		parent = from - 1
	}
	return store(hashes(seqInts(from, to)...), parent, sequence(from, to), 1)
}

// Invariant 13: what changes while a lookup reads never makes it claim more than its blocks show. Each case is something that
// happens between two readings of the lookup; told says what the answer must not claim.
func TestRule13_NothingNewerThanTheBlocks(t *testing.T) {
	const half = asOfBlocks / 2
	for name, c := range map[string]struct {
		before func(r *rig)
		first  bool
		do     func(r *rig)
		wrong  func(m Match) bool
	}{
		"a batch stores more": {
			before: func(r *rig) { r.apply("w/0", spread(1, half)) },
			do:     func(r *rig) { r.apply("w/0", spread(half+1, asOfBlocks)) },
			wrong:  func(m Match) bool { return m.Freshness.LastSequence == 1 && m.Held < asOfBlocks },
		},
		"a batch removes some": {
			before: func(r *rig) { r.apply("w/0", spread(1, asOfBlocks)) },
			do:     func(r *rig) { r.apply("w/0", []any{"BlockRemoved", hashes(seqInts(half+1, asOfBlocks)...)}) },
			wrong:  func(m Match) bool { return m.Freshness.LastSequence == 1 && m.Held > half },
		},
		"a replay ends": {
			before: func(r *rig) {
				r.apply("w/0", spread(1, half))
				r.w["w/0"].State(events.StateReplaying, nil)
			},
			do: func(r *rig) {
				r.apply("w/0", spread(half+1, asOfBlocks))
				r.w["w/0"].State(events.StateLive, nil)
			},
			wrong: func(m Match) bool {
				live := m.Bound.Kind == Exact || m.Freshness.State == events.StateLive
				return live && m.Held < asOfBlocks
			},
		},
		"the parent of waiting stores comes": {
			before: func(r *rig) { r.apply("w/0", spread(1, half), spread(half+2, asOfBlocks)) },
			do:     func(r *rig) { r.apply("w/0", spread(half+1, half+1)) },
			wrong:  func(m Match) bool { return m.Bound.Kind == Exact && m.Held < asOfBlocks },
		},
		"the history is completed": {
			before: func(r *rig) {
				r.w["w/0"].Joined(1, false)
				r.apply("w/0", spread(1, half))
			},
			do:    func(r *rig) { r.w["w/0"].Joined(0, true) },
			wrong: func(m Match) bool { return m.Bound.Kind == Exact },
		},
		"batches are lost": {
			before: func(r *rig) { r.apply("w/0", spread(1, asOfBlocks)) },
			first:  true,
			do:     func(r *rig) { r.w["w/0"].Gap(1, 1) },
			wrong:  func(m Match) bool { return m.Bound.Kind == Exact },
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "w/0")
			r.w["w/0"].State(events.StateLive, nil)
			c.before(r)
			if m := r.during(t, r.x.Lookup, c.first, func() { c.do(r) }); c.wrong(m) {
				t.Errorf("holds %d of %d, %v, %+v", m.Held, asOfBlocks, m.Bound.Reasons(), m.Freshness)
			}
		})
	}
}

// The same of Holdings, whose sources all answer after the walk.
func TestRule13_HoldingsOfTheirFreshness(t *testing.T) {
	r := newRig(t, "w/0")
	r.apply("w/0", spread(1, asOfBlocks/2))
	m := r.during(t, func(ctx context.Context, q Query) (out []Match, err error) {
		list, err := r.x.Holdings(ctx, q)
		for _, h := range list {
			out = append(out, h.Match)
		}
		return out, err
	}, false, func() { r.apply("w/0", spread(asOfBlocks/2+1, asOfBlocks)) })
	if m.Freshness.LastSequence == 1 && m.Held < asOfBlocks {
		t.Errorf("holds %d of %d as of batch 1", m.Held, asOfBlocks)
	}
}

// With a writer beside: a source's prompt grows by a block with each batch, so every answer shows at least as many blocks as
// batches it claims to know.
func TestRule13_BesideAWriter(t *testing.T) {
	const batches = 3000
	r := newRig(t, "w/0", "w/1")
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		wg.Go(func() { // ends with done
			q, reader := span(1, batches), r.x.NewReader()
			for {
				list, err := reader.Lookup(context.Background(), &q)
				if err != nil {
					t.Error(err)
					return
				}
				if i := slices.IndexFunc(list, func(m Match) bool {
					return m.Freshness.HasSequence && m.Held <= int(m.Freshness.LastSequence)
				}); i >= 0 {
					t.Errorf("%d blocks as of batch %d", list[i].Held, list[i].Freshness.LastSequence)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range batches {
		r.apply("w/0", spread(i+1, i+1))
		r.apply("w/1", spread(i+1, i+1))
	}
	close(done)
	wg.Wait()
}
