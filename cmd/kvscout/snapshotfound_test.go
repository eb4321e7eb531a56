package main

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/kvscout/kvscout/events/simulate"
)

// A worker that the file names by its address alone goes on from the snapshot once it has answered: of its batches the server
// asks for those behind the cursor, and is sure again.
func TestServe_SnapshotOfAWorkerByURL(t *testing.T) {
	engine := startEngine(t, simulate.Config{Worker: "any", Model: "m", Events: "tcp://127.0.0.1:0"})
	prompt := make([]uint32, 33)
	for i := range prompt {
		prompt[i] = uint32(i + 1)
	}
	serve := func(first uint32) {
		prompt[0] = first
		if _, err := engine.Serve(simulate.Request{Tokens: prompt}); err != nil {
			t.Fatal(err)
		}
	}
	serve(1)
	well := new(atomic.Bool)
	well.Store(true)
	file := writeFile(t, "c.yaml", "workers:\n  - {id: w0, url: "+servingPort(t, engine, well)+"}\n")
	snapshot := filepath.Join(t.TempDir(), "index.snapshot")

	// life is a server's: it tells of its snapshot and its source once it has credited what was served first and last.
	var before, after struct{ Batches, ReplayedBatches, Resets float64 }
	life := func(name string, last uint32, check func(snapshot map[string]any)) {
		t.Run(name, func(t *testing.T) {
			d := &discovering{T: t}
			d.address, d.log = startServe(t, "--listen", "127.0.0.1:0", "--config", file, "--snapshot", snapshot)
			for _, first := range []uint32{1, last} {
				prompt[0] = first
				ids, err := json.Marshal(prompt)
				if err != nil {
					t.Fatal(err)
				}
				d.tokens = writeFile(t, "ids.json", string(ids))
				d.await("credit", func() bool { return d.score() > 0.9 })
			}
			stats := parseJSON(t, ok(t, "stats", "--server", d.address, "--json"))["stats"].(map[string]any)
			source := stats["sources"].([]any)[0].(map[string]any)
			before = after
			after.Batches, after.ReplayedBatches, after.Resets = number(source["batches"]), number(source["replayedBatches"]), number(source["resets"])
			if kind := source["bound"].(map[string]any)["kind"]; kind != "BOUND_KIND_EXACT" {
				t.Errorf("it is not sure: %v", source["bound"])
			}
			check(stats["snapshot"].(map[string]any))
		})
	}
	life("first", 1, func(s map[string]any) {
		if s["outcome"] != "none" {
			t.Errorf("%v", s)
		}
	})
	serve(2)
	life("second", 2, func(s map[string]any) {
		if s["outcome"] != "restored" || number(s["restoredSources"]) != 1 || number(s["waitingSources"]) != 0 || len(s["droppedSources"].(map[string]any)) > 0 {
			t.Errorf("%v", s)
		}
		missed := after.Batches - before.Batches
		if missed < 1 || after.ReplayedBatches-before.ReplayedBatches != missed || after.Resets != 0 {
			t.Errorf("missed %v: %+v, then %+v", missed, before, after)
		}
	})
}

// number is a number of the JSON of the API, which has those of 64 bits as text.
func number(v any) float64 {
	switch v := v.(type) {
	case float64:
		return v
	case string:
		n, _ := strconv.ParseFloat(v, 64)
		return n
	default:
		return 0
	}
}
