package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events/recording"
)

// records reads a whole recording.
func records(t *testing.T, path string) []*recording.Record {
	t.Helper()
	r, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []*recording.Record
	for {
		rec, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rec)
	}
}

// record writes a recording and returns its path.
func record(t *testing.T, name string, list []*recording.Record) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	w, err := recording.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range list {
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// requests counts what the engines themselves ran.
func requests(list []*recording.Record) (n int) {
	for _, rec := range list {
		if rec.Kind == recording.KindRequest {
			n++
		}
	}
	return n
}

func TestVerifyJSON(t *testing.T) {
	dir := t.TempDir()
	var want []string
	total := 0
	for _, name := range []string{"sglang-0.5.23-radix_p16.kvrec", "vllm-0.32-base.kvrec"} {
		data, err := os.ReadFile(filepath.Join(recordings, name))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		want = append(want, path)
		total += requests(records(t, path))
	}
	v := okJSON(t, "verify", "--json", dir)
	if diff := cmp.Diff([]string{"files", "requests", "wrong"}, keys(v)); diff != "" {
		t.Error(diff)
	}
	if v["requests"] != float64(total) || v["wrong"] != 0.0 {
		t.Errorf("%v requests, %v wrong", v["requests"], v["wrong"])
	}
	var files []string
	for _, f := range v["files"].([]any) {
		report := f.(map[string]any)
		files = append(files, report["file"].(string))
		fields := []string{"bounds", "equal", "file", "over", "requests", "seconds", "under", "wrong"}
		if diff := cmp.Diff(fields, keys(report)); diff != "" {
			t.Error(diff)
		}
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Error(diff)
	}
}

func keys(m map[string]any) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func TestVerifyTable(t *testing.T) {
	out := ok(t, "verify", filepath.Join(recordings, "vllm-0.32-base.kvrec"), filepath.Join(recordings, "vllm-0.20-arrays.kvrec"))
	wants(t, out, "FILE", "REQUESTS", "WRONG", "vllm-0.32-base.kvrec", "vllm-0.20-arrays.kvrec", "total")
}

// An engine that reports another number than an exact prediction makes the command fail.
func TestVerifyTellsWrongAnswers(t *testing.T) {
	list := records(t, filepath.Join(recordings, "sglang-0.5.23-radix_p16.kvrec"))
	falsified := 0
	for _, rec := range list {
		if rec.Kind == recording.KindRequest && rec.Request.CachedTokens > 0 && falsified < 2 {
			rec.Request.CachedTokens -= 16
			falsified++
		}
	}
	path := record(t, "false.kvrec", list)
	r := run(t, "verify", "--json", "--verbose", path)
	if r.code != exitFailed {
		t.Errorf("exits with %d", r.code)
	}
	v := parseJSON(t, r.out)
	if v["wrong"] != 2.0 || v["files"].([]any)[0].(map[string]any)["over"] != 2.0 {
		t.Errorf("got %s", r.out)
	}
	wants(t, r.err, "wrong: 2 of", "the engine reported")
	if n := strings.Count(r.err, "predicted"); n != 2 {
		t.Errorf("%d predictions are told:\n%s", n, r.err)
	}
}

// A record that cannot be read is told and makes the recording incomplete.
func TestVerifyTellsBadRecords(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(recordings, "vllm-0.32-base.kvrec"))
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)*6/10] ^= 0xff // costs the frame around it
	path := writeFile(t, "bad.kvrec", string(data))
	r := run(t, "verify", path)
	if r.code != exitFailed {
		t.Errorf("exits with %d", r.code)
	}
	wants(t, r.err, "1 places could not be read", "incomplete")
}

func TestCase121_TornRecordings(t *testing.T) {
	list := records(t, filepath.Join(recordings, "sglang-0.5.23-radix_p16.kvrec"))
	half := list[:len(list)/2]
	path := filepath.Join(t.TempDir(), "two.kvrec")
	w, err := recording.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var whole int64 // bytes of the first half
	for i, rec := range list {
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
		if i != len(half)-1 {
			continue
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		whole = info.Size()
	}
	if err := errors.Join(w.Close(), os.Truncate(path, whole+100)); err != nil { // within the next frame
		t.Fatal(err)
	}

	r := run(t, "verify", "--json", path)
	if r.code != exitFailed {
		t.Errorf("verify exits with %d", r.code)
	}
	wants(t, r.err, "incomplete", "its end is missing")
	if v := parseJSON(t, r.out); v["requests"] != float64(requests(half)) || v["wrong"] != 0.0 {
		t.Errorf("of the part that is whole: %s", r.out)
	}

	r = run(t, "replay", path)
	if r.code != exitFailed {
		t.Errorf("replay exits with %d", r.code)
	}
	wants(t, r.err, "recording is cut off", "incomplete")
	wants(t, r.out, "batches applied")

	out := filepath.Join(t.TempDir(), "c.kvrec")
	r = run(t, "record", "convert", path, "-o", out)
	if r.code != exitFailed {
		t.Errorf("convert exits with %d", r.code)
	}
	wants(t, r.err, "incomplete")
	if got := len(records(t, out)); got != len(half) {
		t.Errorf("%d records were converted, want %d", got, len(half))
	}
}
