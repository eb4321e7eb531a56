package indexer

import (
	"context"
	"testing"

	"github.com/kvscout/kvscout/events"
)

// When most prompts went, and what stays lies thin over many slabs, it is moved together: memory follows what is held, and
// nothing that is held is forgotten. So for shared hashes, for a source with its own, and for hashes that it claimed.
func TestRule17_HashesMoveTogether(t *testing.T) {
	const prompts, blocks, every = 3000, 64, 25
	for _, kind := range []string{"shared", "own", "claimed"} {
		x := New(Options{})
		x.mu.Lock()
		d := &x.stripeLocked("m").chains.dict
		x.mu.Unlock()
		d.fewSlabs = 2
		d.maxMoved = map[string]int{"own": 1 << 30, "claimed": 1}[kind]
		var list []*Ledger
		for _, id := range []string{"goes", "stays"} {
			l, err := x.Open(events.Source{Worker: id, Engine: events.EngineVLLM, Model: "m"})
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, l)
		}
		goes, stays := list[0], list[1]
		first := func(id int) uint64 { return uint64(id+1) << 20 }
		for id := range prompts {
			for _, b := range benchPrompt(id, blocks, first(id)) {
				if kind == "shared" {
					goes.Apply(&b)
				}
				if kind != "shared" || id%every == 0 {
					stays.Apply(&b)
				}
			}
		}
		if kind != "shared" { // another hash for a block that has one makes a space of its own
			goes.Apply(&benchPrompt(prompts, 2, 7)[0])
			stays.Apply(&benchPrompt(prompts, 2, 9)[0])
			if stays.space == 0 || stays.claimed != (kind == "claimed") {
				t.Fatalf("%s: space %d, claimed %v: the test proves nothing", kind, stays.space, stays.claimed)
			}
		}
		all := x.Stats().Bytes
		slabs := d.rooms.size
		if kind != "shared" {
			for id := range prompts {
				if id%every != 0 {
					e := benchPrompt(id, blocks, first(id))[0].Events[0]
					stays.Apply(&events.Batch{Events: []events.Event{{Kind: events.Removed, Hashes: e.Hashes}}})
				}
			}
		}
		goes.Close()
		for range 100 {
			stays.Apply(&events.Batch{})
		}
		if err := x.sound(); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		left := x.Stats().Bytes
		t.Logf("%s: %d slabs, then %d; %d bytes, then %d", kind, slabs, d.rooms.size, all, left)
		if d.rooms.size > 3 && d.rooms.used*thinSlabs < d.rooms.size*slabRecords || left > all/5 {
			t.Errorf("%s: %d slabs for %d groups, %d bytes of %d", kind, d.rooms.size, d.rooms.used, left, all)
		}
		ctx := context.Background()
		for id := 0; id < prompts; id += every {
			tokens := benchTokens(id, blocks*benchBlock)
			m, err := x.Lookup(ctx, Query{Model: "m", Tokens: tokens})
			if err != nil || m[0].Held != len(tokens) {
				t.Fatalf("%s: prompt %d: %+v, %v", kind, id, m, err)
			}
			e := benchPrompt(id, blocks, first(id))[0].Events[0]
			stays.Apply(&events.Batch{Events: []events.Event{{Kind: events.Removed, Hashes: e.Hashes}}})
		}
		if s := stays.Stats(); s.Rejected[events.ReasonUnknownRemoval] != 0 {
			t.Errorf("%s: %d removals were of nothing", kind, s.Rejected[events.ReasonUnknownRemoval])
		}
		stays.Close()
		if err := x.empty(); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
