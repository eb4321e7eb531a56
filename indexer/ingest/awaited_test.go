package ingest

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events/discover"
	"github.com/kvscout/kvscout/events/simulate"
	"github.com/kvscout/kvscout/indexer"
)

// later is a rig of another process that has restored the file with nothing configured, and its keeper.
func later(t *testing.T, path string, opts Options) (*rig, *Keeper) {
	t.Helper()
	r := newRig(t, opts)
	k, _ := r.keeper(path)
	if err := k.Restore(nil); err != nil {
		t.Fatal(err)
	}
	return r, k
}

// discoveredOnce is a file of a fleet whose workers discovery had found: "a" of two ranks, "b" and "c" of one.
func discoveredOnce(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	r, k := later(t, path, Options{})
	r.fleet.Discovered(update(found("a", "m", 2), found("b", "m", 1), found("c", "m", 1)))
	for _, id := range []string{"a", "b", "c"} {
		r.push(id, 0, 0, stores(t, 1, 2))
	}
	r.push("a", 1, 4, stores(t, 1, 1))
	if err := k.Save(); err != nil {
		t.Fatal(err)
	}
	return path
}

func (k *Keeper) restored(t *testing.T, want Restored) {
	t.Helper()
	got := k.Stats()
	if diff := cmp.Diff(want, got.Restored); diff != "" || got.Outcome != OutcomeRestored {
		t.Errorf("%s: %s", got.Outcome, diff)
	}
}

// What discovery had found is in no answer after a restart until it is found again; then it goes on as what is configured
// does: behind its cursor, flagged until the publisher is proven to be the one before.
func TestAwaited_GoesOnOnceFound(t *testing.T) {
	n, k := later(t, discoveredOnce(t), Options{})
	k.restored(t, Restored{Waiting: 4, Dropped: map[string]int{}})
	if len(n.fleet.Workers()) != 0 || len(n.held("m", 1, 2)) != 0 {
		t.Errorf("known before it was found: %v", n.fleet.Workers())
	}
	changed := found("b", "m", 1)
	changed.Sources[0].Version = "2"
	n.fleet.Discovered(update(found("a", "m", 1), changed)) // of "a" a rank is gone, of "c" nothing is known yet
	k.restored(t, Restored{Sources: 1, Waiting: 1, Dropped: map[string]int{DropChanged: 1, DropUnconfigured: 1}})
	if diff := cmp.Diff(map[string]int{"a/0": 8, "b/0": 0}, n.held("m", 1, 2)); diff != "" {
		t.Error(diff)
	}
	l, _ := n.index.Find("a", 0)
	resumed := func() bool { return l.Stats().Bound.Doubt&indexer.DoubtResumed != 0 }
	if !resumed() {
		t.Error("it is not flagged")
	}
	if p := n.push("a", 0, 0, stores(t, 1, 2)); p.Duplicates != 1 || resumed() {
		t.Errorf("the cursor's batch again proves the publisher: %+v", p)
	}
	if p := n.push("a", 0, 1, stores(t, 5, 1)); p.Applied != 1 || len(p.Gaps) != 0 || n.held("m", 1, 2)["a/0"] != 8 {
		t.Errorf("%+v", p)
	}
	n.fleet.Discovered(update(found("a", "m", 2), changed, found("c", "m", 1)))
	k.restored(t, Restored{Sources: 2, Dropped: map[string]int{DropChanged: 1, DropUnconfigured: 1}})
	if p := n.push("c", 0, 3, stores(t, 5, 1)); len(p.Gaps) != 1 || n.held("m", 1, 2)["c/0"] != 0 {
		t.Errorf("batches lost behind the cursor: %+v", p)
	}
	if n.fleet.awaited.r.file != nil {
		t.Error("the file is still open")
	}
}

// A restart before discovery has found its workers loses nothing of them, nor does one while it finds them.
func TestAwaited_NextSnapshotHasIt(t *testing.T) {
	path := discoveredOnce(t)
	n, k := later(t, path, Options{})
	n.fleet.Discovered(update(found("b", "m", 1)))
	n.fleet.Close() // as the service does before it saves for the last time
	if err := k.Save(); err != nil {
		t.Fatal(err)
	}
	if got := k.Stats(); got.Sources != 4 || got.Skipped != 0 {
		t.Errorf("%d sources saved, %d left out", got.Sources, got.Skipped)
	}
	n, k = later(t, path, Options{})
	k.restored(t, Restored{Waiting: 4, Dropped: map[string]int{}})
	var wg sync.WaitGroup
	for _, id := range []string{"b", "c"} {
		wg.Go(func() { // ends by itself
			if err := k.Save(); err != nil {
				t.Error(err)
			}
		})
		n.fleet.Discovered(update(found("a", "m", 2), found(id, "m", 1)))
	}
	wg.Wait()
	last, k := later(t, path, Options{})
	last.fleet.Discovered(update(found("a", "m", 2)))
	if diff := cmp.Diff(map[string]int{"a/0": 8, "a/1": 4}, last.held("m", 1, 2)); diff != "" {
		t.Errorf("%+v: %s", k.Stats().Restored, diff)
	}
}

// Who is not found in time is dropped, as is who a call registers or takes out; that is counted, and the next snapshot is
// without them.
func TestAwaited_Dropped(t *testing.T) {
	path := discoveredOnce(t)
	n, k := later(t, path, Options{Await: time.Nanosecond})
	k.restored(t, Restored{Dropped: map[string]int{DropUnconfigured: 4}})
	n.fleet.Discovered(update(found("a", "m", 2)))
	if got := n.held("m", 1, 2); got["a/0"] != 0 {
		t.Errorf("found too late, and goes on: %v", got)
	}

	n, k = later(t, path, Options{})
	n.register(worker("a", "m", 2))
	if n.fleet.Deregister("b", nil) {
		t.Error("b was known")
	}
	k.restored(t, Restored{Waiting: 1, Dropped: map[string]int{DropChanged: 2, DropUnconfigured: 1}})
	n.fleet.Discovered(update(found("b", "m", 1)))
	if got := n.held("m", 1, 2); got["a/0"]+got["b/0"] != 0 {
		t.Errorf("%v", got)
	}
	if err := k.Save(); err != nil {
		t.Fatal(err)
	}
	if got := k.Stats(); got.Sources != 1 || got.Skipped != 3 {
		t.Errorf("%d sources saved, %d left out", got.Sources, got.Skipped)
	}
}

// Behind real ZMQ: the engine is asked for nothing but what was missed, and its answers are exact again. One that has started
// again meanwhile is seen by that, and replayed from its beginning.
func TestAwaited_ReplayedFromTheCursor(t *testing.T) {
	engines, workers := fleetOf(t, 2)
	var list []discover.Worker
	for _, w := range workers {
		list = append(list, discover.Worker{ID: w.ID, Model: w.Model, Role: w.Role.String(), Sources: w.Sources})
	}
	direct := newRig(t, Options{})
	path := filepath.Join(t.TempDir(), "s")
	r, k := later(t, path, Options{})
	for _, rig := range []*rig{direct, r} {
		rig.fleet.Discovered(update(list...))
	}
	traffic := simulate.NewTraffic(3, simulate.TrafficConfig{MaxTokens: 200})
	var prompts []simulate.Request
	serve := func(n int) {
		for range n {
			prompts = append(prompts, traffic.Next())
			for _, e := range engines {
				if _, err := e.Serve(prompts[len(prompts)-1]); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	serve(30)
	r.agree("the first life", direct, prompts)
	r.fleet.Close()
	if err := k.Save(); err != nil {
		t.Fatal(err)
	}
	stats := func(r *rig, id string) indexer.SourceStats {
		l, _ := r.index.Find(id, 0)
		return l.Stats()
	}
	before := stats(r, "w0")
	serve(5)
	if err := engines[1].Restart(); err != nil {
		t.Fatal(err)
	}
	serve(5)
	n, k := later(t, path, Options{})
	n.fleet.Discovered(update(list...))
	n.agree("the second life", direct, prompts)
	k.restored(t, Restored{Sources: 2, Dropped: map[string]int{}})
	after := stats(n, "w0")
	if missed, replayed := after.Batches-before.Batches, after.Replayed-before.Replayed; replayed != missed || missed == 0 {
		t.Errorf("%d batches were replayed, %d were missed", replayed, missed)
	}
	if after.Resets != 0 || after.Gaps != 0 {
		t.Errorf("%d resets, %d gaps", after.Resets, after.Gaps)
	}
	if got := stats(n, "w1").Resets; got != 1 {
		t.Errorf("the engine that restarted was reset %d times", got)
	}
}
