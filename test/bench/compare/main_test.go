package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTablesOfMediansAndRatios(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "pinned/a.1.json", `{"fill_mblocks_s": 2, "heap_bytes_per_holder_block": null, "cells": {"h1": {"p50_ns": 1000}}}`)
	write(t, dir, "pinned/a.2.json", `{"fill_mblocks_s": 4, "heap_bytes_per_holder_block": null, "cells": {"h1": {"p50_ns": 900}}}`)
	write(t, dir, "pinned/a.3.json", `{"fill_mblocks_s": 3, "heap_bytes_per_holder_block": null, "cells": {"h1": {"p50_ns": 1200}}}`)
	write(t, dir, "pinned/a.heap.json", `{"fill_mblocks_s": 0.1, "heap_bytes_per_holder_block": 32.5, "cells": {"h1": {"p50_ns": 9000}}}`)
	write(t, dir, "pinned/b.1.json", `{"fill_mblocks_s": 1, "cells": {"h1": {"p50_ns": 800}}}`)
	write(t, dir, "pinned/kvscout.1.json", `{"fill_mblocks_s": 6, "heap_bytes_per_holder_block": 13, "cells": {"h1": {"p50_ns": 600}}}`)
	write(t, dir, "mooncake/a.1.json", `{"find_p50_ns": 10}`)
	var out strings.Builder
	if err := compare(&out, dir); err != nil {
		t.Fatal(err)
	}
	want := `mooncake

|  | find p50 |
| --- | --- |
| a | 10 |

pinned

|  | fill M/s | heap B | H=1 p50 |
| --- | --- | --- | --- |
| a | 3.00 | 32.5 | 1000 |
| b | 1.00 | - | 800 |
| kvscout | 6.00 | 13.0 | 600 |
| kvscout : best of the others | 2.00 | 0.40 | 0.75 |

`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("tables (-want +got):\n%s", diff)
	}
}

func TestBadResultsAreErrors(t *testing.T) {
	for _, name := range []string{"pinned/a.json", "pinned/a.1.json"} {
		dir := t.TempDir()
		write(t, dir, name, "hello")
		if err := compare(&strings.Builder{}, dir); err == nil {
			t.Errorf("%s passes", name)
		}
	}
	if err := compare(&strings.Builder{}, t.TempDir()); err == nil {
		t.Error("an empty folder passes")
	}
}
