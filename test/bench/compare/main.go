// Command compare prints tables of what several indexes reached on the same workloads.
//
// In: a folder with one folder for each workload, and in it one file for each run, INDEX.NUMBER.json, in the form of
// `kvscout bench --json`; INDEX.heap.json is a run of which only the bytes of heap count. Out: Markdown tables of medians,
// and in the last line of each the ratio of kvscout to the best of the others, column by column.
//
// usage: compare DIR
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ours is the index that the others are compared with.
const ours = "kvscout"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: compare DIR")
		os.Exit(2)
	}
	if err := compare(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// column is one number of a report.
type column struct {
	title, key string
	more       bool // is better
	format     string
}

var columns = []column{
	{"fill M/s", "fill_mblocks_s", true, "%.2f"},
	{"find p50", "find_p50_ns", false, "%.0f"},
	{"find p99", "find_p99_ns", false, "%.0f"},
	{"writes M/s", "writes_mops_s", true, "%.2f"},
	{"heap B", "heap_bytes_per_holder_block", false, "%.1f"},
	{"RSS B", "rss_bytes_per_holder_block", false, "%.1f"},
	{"H=1 p50", "cells.h1.p50_ns", false, "%.0f"},
	{"p99", "cells.h1.p99_ns", false, "%.0f"},
	{"H=8 p50", "cells.h8.p50_ns", false, "%.0f"},
	{"p99", "cells.h8.p99_ns", false, "%.0f"},
	{"H=64 p50", "cells.h64.p50_ns", false, "%.0f"},
	{"p99", "cells.h64.p99_ns", false, "%.0f"},
	{"gate p50", "cells.gate.p50_ns", false, "%.0f"},
	{"p99", "cells.gate.p99_ns", false, "%.0f"},
	{"miss p50", "cells.miss.p50_ns", false, "%.0f"},
}

// runs are the values of an index by their keys, one for each run that tells it.
type runs map[string][]float64

// compare prints a table for each workload in dir.
func compare(w io.Writer, dir string) error {
	workloads, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	tables := 0
	for _, d := range workloads {
		if !d.IsDir() {
			continue
		}
		results, err := read(filepath.Join(dir, d.Name()))
		if err != nil {
			return err
		}
		if len(results) > 0 {
			tables++
			fmt.Fprintf(w, "%s\n\n%s\n", d.Name(), table(results))
		}
	}
	if tables == 0 {
		return errors.New("no results in " + dir)
	}
	return nil
}

// read reads the runs of one workload.
func read(dir string) (map[string]runs, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	out := make(map[string]runs)
	for _, path := range files {
		index, run, ok := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".json"), ".")
		if !ok {
			return nil, fmt.Errorf("%s is not INDEX.NUMBER.json", path)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var report map[string]any
		if err := json.Unmarshal(data, &report); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if out[index] == nil {
			out[index] = make(runs)
		}
		for _, c := range columns {
			if v, ok := lookup(report, c.key); ok && (run != "heap" || c.key == "heap_bytes_per_holder_block") {
				out[index][c.key] = append(out[index][c.key], v)
			}
		}
	}
	return out, nil
}

// lookup finds a number by the names that lead to it.
func lookup(v any, key string) (float64, bool) {
	for name := range strings.SplitSeq(key, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return 0, false
		}
		v = m[name]
	}
	f, ok := v.(float64)
	return f, ok
}

// median of the values; false without any.
func (r runs) median(key string) (float64, bool) {
	list := slices.Sorted(slices.Values(r[key]))
	if len(list) == 0 {
		return 0, false
	}
	return list[(len(list)-1)/2], true
}

// table is the Markdown of one workload.
func table(results map[string]runs) string {
	var used []column
	for _, c := range columns {
		if slices.ContainsFunc(slices.Collect(maps.Values(results)), func(r runs) bool { return len(r[c.key]) > 0 }) {
			used = append(used, c)
		}
	}
	var b strings.Builder
	line := func(name string, cell func(column) string) {
		b.WriteString("| " + name)
		for _, c := range used {
			b.WriteString(" | " + cell(c))
		}
		b.WriteString(" |\n")
	}
	line("", func(c column) string { return c.title })
	line("---", func(column) string { return "---" })
	for _, name := range order(results) {
		line(name, func(c column) string {
			if v, ok := results[name].median(c.key); ok {
				return fmt.Sprintf(c.format, v)
			}
			return "-"
		})
	}
	if _, ok := results[ours]; ok && len(results) > 1 {
		line(ours+" : best of the others", func(c column) string { return ratio(results, c) })
	}
	return b.String()
}

// order lists the indexes, ours last.
func order(results map[string]runs) []string {
	names := slices.Sorted(maps.Keys(results))
	if i := slices.Index(names, ours); i >= 0 {
		names = append(slices.Delete(names, i, i+1), ours)
	}
	return names
}

// ratio is ours to the best of the others.
func ratio(results map[string]runs, c column) string {
	mine, ok := results[ours].median(c.key)
	var others []float64
	for name, r := range results {
		if v, ok := r.median(c.key); ok && name != ours {
			others = append(others, v)
		}
	}
	if !ok || len(others) == 0 {
		return "-"
	}
	best := slices.Min(others)
	if c.more {
		best = slices.Max(others)
	}
	return fmt.Sprintf("%.2f", mine/best)
}
