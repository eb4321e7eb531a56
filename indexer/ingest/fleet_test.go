package ingest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
	"go.uber.org/goleak"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/simulate"
	"github.com/kvscout/kvscout/indexer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type rig struct {
	*testing.T
	index *indexer.Index
	fleet *Fleet
}

func newRig(t *testing.T, opts Options) *rig {
	t.Helper()
	x := indexer.New(indexer.Options{})
	r := &rig{T: t, index: x, fleet: New(x, opts)}
	t.Cleanup(r.fleet.Close)
	return r
}

func (r *rig) register(w Worker) (replaced bool) {
	r.Helper()
	replaced, err := r.fleet.Register(w)
	if err != nil {
		r.Fatal(err)
	}
	return replaced
}

// worker is a worker without endpoints: its batches are pushed.
func worker(id, model string, ranks int) Worker {
	w := Worker{ID: id, Model: model}
	for rank := range ranks {
		w.Sources = append(w.Sources, events.Source{Worker: id, Rank: rank, Engine: events.EngineVLLM})
	}
	return w
}

// stores is a payload that stores blocks of 4 tokens: first, first+1, ... under the hashes of the same numbers.
func stores(t *testing.T, first, blocks int) []byte {
	t.Helper()
	var hashes, tokens []int
	for i := range blocks {
		hashes = append(hashes, first+i)
		for range 4 {
			tokens = append(tokens, first+i)
		}
	}
	b, err := msgpack.Marshal([]any{1.5, []any{[]any{"BlockStored", hashes, nil, tokens, 4, nil, "GPU"}}, nil})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// held is what each source of the model holds of the prompt that stores tells.
func (r *rig) held(model string, first, blocks int) map[string]int {
	r.Helper()
	q := indexer.Query{Model: model}
	for i := range blocks {
		for range 4 {
			q.Tokens = append(q.Tokens, uint32(first+i))
		}
	}
	matches, err := r.index.Lookup(context.Background(), q)
	if err != nil {
		r.Fatal(err)
	}
	out := make(map[string]int)
	for _, m := range matches {
		out[m.Source.ID()] = m.Held
	}
	return out
}

func (r *rig) push(id string, rank int, seq uint64, payload []byte) Published {
	r.Helper()
	p, err := r.fleet.Publish(id, rank, []events.Message{{Seq: seq, Payload: payload}})
	if err != nil {
		r.Fatal(err)
	}
	return p
}

// Invariant 1 and case 147: the same description is the same as once; another one starts anew.
func TestRegister_Case147_TwiceAndReplaced(t *testing.T) {
	r := newRig(t, Options{})
	if r.register(worker("w", "m", 1)) {
		t.Error("a new worker replaces nothing")
	}
	r.push("w", 0, 0, stores(t, 1, 2))
	if r.register(worker("w", "m", 1)) || r.held("m", 1, 2)["w/0"] != 8 {
		t.Error("the same description again changed something")
	}
	if !r.register(worker("w", "m2", 1)) {
		t.Error("another description replaces the worker")
	}
	if got := r.held("m", 1, 2); len(got) != 0 {
		t.Errorf("the old description still answers: %v", got)
	}
	if got := r.held("m2", 1, 2); got["w/0"] != 0 {
		t.Errorf("what the old one held is credited to the new one: %v", got)
	}
}

// Invariant 2, cases 27 and 28: a rank that left is gone, the others stay; a sequence starts anew with the worker.
func TestDeregister_Case27_Case28(t *testing.T) {
	r := newRig(t, Options{})
	r.register(worker("w", "m", 2))
	r.push("w", 0, 0, stores(t, 1, 2))
	r.push("w", 1, 50, stores(t, 1, 2))
	one := 1
	if !r.fleet.Deregister("w", &one) || r.fleet.Deregister("w", &one) {
		t.Error("rank 1 is known once")
	}
	if got := r.held("m", 1, 2); len(got) != 1 || got["w/0"] != 8 {
		t.Errorf("after rank 1 left: %v", got)
	}
	if !r.fleet.Deregister("w", nil) || r.fleet.Deregister("w", nil) {
		t.Error("the worker is known once")
	}
	if s := r.index.Stats(); s.Sources != 0 || s.Blocks != 0 {
		t.Errorf("left behind: %+v", s)
	}
	r.register(worker("w", "m", 2))
	if p := r.push("w", 1, 0, stores(t, 1, 2)); p.Applied != 1 || p.Resets != 0 || len(p.Gaps) != 0 {
		t.Errorf("a new life's first batch: %+v", p)
	}
}

func TestPublish_Errors(t *testing.T) {
	r := newRig(t, Options{})
	r.register(worker("w", "m", 1))
	dialled := worker("z", "m", 1)
	dialled.Sources[0].Events = "tcp://127.0.0.1:1"
	r.register(dialled)
	for _, tt := range []struct {
		worker string
		rank   int
		want   error
	}{{"x", 0, ErrUnknownWorker}, {"w", 1, ErrUnknownRank}, {"z", 0, ErrHasEndpoint}} {
		if _, err := r.fleet.Publish(tt.worker, tt.rank, nil); !errors.Is(err, tt.want) {
			t.Errorf("%s/%d: %v, want %v", tt.worker, tt.rank, err, tt.want)
		}
	}
}

func TestRegister_Refused(t *testing.T) {
	r := newRig(t, Options{MaxWorkers: 1})
	twice := worker("w", "m", 2)
	twice.Sources[1].Rank = 0
	engine := worker("w", "m", 1)
	engine.Sources[0].Engine = "typo" // case 115
	for name, w := range map[string]Worker{"no id": worker("", "m", 1), "no ranks": {ID: "w", Model: "m"}, "rank twice": twice, "engine": engine} {
		if _, err := r.fleet.Register(w); !errors.Is(err, ErrWorker) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r.register(worker("a", "m", 1))
	if _, err := r.fleet.Register(worker("b", "m", 1)); !errors.Is(err, ErrTooMany) {
		t.Errorf("one worker too many: %v", err)
	}
	r.fleet.Close()
	if _, err := r.fleet.Register(worker("a", "m", 2)); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// Case 78: served names and aliases are the model, everything else is unknown.
func TestResolve_Case78(t *testing.T) {
	r := newRig(t, Options{})
	if _, _, err := r.fleet.Resolve(""); !errors.Is(err, ErrModelRequired) {
		t.Errorf("no model at all: %v", err)
	}
	a := worker("a", "base", 1)
	a.Aliases = []string{"served-1"}
	r.register(a)
	for _, name := range []string{"", "base", "served-1"} {
		if model, adapter, err := r.fleet.Resolve(name); model != "base" || adapter != "" || err != nil {
			t.Errorf("%q is %q, %q, %v", name, model, adapter, err)
		}
	}
	b := worker("b", "base", 1)
	b.Adapters = []string{"ad-1"}
	r.register(b)
	if model, adapter, err := r.fleet.Resolve("ad-1"); model != "base" || adapter != "ad-1" || err != nil {
		t.Errorf("an adapter of which nothing is held is %q, %q, %v", model, adapter, err)
	}
	if _, _, err := r.fleet.Resolve("other"); !errors.Is(err, ErrUnknownModel) {
		t.Errorf("another name: %v", err)
	}
	second := worker("c", "second", 1)
	second.Adapters = []string{"ad-1"}
	r.register(second)
	if _, _, err := r.fleet.Resolve("ad-1"); !errors.Is(err, ErrUnknownModel) {
		t.Errorf("an adapter of two models: %v", err)
	}
	if _, _, err := r.fleet.Resolve(""); !errors.Is(err, ErrModelRequired) {
		t.Errorf("two models: %v", err)
	}
}

// Case 93: ranks that never publish are told from ranks that hold nothing.
func TestCase93_SilentRanks(t *testing.T) {
	engine, err := simulate.New(simulate.Config{Worker: "w", Form: simulate.FormVLLM, Model: "m", BlockSize: 4, Blocks: 16,
		Events: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	w := Worker{ID: "w", Model: "m", Sources: []events.Source{engine.Source()}}
	w.Sources[0].Rank = 0
	for rank := 1; rank < 4; rank++ {
		// A port that was free a moment ago: nobody publishes there.
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		l.Close()
		w.Sources = append(w.Sources, events.Source{Worker: "w", Rank: rank, Engine: events.EngineVLLM, Events: "tcp://" + addr})
	}
	r := newRig(t, Options{})
	r.register(w)
	state := func(rank int) (s indexer.Freshness, complete bool) {
		for _, l := range r.index.Ledgers() {
			if l.Source().Rank == rank {
				return l.Freshness(), l.HistoryComplete()
			}
		}
		t.Fatalf("no rank %d", rank)
		return
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		f, complete := state(0)
		if f.State == events.StateLive && complete {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("rank 0 is %+v", f)
		}
		time.Sleep(5 * time.Millisecond) // a poll with a deadline: the stream tells its state and nothing more
	}
	for rank := 1; rank < 4; rank++ {
		if f, complete := state(rank); f.State == events.StateLive || complete || f.HasSequence {
			t.Errorf("rank %d never published and is %+v, complete %v", rank, f, complete)
		}
	}
}

// Case 112: a big worker that leaves holds up neither registrations nor lookups for long.
func TestCase112_BigWorkerLeaves(t *testing.T) {
	blocks := 200_000
	if testing.Short() {
		blocks = 20_000
	}
	r := newRig(t, Options{})
	r.register(worker("big", "m", 1))
	for i := range blocks / 1000 {
		r.push("big", 0, uint64(i), stores(t, 1+i*1000, 1000))
	}
	left := make(chan struct{})
	go func() { // ends when Deregister does; waited for on left
		defer close(left)
		r.fleet.Deregister("big", nil)
	}()
	var worst time.Duration
	for i := 0; ; i++ {
		select {
		case <-left:
			if got := r.held("m", 1, 1); len(got) != 0 {
				t.Errorf("still credited: %v", got)
			}
			if worst > 2*time.Second { // it takes no lock that the writer holds; the rest is the scheduler's
				t.Errorf("a lookup took %v", worst)
			}
			r.register(worker(fmt.Sprint("next", i), "m", 1))
			return
		default:
			began := time.Now()
			r.held("m", 1, 1)
			worst = max(worst, time.Since(began))
		}
	}
}
