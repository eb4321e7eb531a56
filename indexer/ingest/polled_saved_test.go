package ingest

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

// drained is the worker whose events d hands out.
func drained(d *drain) Worker {
	return Worker{ID: "w", Model: "m", Sources: []events.Source{{Worker: "w", Engine: events.EngineTRTLLM, BlockSize: 4, Events: d.url}}}
}

// restart saves what r knows, ends it, and returns who goes on with the file.
func (r *rig) restart(t *testing.T, d *drain) *rig {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	k, _ := r.keeper(path)
	if err := k.Save(); err != nil {
		t.Fatal(err)
	}
	if got := k.Stats(); got.Sources != 1 || got.Skipped != 0 {
		t.Fatalf("saved %d sources, %d left out", got.Sources, got.Skipped)
	}
	r.fleet.Close()
	d.idle()
	n, got := restarted(t, path, drained(d))
	if got.Restored.Sources != 1 {
		t.Fatalf("restored %+v", got)
	}
	return n
}

const created = `"type": "created", "num_blocks_per_cache_level": [10, 10]`

// moves is the data of a block's move from the device to the host.
func moves(hash int) string {
	return fmt.Sprintf(`"type": "updated", "block_hash": %d, "cache_level": {"type": "event_diff", "old_value": 0, "new_value": 1}, "priority": null`, hash)
}

// A polled source goes on from a snapshot: what it is told next means what it means to who was never restarted, though
// removals name no tier and stores no block size. The answers are equal, and flagged as long as nothing proves the engine.
func TestPolled_FromSnapshot(t *testing.T) {
	r, d := polled(t)
	twin, e := polled(t)
	both := func(window int, data string) {
		d.event(window, data)
		e.event(window, data)
	}
	both(512, created)
	both(4096, created)
	both(512, store(0, 4, 0))
	both(4096, store(0, 4, 0))
	both(4096, moves(104))
	both(4096, moves(103))
	r.match(d, 17)
	r = r.restart(t, d)
	agree := func(what string, tokens int) {
		t.Helper()
		a, b := r.match(d, tokens), twin.match(e, tokens)
		if a.Held != b.Held || a.Reusable != b.Reusable || a.With != b.With {
			t.Errorf("%s: %+v, and never restarted %+v", what, a, b)
		}
		if a.Bound.Doubt&^indexer.DoubtBehind != b.Bound.Doubt|indexer.DoubtResumed {
			t.Errorf("%s: bound %+v, and never restarted %+v", what, a.Bound, b.Bound)
		}
	}
	agree("restored", 17)
	both(512, `"type": "removed", "block_hashes": [104]`)
	agree("the small window lost block 4", 17)
	both(4096, `"type": "removed", "block_hashes": [104]`)
	agree("block 4 left the host", 17)
	both(4096, `"type": "updated", "block_hash": 103, "cache_level": {"type": "event_diff", "old_value": 1, "new_value": 0}, "priority": null`)
	agree("block 3 is back on the device", 17)
	both(4096, store(3, 1, 2)) // half of a block: the size is known
	agree("a partial block", 17)
	both(4096, store(3, 1, 0))
	both(512, store(3, 1, 0))
	agree("block 4 again", 17)
	until(t, "live", func() bool { return r.match(d, 17).Freshness.State == events.StateLive })
	for _, reason := range []events.Reason{events.ReasonUnknownRemoval, events.ReasonPartialBlock} {
		n := func(r *rig) uint64 { return r.fleet.workers["w"].sources[0].writer.Rejected()[reason] }
		if n(r) != n(twin) {
			t.Errorf("%v: %d, and never restarted %d", reason, n(r), n(twin))
		}
	}

	// A second restart, now onto an engine that started anew: its own word beats what was saved.
	r = r.restart(t, d)
	d.id = 0
	d.event(4096, created)
	d.event(4096, store(0, 1, 0))
	if m := r.match(d, 9); m.Held != 4 || m.Bound.Kind != indexer.Exact {
		t.Errorf("a new life: held %d, %+v", m.Held, m.Bound)
	}
}

// Rule 11: a drain gives nothing twice, so what it handed out while nobody noted it is lost: the source has a gap, what was
// held is dropped, and the answer is a bound until the engine starts anew.
func TestRule11_PolledGapAfterSnapshot(t *testing.T) {
	r, d := polled(t)
	d.event(4096, created)
	d.event(4096, store(0, 2, 0))
	if m := r.match(d, 9); m.Held != 8 {
		t.Errorf("before: %+v", m)
	}
	n := r.restart(t, d)
	d.id++ // whoever was killed had taken one more
	d.event(4096, store(2, 1, 0))
	if m := n.match(d, 13); m.Held != 0 || m.Bound.Kind == indexer.Exact || m.Freshness.State != events.StateGap {
		t.Errorf("after events were lost: held %d, %+v, %v", m.Held, m.Bound, m.Freshness.State)
	}
	// And that it has a gap survives the next restart.
	n = n.restart(t, d)
	d.event(4096, store(0, 1, 0))
	if m := n.match(d, 13); m.Held != 4 || m.Bound.Kind == indexer.Exact || m.Freshness.State != events.StateGap {
		t.Errorf("restored with a gap: held %d, %+v, %v", m.Held, m.Bound, m.Freshness.State)
	}
}

// Rule 13: every rank goes on behind its own number, and until each has told one the source is not taken for live.
func TestRule13_PolledRanksFromSnapshot(t *testing.T) {
	r, d := polled(t)
	push := func(id, rank int, data string) {
		fmt.Fprintf(d.in, "push {\"event_id\": %d, \"attention_dp_rank\": %d, \"window_size\": 4096, \"data\": {%s}}\n", id, rank, data)
		d.line()
		d.id++
	}
	push(0, 0, created)
	push(0, 1, created)
	push(1, 1, store(0, 2, 0))
	push(2, 1, moves(102))
	push(1, 0, store(0, 2, 0))
	r.match(d, 9)
	r = r.restart(t, d)
	ranks := func() (held [2]int, states [2]events.State, host int) {
		matches, err := r.index.Lookup(context.Background(), indexer.Query{Model: "m", Tokens: []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9}})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range matches {
			held[m.Source.Rank], states[m.Source.Rank] = m.Held, m.Freshness.State
			if m.Source.Rank == 1 {
				host = m.Covered[events.TierHost]
			}
		}
		return held, states, host
	}
	if held, _, host := ranks(); held != [2]int{8, 4} || host != 4 {
		t.Errorf("restored: %v, %d on rank 1's host", held, host)
	}
	push(3, 1, `"type": "removed", "block_hashes": [102]`)
	until(t, "rank 1's removal", func() bool { _, _, host := ranks(); return host == 0 })
	if _, states, _ := ranks(); slices.Contains(states[:], events.StateLive) {
		t.Errorf("rank 0 has told nothing yet: %v", states)
	}
	push(2, 0, `"type": "removed", "block_hashes": [102]`)
	until(t, "live", func() bool {
		held, states, _ := ranks()
		return held == [2]int{4, 4} && states == [2]events.State{events.StateLive, events.StateLive}
	})

	// The engine starts anew, and rank 1 has told nothing yet when that is saved: its old number is not waited for.
	push(0, 0, created)
	push(1, 0, store(0, 1, 0))
	until(t, "the new life", func() bool {
		last, known := r.index.Find("w", 1)
		if !known || last.Resets() == 0 {
			return false // rank 1 is dropped last: before, an answer may be of both lives
		}
		held, _, _ := ranks()
		return held == [2]int{4, 0}
	})
	r = r.restart(t, d)
	push(0, 1, created)
	push(1, 1, store(0, 2, 0))
	until(t, "rank 1", func() bool { held, _, _ := ranks(); return held[1] == 8 })
	if held, _, _ := ranks(); held[0] != 4 {
		t.Errorf("rank 0 was dropped: %v", held)
	}
}
