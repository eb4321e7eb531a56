package ingest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

// keeper is a keeper of the rig's fleet, and its log.
func (r *rig) keeper(path string) (*Keeper, *bytes.Buffer) {
	log := new(bytes.Buffer)
	return NewKeeper(r.index, r.fleet, path, slog.New(slog.NewTextHandler(log, nil))), log
}

// restarted is a rig of another process that has restored the file with these workers configured.
func restarted(t *testing.T, path string, configured ...Worker) (*rig, KeeperStats) {
	t.Helper()
	r := newRig(t, Options{})
	k, _ := r.keeper(path)
	if err := k.Restore(configured); err != nil {
		t.Fatal(err)
	}
	return r, k.Stats()
}

// Whose state goes on after a restart: workers that are configured as they were, and those that were registered by RPC.
func TestKeeper_WhoGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	r := newRig(t, Options{})
	k, _ := r.keeper(path)
	configured := []Worker{worker("kept", "m", 2), worker("changed", "m", 1), worker("left", "m", 1), worker("fewer", "m", 2)}
	if err := k.Restore(configured); err != nil {
		t.Fatal(err)
	}
	if got := k.Stats(); got.Outcome != OutcomeNone {
		t.Errorf("%+v", got)
	}
	labelled := worker("rpc", "m", 1)
	labelled.Labels, labelled.Role = map[string]string{"zone": "a"}, RolePrefill
	r.register(labelled)
	r.register(worker("both", "m", 1))
	r.register(worker("silent", "m", 1)) // nothing to go on from, but it is registered
	r.register(worker("out", "m", 1))
	for _, id := range []string{"kept", "changed", "left", "fewer", "rpc", "both", "out"} {
		r.push(id, 0, 0, stores(t, 1, 2))
	}
	r.push("kept", 1, 4, stores(t, 1, 1))
	r.push("fewer", 1, 0, stores(t, 1, 2))
	r.fleet.Deregister("out", nil)
	if err := k.Save(); err != nil {
		t.Fatal(err)
	}
	if got := k.Stats(); got.Saves != 1 || got.Sources != 8 || got.Skipped != 1 || got.Bytes == 0 || time.Since(got.Saved) > time.Minute {
		t.Errorf("%+v", got)
	}

	changed := worker("changed", "m", 1)
	changed.Sources[0].Version = "2"
	n, got := restarted(t, path, worker("kept", "m", 2), changed, worker("fewer", "m", 1), worker("both", "m", 1))
	want := Restored{Sources: 5, Workers: 2, Dropped: map[string]int{DropChanged: 1, DropUnconfigured: 2}}
	if diff := cmp.Diff(want, got.Restored); diff != "" || got.Outcome != OutcomeRestored {
		t.Errorf("%s: %s", got.Outcome, diff)
	}
	held := n.held("m", 1, 2)
	if diff := cmp.Diff(map[string]int{
		"kept/0": 8, "kept/1": 4, "changed/0": 0, "fewer/0": 8, "rpc/0": 8, "both/0": 8, "silent/0": 0,
	}, held); diff != "" {
		t.Error(diff)
	}
	if w, ok := n.fleet.Worker("rpc"); !ok || w.Labels["zone"] != "a" || w.Role != RolePrefill {
		t.Errorf("%+v", w)
	}
	// It goes on with the next number, and only with that.
	if p := n.push("kept", 1, 5, stores(t, 5, 1)); p.Applied != 1 || p.Resets != 0 || n.held("m", 1, 1)["kept/1"] != 4 {
		t.Errorf("%+v", p)
	}
	if p := n.push("rpc", 0, 7, stores(t, 5, 1)); len(p.Gaps) != 1 || n.held("m", 1, 2)["rpc/0"] != 0 {
		t.Errorf("%+v", p)
	}

	// What was registered again is so once more, though it was not configured in between either.
	k, _ = n.keeper(path)
	if err := k.Save(); err != nil {
		t.Fatal(err)
	}
	if _, got := restarted(t, path); got.Restored.Workers != 2 {
		t.Errorf("%+v", got)
	}
}

// The epoch of a publisher is saved: the same one proves it the same, another one is another life.
func TestKeeper_Epoch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	r := newRig(t, Options{})
	k, _ := r.keeper(path)
	for id, epoch := range map[string]string{"a": "e", "b": "", "c": strings.Repeat("e", 300)} {
		r.register(worker(id, "m", 1))
		m := events.Message{Seq: 4, Payload: stores(t, 1, 2), Epoch: []byte(epoch)}
		if _, err := r.fleet.Publish(id, 0, []events.Message{m}); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Save(); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		id, epoch string
		held      int
		flagged   bool
	}{
		{"a", "e", 8, false}, {"a", "f", 0, false}, {"b", "", 8, true},
		{"c", strings.Repeat("e", 300), 0, false}, // too long to be saved, so it cannot be compared
	} {
		n, _ := restarted(t, path)
		m := events.Message{Seq: 5, Payload: stores(t, 50, 1), Epoch: []byte(tc.epoch)}
		if _, err := n.fleet.Publish(tc.id, 0, []events.Message{m}); err != nil {
			t.Fatal(err)
		}
		matches, err := n.index.Lookup(context.Background(), indexer.Query{Model: "m", Tokens: []uint32{1, 1, 1, 1, 2, 2, 2, 2, 9}})
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range matches {
			if got.Source.Worker == tc.id && (got.Held != tc.held || (got.Bound.Doubt&indexer.DoubtResumed != 0) != tc.flagged) {
				t.Errorf("%s, epoch %.4q: %+v", tc.id, tc.epoch, got)
			}
		}
	}
}

// A stream's batches may name further ranks. Their books go on too, unless the rank has a stream of its own now.
func TestKeeper_RanksOnTheWire(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	r := newRig(t, Options{})
	k, _ := r.keeper(path)
	if err := k.Restore([]Worker{worker("w", "m", 1)}); err != nil {
		t.Fatal(err)
	}
	for seq, rank := range []int{0, 1, 2} {
		var batch []any
		if err := msgpack.Unmarshal(stores(t, 1, 2), &batch); err != nil {
			t.Fatal(err)
		}
		batch[2] = rank
		payload, err := msgpack.Marshal(batch)
		if err != nil {
			t.Fatal(err)
		}
		r.push("w", 0, uint64(seq), payload)
	}
	if err := k.Save(); err != nil {
		t.Fatal(err)
	}
	n, _ := restarted(t, path, worker("w", "m", 1))
	if diff := cmp.Diff(map[string]int{"w/0": 8, "w/1": 8, "w/2": 8}, n.held("m", 1, 2)); diff != "" {
		t.Error(diff)
	}
	n, got := restarted(t, path, worker("w", "m", 2))
	if diff := cmp.Diff(map[string]int{"w/0": 8, "w/1": 0, "w/2": 8}, n.held("m", 1, 2)); diff != "" || got.Restored.Sources != 1 {
		t.Errorf("%+v: %s", got, diff)
	}
}

// A file that is refused is no error; the fleet begins empty, and log and statistics say why.
func TestKeeper_Refused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	r := newRig(t, Options{})
	k, _ := r.keeper(path)
	r.register(worker("rpc", "m", 1))
	r.push("rpc", 0, 0, stores(t, 1, 2))
	if err := k.Save(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for outcome, change := range map[string]func() *indexer.Index{
		OutcomeDamaged: func() *indexer.Index {
			_ = os.WriteFile(path, whole[:len(whole)-1], 0o600)
			return indexer.New(indexer.Options{})
		},
		OutcomeVersion: func() *indexer.Index {
			_ = os.WriteFile(path, whole, 0o600)
			return indexer.New(indexer.Options{KeepOnGap: true})
		},
		OutcomeDamaged + " ": func() *indexer.Index { // a directory
			_ = os.Remove(path)
			_ = os.Mkdir(path, 0o700)
			return indexer.New(indexer.Options{})
		},
	} {
		x := change()
		n := &rig{T: t, index: x, fleet: New(x, Options{})}
		k, log := n.keeper(path)
		err := k.Restore([]Worker{worker("w", "m", 1)})
		n.fleet.Close()
		_ = os.RemoveAll(path)
		got := k.Stats()
		if err != nil || got.Outcome != strings.TrimSpace(outcome) || got.Why == "" || got.Restored.Sources+got.Restored.Workers != 0 {
			t.Errorf("%s: %v, %+v", outcome, err, got)
		}
		if !strings.Contains(log.String(), "level=ERROR msg=\"snapshot is refused, the index begins empty\"") {
			t.Errorf("%s: the log says %s", outcome, log)
		}
		if len(n.fleet.Workers()) != 1 || x.Stats().HolderBlocks != 0 {
			t.Errorf("%s: %d workers, %+v", outcome, len(n.fleet.Workers()), x.Stats())
		}
	}
}

// Failures are counted by reason, and do not end what runs.
func TestKeeper_RunAndFailures(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, Options{})
	k, log := r.keeper(filepath.Join(dir, "none", "s"))
	if err := k.Save(); err == nil {
		t.Error("saved into a directory that is not there")
	}
	if diff := cmp.Diff(map[string]uint64{"no_directory": 1}, k.Stats().Failures); diff != "" || !strings.Contains(log.String(), "snapshot is not written") {
		t.Errorf("%s\n%s", diff, log)
	}
	if got := failure(fmt.Errorf("write: %w", os.ErrPermission)); got != "permission" {
		t.Error(got)
	}
	k, _ = r.keeper(filepath.Join(dir, "s"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // ended by cancel, waited for below
		defer close(done)
		k.Run(ctx, time.Millisecond)
	}()
	for k.Stats().Saves < 3 {
		select {
		case <-done:
			t.Fatal("ended by itself")
		default:
		}
	}
	cancel()
	<-done
	if _, got := restarted(t, filepath.Join(dir, "s")); got.Outcome != OutcomeRestored {
		t.Errorf("%+v", got)
	}
}

func TestReadWorkers_Bad(t *testing.T) {
	for _, text := range []string{"", "{}", "[", "[1]", "[{}", "[{},{},{}]", "[{}] []", "null"} {
		if list, err := readWorkers([]byte(text), 2); err == nil {
			t.Errorf("%q: %v", text, list)
		}
	}
	if list, err := readWorkers([]byte("[{},{}]\n"), 2); err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
}
