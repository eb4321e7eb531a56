package ingest

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/jetstream"
	"github.com/kvscout/kvscout/events/jetstream/embedded"
	"github.com/kvscout/kvscout/events/simulate"
	"github.com/kvscout/kvscout/indexer/snapshot"
)

// restore is a replica of another process, which goes on from the file and then reads the log.
func restore(t *testing.T, s *embedded.Server, path string) (*replica, *Keeper) {
	t.Helper()
	r := &replica{rig: newRig(t, Options{})}
	r.attach(s)
	k, _ := r.keeper(path)
	if err := k.Restore(nil); err != nil {
		t.Fatal(err)
	}
	r.start()
	return r, k
}

// batches is how many batches each source has applied, with those before a restart.
func (r *rig) batches() map[string]uint64 {
	out := make(map[string]uint64)
	for _, l := range r.index.Ledgers() {
		src := l.Source()
		out[src.ID()] = l.Stats().Batches
	}
	return out
}

// until waits until the condition is met.
func (r *rig) until(what string, done func() bool) {
	r.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); {
		if time.Now().After(deadline) {
			r.Fatalf("not %s", what)
		}
		time.Sleep(5 * time.Millisecond) // a poll with a deadline
	}
}

// One of three replicas is killed and started from its snapshot: it reads what is missing of the log and nothing else, and
// all three answer alike, exactly what an index does that listens to the engines itself, for engines that went on, started
// again, cleared their cache, came or left meanwhile.
func TestReplicas_FromSnapshot(t *testing.T) {
	server := logServer(t)
	engines, workers := fleetOf(t, 6)
	direct, ingester := newRig(t, Options{}), newIngester(t, server)
	both := []*rig{direct, ingester, newIngester(t, server)}
	register := func(list []Worker) {
		for _, r := range both {
			for _, w := range list {
				r.register(w)
			}
		}
	}
	register(workers[:5])
	one, two := newReplica(t, server), newReplica(t, server)
	path := filepath.Join(t.TempDir(), "s")
	three, keeper := restore(t, server, path)
	if got := keeper.Stats().Outcome; got != OutcomeNone {
		t.Fatal(got)
	}
	traffic := simulate.NewTraffic(2, simulate.TrafficConfig{MaxTokens: 200})
	var prompts []simulate.Request
	serve := func(n int, on ...*simulate.Engine) {
		for range n {
			p := traffic.Next()
			prompts = append(prompts, p)
			if _, err := on[len(prompts)%len(on)].Serve(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	serve(80, engines[:5]...)
	three.agree("the third replica", direct, prompts)
	if err := keeper.Save(); err != nil {
		t.Fatal(err)
	}
	if got := keeper.Stats(); got.Sources != 5 || got.Skipped != 0 {
		t.Fatalf("saved %d sources, %d left out", got.Sources, got.Skipped)
	}
	done := make(chan struct{})
	go func() { // ends by itself, waited for below
		defer close(done)
		for range 20 {
			if err := keeper.Save(); err != nil { // while records are taken
				t.Error(err)
			}
		}
	}()
	serve(30, engines[:5]...)
	<-done
	saved := three.follower.Cursor().Sequence
	serve(10, engines[:5]...) // which the file lacks
	three.stop()              // killed: only the file is left
	three.fleet.Close()

	serve(40, engines[:5]...)
	if err := engines[0].Restart(); err != nil {
		t.Fatal(err)
	}
	if err := engines[2].Reset(); err != nil {
		t.Fatal(err)
	}
	for _, r := range both {
		r.fleet.Deregister("w4", nil)
	}
	register(workers[5:])
	serve(40, engines[0], engines[1], engines[2], engines[3], engines[5])

	three, keeper = restore(t, server, path)
	want := Restored{Sources: 5, Dropped: map[string]int{}}
	if diff := cmp.Diff(want, keeper.Stats().Restored); diff != "" {
		t.Error(diff)
	}
	serve(20, engines[1], engines[3])
	for name, r := range map[string]*rig{"one": one.rig, "two": two.rig, "three": three.rig} {
		r.agree("replica "+name, direct, prompts)
		if _, known := r.fleet.Worker("w4"); known || len(r.fleet.Workers()) != 5 {
			t.Errorf("replica %s knows %d workers", name, len(r.fleet.Workers()))
		}
	}
	// Each batch was applied once, by whom the file had it or by whom the log.
	if diff := cmp.Diff(one.batches(), three.batches()); diff != "" {
		t.Errorf("batches of replicas one and three: %s", diff)
	}
	three.stop()
	got := three.follower.Stats()
	file, err := snapshot.Open(path, snapshot.Any)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	_, cursor, err := readWorkers(file.Fleet(), 100)
	if err != nil || cursor.Sequence == 0 || cursor.Sequence > saved {
		t.Fatalf("the file has the cursor %+v, and the log was at %d: %v", cursor, saved, err)
	}
	if missing := got.Sequence - cursor.Sequence; got.Records != missing || got.Trimmed != 0 {
		t.Errorf("%d records read, %d trimmed, want the %d behind the cursor", got.Records, got.Trimmed, missing)
	}
	t.Logf("%d of %d records read", got.Records, got.Sequence)
}

// What is restored is of a log that is not there any more, or is not followed: it is dropped, counted and said.
func TestReplica_SnapshotOfAnotherLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	first := logServer(t)
	a := newIngester(t, first)
	a.register(worker("w", "m", 2))
	a.register(worker("v", "m", 1))
	r, k := restore(t, first, path)
	for _, id := range []string{"w", "v"} {
		a.push(id, 0, 0, stores(t, 1, 2))
	}
	r.until("followed", func() bool { return r.held("m", 1, 2)["w/0"] == 8 && r.held("m", 1, 2)["v/0"] == 8 })
	if err := k.Save(); err != nil {
		t.Fatal(err)
	}
	if got := k.Stats(); got.Sources != 2 || got.Skipped != 1 {
		t.Fatalf("saved %d sources, %d left out", got.Sources, got.Skipped)
	}

	second := logServer(t)
	b := newIngester(t, second)
	b.register(worker("w", "m", 2))
	b.push("w", 0, 0, stores(t, 1, 1))
	other, k := restore(t, second, path)
	other.until("the second log's", func() bool { return other.held("m", 1, 2)["w/0"] == 4 })
	if got, ok := other.held("m", 1, 2)["v/0"]; ok {
		t.Errorf("a worker of the first log holds %d", got)
	}
	if diff := cmp.Diff(Restored{Dropped: map[string]int{DropLog: 2}}, k.Stats().Restored); diff != "" {
		t.Error(diff)
	}

	alone, stats := restarted(t, path)
	if diff := cmp.Diff(Restored{Dropped: map[string]int{DropLog: 2}}, stats.Restored); diff != "" || len(alone.fleet.Workers()) != 0 {
		t.Errorf("without a log there are workers %v: %s", alone.fleet.Workers(), diff)
	}
	// A worker that this server listens to now does not take over what it held by the log.
	local, stats := restarted(t, path, worker("v", "m", 1))
	if diff := cmp.Diff(Restored{Dropped: map[string]int{DropLog: 1, DropChanged: 1}}, stats.Restored); diff != "" || local.held("m", 1, 2)["v/0"] != 0 {
		t.Errorf("held %v: %s", local.held("m", 1, 2), diff)
	}
}

// Until the log is reached, what was restored is flagged, and no longer credited after StaleAfter (rules 12 and 13).
func TestRule12_ReplicaRestoredWithoutItsLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	server := logServer(t)
	a := newIngester(t, server)
	a.register(worker("w", "m", 1))
	r, k := restore(t, server, path)
	a.push("w", 0, 0, stores(t, 1, 2))
	r.until("followed", func() bool { return r.held("m", 1, 2)["w/0"] == 8 })
	if err := k.Save(); err != nil {
		t.Fatal(err)
	}
	o := logOptions
	o.URL, o.StaleAfter = "nats://127.0.0.1:1", 300*time.Millisecond // where nobody listens
	l, err := jetstream.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	n := &replica{rig: newRig(t, Options{})}
	n.use(l)
	k, _ = n.keeper(path)
	if err := k.Restore(nil); err != nil {
		t.Fatal(err)
	}
	n.start()
	prompt := []simulate.Request{{Tokens: []uint32{1, 1, 1, 1, 2, 2, 2, 2}}}
	state := func() events.State { return n.answers(prompt)["0 of w/0"][0].State }
	if got := n.held("m", 1, 2)["w/0"]; got != 8 {
		t.Errorf("held %d", got)
	}
	if got := state(); got == events.StateLive {
		t.Errorf("state %v", got)
	}
	n.until("stale", func() bool { return state() == events.StateStale })
}

// Events of TensorRT-LLM mean nothing without those before, so a snapshot has what is to be known of these: a replica that goes
// on from it reads of the log what is behind it, as for others, and answers exactly.
func TestReplica_SnapshotOfBufferedEvents(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	server := logServer(t)
	a := newIngester(t, server)
	a.register(worker("w", "m", 1))
	trt := worker("trt", "m", 1)
	trt.Sources[0].Engine, trt.Sources[0].BlockSize = events.EngineTRTLLM, 4
	a.register(trt)
	event := func(id int, data string) []byte {
		return fmt.Appendf(nil, `{"event_id": %d, "window_size": 4096, "data": {%s}}`, id, data)
	}
	r, k := restore(t, server, path)
	a.push("trt", 0, 0, event(0, `"type": "created", "num_blocks_per_cache_level": [10, 10]`))
	a.push("trt", 0, 1, event(1, store(0, 3, 0)))
	a.push("w", 0, 0, stores(t, 5, 2))
	a.push("w", 0, 1, stores(t, 7, 2))
	a.push("w", 0, 0, stores(t, 1, 2)) // it started again, which must not happen to what is restored once more
	a.push("w", 0, 1, stores(t, 5, 2))
	prompts := []simulate.Request{
		{Tokens: []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}}, {Tokens: []uint32{1, 1, 1, 1, 2, 2, 2, 2}},
	}
	r.agree("the replica", a, prompts)
	if got := r.answers(prompts)["0 of trt/0"][0].Held; got != 12 {
		t.Fatalf("held %d", got)
	}
	if err := k.Save(); err != nil {
		t.Fatal(err)
	}
	if got := k.Stats(); got.Sources != 2 || got.Skipped != 0 {
		t.Fatalf("saved %d sources, %d left out", got.Sources, got.Skipped)
	}
	r.stop()
	a.push("trt", 0, 2, event(2, `"type": "updated", "block_hash": 103, "cache_level": {"type": "event_diff", "old_value": 0, "new_value": 1}`))
	a.push("w", 0, 2, stores(t, 9, 1))
	n, k := restore(t, server, path)
	n.agree("the restored replica", a, prompts)
	if diff := cmp.Diff(a.batches(), n.batches()); diff != "" {
		t.Errorf("batches: %s", diff)
	}
	if got := n.answers(prompts)["0 of trt/0"][0]; got.Held != 8 {
		t.Errorf("held %d", got.Held)
	}
	a.push("trt", 0, 3, event(3, `"type": "removed", "block_hashes": [103]`)) // which was on the host: the event does not say so
	n.agree("after the removal", a, prompts)
	if got := k.Stats().Restored.Sources; got != 2 {
		t.Errorf("%d sources restored", got)
	}
}

// An ingester that goes on from its snapshot goes on in the log too: replicas hear no restart, whatever was heard when the
// file was written, and still hear one that happened meanwhile.
func TestIngester_FromSnapshot(t *testing.T) {
	server := logServer(t)
	path := filepath.Join(t.TempDir(), "s")
	engines, workers := fleetOf(t, 2)
	workers = append(workers, worker("pushed", "m", 1))
	start := func() (*rig, *Keeper, func()) {
		p := openLog(t, server).NewPublisher()
		r := newRig(t, Options{Log: p})
		k, _ := r.keeper(path)
		if err := k.Restore(workers); err != nil {
			t.Fatal(err)
		}
		return r, k, sync.OnceFunc(func() {
			r.fleet.Close()
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			p.Close(ctx)
		})
	}
	traffic := simulate.NewTraffic(3, simulate.TrafficConfig{MaxTokens: 200})
	var prompts []simulate.Request
	serve := func(n int) {
		for range n {
			p := traffic.Next()
			prompts = append(prompts, p)
			if _, err := engines[len(prompts)%2].Serve(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	direct, replica := newRig(t, Options{}), newReplica(t, server)
	for _, w := range workers {
		direct.register(w)
	}
	first, keeper, stop := start()
	t.Cleanup(func() { stop() })
	push := func(seq uint64, payload []byte, to ...*rig) {
		for _, r := range to {
			r.push("pushed", 0, seq, payload)
		}
	}
	push(0, stores(t, 1, 1), direct, first)
	serve(30)
	replica.agree("the replica", direct, prompts)
	if err := keeper.Save(); err != nil {
		t.Fatal(err)
	}
	serve(30) // which the file lacks, and the log has
	push(1, stores(t, 3, 1), direct, first)
	replica.agree("the replica", direct, prompts)
	stop()
	serve(30)
	second, keeper, stop2 := start()
	t.Cleanup(stop2)
	if got := keeper.Stats().Restored.Sources; got != 3 {
		t.Errorf("%d sources restored", got)
	}
	push(1, stores(t, 3, 1), second) // again, since the file lacks it
	push(2, stores(t, 4, 1), direct, second)
	serve(30)
	replica.agree("the replica", direct, prompts)
	for _, l := range replica.index.Ledgers() {
		src := l.Source()
		if n := l.Stats().Resets; n != 0 {
			t.Errorf("%s: the replica heard %d restarts", src.ID(), n)
		}
	}
	if diff := cmp.Diff(direct.batches(), replica.batches()); diff != "" {
		t.Error(diff)
	}
	if err := engines[0].Restart(); err != nil {
		t.Fatal(err)
	}
	serve(10)
	replica.agree("the replica", direct, prompts)
}
