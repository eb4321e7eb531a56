package ingest

import (
	"errors"
	"strings"
	"testing"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/discover"
	"github.com/kvscout/kvscout/indexer"
)

// found is a worker as discovery tells it; its batches are pushed.
func found(id, model string, ranks int) discover.Worker {
	return discover.Worker{ID: id, Model: model, Sources: worker(id, model, ranks).Sources}
}

func update(list ...discover.Worker) discover.Update {
	return discover.Update{Workers: list, Discoverers: []discover.Status{{Name: "test"}}}
}

// Workers come, change and go as discovery says; what it says again changes nothing, and what it changes of one rank
// leaves the others' blocks.
func TestDiscovered_ComeChangeGo(t *testing.T) {
	r := newRig(t, Options{})
	r.fleet.Discovered(update(found("a", "m", 2), found("b", "m", 1)))
	r.push("a", 0, 0, stores(t, 1, 2))
	r.push("a", 1, 0, stores(t, 1, 2))
	r.push("b", 0, 0, stores(t, 1, 2))
	r.fleet.Discovered(update(found("a", "m", 2), found("b", "m", 1)))
	if got := r.held("m", 1, 2); got["a/0"] != 8 || got["a/1"] != 8 || got["b/0"] != 8 {
		t.Errorf("said again: %v", got)
	}
	labelled := found("a", "m", 2)
	labelled.Labels, labelled.Role = map[string]string{"zone": "x"}, discover.RolePrefill
	labelled.Sources[1].Version = "2" // another engine runs there now
	r.fleet.Discovered(update(labelled))
	if got := r.held("m", 1, 2); got["a/0"] != 8 || got["a/1"] != 0 || len(got) != 2 {
		t.Errorf("a's rank 1 is described otherwise and b is gone: %v", got)
	}
	if w, ok := r.fleet.Worker("a"); !ok || w.Role != RolePrefill || w.Labels["zone"] != "x" {
		t.Errorf("a is %+v", w)
	}
	r.fleet.Discovered(update())
	if s := r.index.Stats(); s.Sources != 0 || s.Blocks != 0 {
		t.Errorf("left behind: %+v", s)
	}
}

// Invariant 5: calls and discovery name one worker.
func TestDiscovered_CallsGoFirst(t *testing.T) {
	r := newRig(t, Options{})
	r.register(worker("called", "m", 1))
	r.push("called", 0, 0, stores(t, 1, 2))
	r.fleet.Discovered(update(found("called", "other", 1), found("w", "m", 1)))
	r.fleet.Discovered(update(found("w", "m", 1)))
	if got := r.held("m", 1, 2); got["called/0"] != 8 {
		t.Errorf("discovery changed a worker that a call had registered: %v", got)
	}
	r.fleet.Deregister("w", nil)
	r.fleet.Discovered(update(found("w", "m", 1)))
	if _, ok := r.fleet.Worker("w"); ok {
		t.Error("a worker that a call took out came back under the same description")
	}
	r.fleet.Discovered(update(found("w", "m", 2)))
	if w, ok := r.fleet.Worker("w"); !ok || len(w.Sources) != 2 {
		t.Errorf("described otherwise, it is %+v, %v", w, ok)
	}
}

// What cannot be registered is shown with the reason until it is described otherwise, and holds up nobody else.
func TestDiscovered_Refused(t *testing.T) {
	r := newRig(t, Options{MaxWorkers: 2})
	bad := found("bad", "m", 1)
	bad.Role = "chef"
	u := update(found("a", "m", 1), bad, found("c", "m", 1), found("d", "m", 1))
	u.Pending = []discover.Pending{{ID: "p", Why: "not asked yet"}}
	pending := func() map[string]string {
		out := make(map[string]string)
		for _, p := range r.fleet.Discovery().Pending {
			out[p.ID] = p.Why
		}
		return out
	}
	for range 2 {
		r.fleet.Discovered(u)
		got := pending()
		if len(got) != 3 || !strings.Contains(got["bad"], "chef") || !strings.Contains(got["d"], ErrTooMany.Error()) || got["p"] == "" {
			t.Errorf("pending %v", got)
		}
	}
	if n := len(r.fleet.Workers()); n != 2 {
		t.Errorf("%d workers", n)
	}
	r.fleet.Discovered(update(found("a", "m", 1)))
	if got := pending(); len(got) != 0 {
		t.Errorf("pending %v", got)
	}
	r.fleet.Close()
	r.fleet.Discovered(update(found("z", "m", 1)))
	if _, ok := r.fleet.Worker("z"); ok {
		t.Error("registered after Close")
	}
}

// Rule 12: while a worker's serving port fails, its sources are stale and the answer says so; credit returns by itself.
func TestRule12_IllWorker(t *testing.T) {
	r := newRig(t, Options{})
	r.fleet.Discovered(update(found("w", "m", 1)))
	r.push("w", 0, 0, stores(t, 1, 2))
	state := func() (indexer.Freshness, indexer.Bound) {
		l := r.index.Ledgers()[0]
		return l.Freshness(), l.Stats().Bound
	}
	r.fleet.Health("w", errors.New("status 503"))
	r.fleet.Health("unknown", errors.New("nobody"))
	f, b := state()
	if f.State != events.StateStale || !strings.Contains(f.Why, "status 503") || b.Doubt&indexer.DoubtStale == 0 {
		t.Errorf("ill: %+v, %+v", f, b)
	}
	more := found("w", "m", 2)
	r.fleet.Discovered(update(more))
	for _, l := range r.index.Ledgers() {
		if l.Freshness().State != events.StateStale {
			t.Errorf("%s of the ill worker is %v", l.Source().ID(), l.Freshness().State)
		}
	}
	r.fleet.Health("w", nil)
	if f, b := state(); f.State != events.StateLive || f.Why != "" || b.Doubt&indexer.DoubtStale != 0 {
		t.Errorf("well: %+v, %+v", f, b)
	}
	if got := r.held("m", 1, 2); got["w/0"] != 8 {
		t.Errorf("what it held: %v", got)
	}
}

// Case 132: an idle engine's cache was emptied and no event comes. A call empties its source at once, twice is as once; what is
// stored afterwards counts.
func TestCase132_Reset(t *testing.T) {
	r := newRig(t, Options{})
	r.register(worker("w", "m", 2))
	r.push("w", 0, 0, stores(t, 1, 2))
	r.push("w", 1, 0, stores(t, 1, 2))
	one := 1
	for range 2 {
		if !r.fleet.Reset("w", &one) {
			t.Error("rank 1 is known, the second time too")
		}
	}
	if got := r.held("m", 1, 2); got["w/0"] != 8 || got["w/1"] != 0 {
		t.Errorf("after the reset of rank 1: %v", got)
	}
	for _, l := range r.index.Ledgers() {
		if l.HistoryComplete() != (l.Source().Rank == 0) {
			t.Errorf("%s: history complete %v", l.Source().ID(), l.HistoryComplete())
		}
	}
	r.push("w", 1, 1, stores(t, 1, 2))
	if got := r.held("m", 1, 2); got["w/1"] != 8 {
		t.Errorf("what is stored after the reset counts: %v", got)
	}
	if !r.fleet.Reset("w", nil) {
		t.Error("the worker is known")
	}
	if got := r.held("m", 1, 2); got["w/0"] != 0 || got["w/1"] != 0 {
		t.Errorf("after the reset of all: %v", got)
	}
	two := 2
	if r.fleet.Reset("x", nil) || r.fleet.Reset("w", &two) {
		t.Error("an unknown worker or rank was known")
	}
}
