package main

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kvscout/kvscout/indexer/bench"
)

// benchTrace is an excerpt of the trace that bench mooncake is for.
const benchTrace = "../../indexer/workload/testdata/trace.jsonl"

// keysOfJSON are the sorted keys of an object.
func keysOfJSON(t *testing.T, v any) []string {
	t.Helper()
	object, ok := v.(map[string]any)
	if !ok {
		t.Fatalf("%v is no object", v)
	}
	return slices.Sorted(maps.Keys(object))
}

func wantKeys(t *testing.T, v any, want ...string) {
	t.Helper()
	got := keysOfJSON(t, v)
	for _, k := range want {
		if !slices.Contains(got, k) {
			t.Errorf("%q is missing among %q", k, got)
		}
	}
}

// The keys are those that scripts outside read; the numbers come from indexer/workload/testdata/reference.py.
func TestBenchPinnedJSON(t *testing.T) {
	v := okJSON(t, "bench", "pinned", "--scale", "0.002", "--json")
	wantKeys(t, v, "fill_mblocks_s", "heap_bytes_per_holder_block", "rss_bytes_per_holder_block", "resident", "cells", "counted")
	cells := v["cells"].(map[string]any)
	if got := keysOfJSON(t, cells); !slices.Equal(got, []string{"gate", "h1", "h64", "h8", "miss"}) {
		t.Errorf("cells %q", got)
	}
	for _, c := range cells {
		if got := keysOfJSON(t, c); !slices.Equal(got, []string{"depth_sum", "matched", "n", "p50_ns", "p99_ns"}) {
			t.Errorf("a cell has %q", got)
		}
	}
	h1 := cells["h1"].(map[string]any)
	if h1["depth_sum"] != 4397. || h1["matched"] != 92. || h1["n"] != 92. || v["resident"] != 31310. {
		t.Errorf("h1 %v, resident %v", h1, v["resident"])
	}
	counted := v["counted"].(map[string]any)
	if h1 := counted["cells"].(map[string]any)["h1"].(map[string]any); h1["depth_sum"] != 4463. || counted["resident"] != 31314. {
		t.Errorf("counted %v", counted)
	}
}

func TestBenchPinnedTable(t *testing.T) {
	out := ok(t, "bench", "pinned", "--scale", "0.002", "--reps", "2")
	wants(t, out, "31310 blocks held", "31314 blocks held", "P99 NS", "gate", "4397", "4463")
}

func TestBenchMooncake(t *testing.T) {
	v := okJSON(t, "bench", "mooncake", "--cap", "60", "--copies", "1", "--trace", benchTrace, "--json")
	wantKeys(t, v, "find_p50_ns", "find_p99_ns", "writes_mops_s", "heap_bytes_per_holder_block", "checksum", "final_checksum")
	out := ok(t, "bench", "mooncake", "--cap", "60", "--trace", benchTrace)
	wants(t, out, "CHECKSUM", "WRITES")
}

// A wrong answer ends the command with 1, after the report.
func TestBenchPrintsWrongAnswers(t *testing.T) {
	var out strings.Builder
	f := benchFlags{json: true, reps: 1}
	err := f.print(&out, bench.PinnedReport{}, bench.ErrWrong, nil)
	if !errors.Is(err, bench.ErrWrong) || explain(&out, err) != exitFailed {
		t.Errorf("a wrong answer is no failure: %v", err)
	}
	wants(t, out.String(), `"fill_mblocks_s"`)
}

func TestBenchMisuse(t *testing.T) {
	bad := writeFile(t, "bad.jsonl", `{"hash_ids": "secret"}`)
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{exitUsage, "unknown command", []string{"bench", "pined"}},
		{exitUsage, "2 is not in (0, 1]", []string{"bench", "pinned", "--scale", "2"}},
		{exitUsage, "reps 0", []string{"bench", "pinned", "--reps", "0"}},
		{exitUsage, "needs --trace", []string{"bench", "mooncake"}},
		{exitUsage, "capacity 0", []string{"bench", "mooncake", "--cap", "0", "--trace", benchTrace}},
		{exitUsage, "33 copies", []string{"bench", "mooncake", "--copies", "33", "--trace", benchTrace}},
		{exitFailed, "no such file", []string{"bench", "mooncake", "--trace", bad + ".none"}},
		{exitFailed, "bad trace: line 1", []string{"bench", "mooncake", "--trace", bad}},
	} {
		r := run(t, c.args...)
		if r.code != c.code || r.out != "" {
			t.Errorf("kvscout %q exits with %d, prints %q", c.args, r.code, r.out)
		}
		wants(t, r.err, c.want)
	}
}
