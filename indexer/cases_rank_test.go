package indexer

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/kvscout/kvscout/events"
)

func TestRule02_Case7_RanksAreSources(t *testing.T) {
	r := newRig(t, "w1/0", "w1/1")
	r.apply("w1/0", chainOf(101, 1))
	r.apply("w1/1", chainOf(101, 1))
	r.held("w1/0", span(1, 4), 4)
	r.held("w1/1", span(1, 4), 4)
	r.apply("w1/1", remove(101))
	r.held("w1/0", span(1, 4), 4)
	r.held("w1/1", span(1, 4), 0)
}

func TestRule12_Case27_ClosingOneRank(t *testing.T) {
	r := newRig(t, "w1/0", "w1/1")
	r.apply("w1/0", chainOf(101, 2))
	r.apply("w1/1", store(hashes(101, 102, 103), nil, sequence(1, 12), 4))
	r.w["w1/1"].Close()
	if _, ok := r.find("w1/1", span(1, 8)); ok {
		t.Error("closed rank is still listed")
	}
	r.held("w1/0", span(1, 12), 8)
	if s := r.x.Stats(); s.Blocks != 2 || s.Sources != 1 {
		t.Errorf("%+v, want the two blocks of rank 0", s)
	}
}

func TestRule02_Case55_RankOnTheWireWins(t *testing.T) {
	r := newRig(t, "w1/2")
	r.w["w1/2"].State(events.StateLive, nil)
	r.batch("w1/2", []any{1.5, []any{chainOf(101, 1)}})
	r.batch("w1/2", []any{1.5, []any{store(hashes(102), 101, sequence(5, 8), 4)}, nil})
	r.batch("w1/2", []any{1.5, []any{store(hashes(201), nil, sequence(11, 14), 4)}, 5})
	r.held("w1/2", span(1, 8), 8)
	r.held("w1/2", span(11, 14), 0)
	r.held("w1/5", span(11, 14), 4)
	r.held("w1/5", span(1, 8), 0)
	if f := r.match("w1/5", span(1, 8)).Freshness; f.State != events.StateLive || !f.HasSequence {
		t.Errorf("a rank known by its batches is as fresh as its stream, not %+v", f)
	}
	r.w["w1/2"].Close()
	if _, ok := r.find("w1/5", span(11, 14)); ok {
		t.Error("rank 5 outlives its stream")
	}
}

// A rank that has a stream of its own is not written by another.
func TestRule10_Case55_RankOfAnotherStream(t *testing.T) {
	r := newRig(t, "w1/0", "w1/1")
	r.batch("w1/0", []any{1.5, []any{chainOf(101, 1)}, 1})
	r.held("w1/0", span(1, 4), 0)
	r.held("w1/1", span(1, 4), 0)
	r.rejected("w1/0", events.ReasonRankUnknown, 1)
}

func TestRule02_Case56_ClearIsOneRanks(t *testing.T) {
	r := newRig(t, "w1/0", "w1/1")
	r.apply("w1/0", chainOf(101, 1))
	r.apply("w1/1", chainOf(101, 1))
	r.batch("w1/1", []any{1.5, []any{cleared()}, 1})
	r.held("w1/0", span(1, 4), 4)
	r.held("w1/1", span(1, 4), 0)
}

// Whatever is under way when a source leaves never brings it back.
func TestRule12_Case30_NoGhosts(t *testing.T) {
	for range 100 {
		r := newRig(t)
		w := r.open("w1", events.Source{Worker: "w1", Engine: events.EngineVLLM, Model: "m"})
		var payloads [][]byte
		for i := range 20 {
			batch := []any{1.5, []any{store(hashes(101+i), nil, sequence(i, i+3), 4)}, i % 3}
			payload, err := msgpack.Marshal(batch)
			if err != nil {
				t.Fatal(err)
			}
			payloads = append(payloads, payload)
		}
		var drain sync.WaitGroup
		started := make(chan struct{})
		drain.Go(func() { // ends when the payloads are applied; waited for below
			for i, p := range payloads {
				if i == 3 {
					close(started)
				}
				w.Apply(uint64(i), p, time.Unix(1, 0))
			}
		})
		<-started
		w.Close()
		drain.Wait()
		for i, p := range payloads {
			w.Apply(uint64(i), p, time.Unix(2, 0))
		}
		list, err := r.x.Lookup(context.Background(), span(0, 3))
		if err != nil || len(list) != 0 {
			t.Fatalf("%d ghosts, error %v", len(list), err)
		}
		if s := r.x.Stats(); s.Sources != 0 || s.Blocks != 0 || s.HolderBlocks != 0 {
			t.Fatalf("left over: %+v", s)
		}
	}
}

// Sources are written side by side, each in its own order.
func TestRule08_Case58_OrderPerSource(t *testing.T) {
	x := New(Options{})
	var writers sync.WaitGroup
	for _, id := range []string{"w1", "w2", "w3", "w4"} {
		l, err := x.Open(events.Source{Worker: id, Engine: events.EngineVLLM, Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		writers.Go(func() { // ends after its events; waited for below
			for i := range uint64(2500) {
				gone := events.Event{Kind: events.Removed, Hashes: []events.Hash{events.HashInt(i%7 + 1)}}
				l.Apply(&events.Batch{Events: []events.Event{dense(i%7+1, 0, sequence(1, 4), 4)}})
				l.Apply(&events.Batch{Events: []events.Event{gone}})
			}
			if n := l.Stats().Rejected[events.ReasonUnknownRemoval]; n != 0 {
				t.Errorf("%s: %d removals came before their stores", id, n)
			}
		})
	}
	writers.Wait()
	if s := x.Stats(); s.Blocks != 0 || s.HolderBlocks != 0 || s.Scopes != 0 {
		t.Errorf("left over: %+v", s)
	}
}

// Scopes that come and go beside it never hide one that stays.
func TestRule16_ScopesComeAndGo(t *testing.T) {
	x := New(Options{})
	open := func(id string) *Ledger {
		l, err := x.Open(events.Source{Worker: id, Engine: events.EngineVLLM, Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	var writers sync.WaitGroup
	for id, size := range map[string]int{"w1": 1, "w2": 2, "w3": 8} {
		l := open(id)
		writers.Go(func() { // ends after its events; waited for below
			for range 3000 {
				l.Apply(&events.Batch{Events: []events.Event{dense(1, 0, sequence(1, 8), size)}})
				l.Apply(&events.Batch{Events: []events.Event{{Kind: events.Cleared}}})
			}
		})
	}
	stays := open("w4")
	stays.Apply(&events.Batch{Events: []events.Event{dense(1, 0, sequence(1, 8), 4)}})
	done := make(chan struct{})
	go func() { // ends with the writers; the loop below waits for it
		writers.Wait()
		close(done)
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		list, err := x.Lookup(context.Background(), span(1, 8))
		if err != nil || len(list) != 4 {
			t.Fatalf("%d answers, error %v", len(list), err)
		}
		for _, m := range list {
			if m.Source.Worker == "w4" && m.Held != 8 {
				t.Fatalf("the source that stays holds %d tokens, want 8", m.Held)
			}
		}
	}
}
