package main

import (
	"slices"
	"testing"
)

func TestBenchWide(t *testing.T) {
	v := okJSON(t, "bench", "wide", "--json")
	if got := keysOfJSON(t, v); !slices.Equal(got, []string{"cells", "heap_bytes_per_extra_holder", "heap_bytes_per_tail_block", "holders"}) {
		t.Errorf("keys %q", got)
	}
	cells := v["cells"].(map[string]any)
	if got := keysOfJSON(t, cells); !slices.Equal(got, []string{"shared", "shared_match", "tail", "tail_match"}) {
		t.Errorf("cells %q", got)
	}
	if c := cells["shared"].(map[string]any); c["matched"] != 2000*2048. || v["holders"] != 2048. {
		t.Errorf("%v", v)
	}
	wants(t, ok(t, "bench", "wide", "--own-hashes"), "2048 holders", "P99 NS", "tail_match")
}

func TestBenchBeside(t *testing.T) {
	v := okJSON(t, "bench", "beside", "--scale", "0.002", "--reps", "1", "--json")
	if got := keysOfJSON(t, v); !slices.Equal(got, []string{"busy", "idle", "p50_ratio", "writes_mblocks_s"}) {
		t.Errorf("keys %q", got)
	}
	wants(t, ok(t, "bench", "beside", "--scale", "0.002", "--reps", "2"), "busy p50 : idle p50", "idle", "busy")
}

func TestBenchGC(t *testing.T) {
	v := okJSON(t, "bench", "gc", "--scale", "0.002", "--reps", "2", "--json")
	if got := keysOfJSON(t, v); !slices.Equal(got, []string{"forced", "heap_bytes", "holder_blocks", "natural"}) {
		t.Errorf("keys %q", got)
	}
	if n := v["holder_blocks"]; n != 31310. { // that of bench pinned
		t.Errorf("%v blocks", n)
	}
	wants(t, ok(t, "bench", "gc", "--scale", "0.002", "--reps", "2"), "31310 blocks of holders", "forced", "natural", "PAUSE MAX NS")
}
