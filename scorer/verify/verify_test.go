package verify

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/kvscout/kvscout/events/recording"
	"github.com/kvscout/kvscout/indexer"
)

const recordings = "../../test/testdata/recordings"

// What the engines' own numbers say of the recordings, by name. Requests is how many each holds. A bound is for what
// the stream hides: SGLang's extra_key in the default hash format, evictions of sliding windows, recurrent states, and
// what vllm-0.32-base held before it was joined. Of the bounds, over is how many lie above the engine's number.
var recorded = map[string]struct{ requests, bounds, over int }{
	"sglang-0.5.19-radix_p16":                      {100, 0, 0},
	"sglang-0.5.19-radix_p16_salt":                 {100, 0, 0},
	"sglang-0.5.23-dp2_unified_rust_p16":           {80, 0, 0},
	"sglang-0.5.23-hicache_rust_write_back_p16":    {150, 0, 0},
	"sglang-0.5.23-hicache_rust_write_through_p16": {150, 0, 0},
	"sglang-0.5.23-radix_p1":                       {150, 0, 0},
	"sglang-0.5.23-radix_p16":                      {150, 0, 0},
	"sglang-0.5.23-radix_p64":                      {150, 0, 0},
	"sglang-0.5.23-replay":                         {22, 0, 0},
	"sglang-0.5.23-unified_rust_mamba_p1":          {120, 120, 61},
	"sglang-0.5.23-unified_rust_p16_eagle":         {60, 0, 0},
	"sglang-0.5.23-unified_rust_p16_lora":          {150, 0, 0},
	"sglang-0.5.23-unified_rust_p16_ns":            {150, 150, 14},
	"sglang-0.5.23-unified_rust_p16_ns_dynamo":     {150, 0, 0},
	"sglang-0.5.23-unified_rust_p16_session":       {80, 0, 0},
	"sglang-0.5.23-unified_rust_swa_p16":           {150, 150, 35},
	"sglang-0.5.9-radix_p1":                        {100, 0, 0},
	"sglang-0.5.9-radix_p16":                       {100, 0, 0},
	"vllm-0.20-arrays":                             {158, 0, 0},
	"vllm-0.32-base":                               {221, 2, 0},
	"vllm-0.32-dp2-restart":                        {105, 0, 0},
	"vllm-0.32-eagle":                              {90, 0, 0},
	"vllm-0.32-hybrid-swa":                         {120, 0, 0},
	"vllm-0.32-multimodal":                         {75, 0, 0},
	"vllm-0.32-reuse-reports":                      {100, 0, 0},
	"vllm-0.32-sha256-bytes":                       {64, 0, 0},
}

// The central test: what we call exact equals what the engine reported, on every recorded request; what we call a bound
// is never under it.
func TestRule13_EveryRecordedRequest(t *testing.T) {
	var exact, bounds, equalBounds int
	for name, want := range recorded {
		t.Run(name, func(t *testing.T) {
			got, err := File(context.Background(), filepath.Join(recordings, name+".kvrec"), Options{Observe: func(p Prediction) {
				if p.Wrong {
					t.Errorf("request %d of %s: predicted %d and %d from the host, reported %d and %d, bound %v",
						p.Index, p.Source, p.Predicted, p.HostPredicted, p.Reported, p.HostReported, p.Bound.Reasons())
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			if got.Requests != want.requests || got.Bounds != want.bounds || got.Over != want.over || got.Under != 0 || got.Wrong != 0 || got.Torn {
				t.Errorf("got %+v, want %+v and nothing wrong", got, want)
			}
			exact += got.Requests - got.Bounds
			bounds += got.Bounds
			equalBounds += got.Bounds - got.Over
		})
	}
	if exact != 2623 || bounds != 422 || equalBounds != 312 {
		t.Errorf("%d exact, %d bounds of which %d equal; want 2623, 422, 312", exact, bounds, equalBounds)
	}
}

// No recording may be left out of the table above.
func TestRecordings_AllKnown(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(recordings, "*.kvrec"))
	if err != nil || len(files) != len(recorded) {
		t.Fatalf("%d recordings (%v), want %d", len(files), err, len(recorded))
	}
	for _, f := range files {
		name := filepath.Base(f)
		if _, ok := recorded[name[:len(name)-len(".kvrec")]]; !ok {
			t.Errorf("%s is not in the table", name)
		}
	}
}

// rewrite copies a recording, letting change alter each record; a false result leaves it out.
func rewrite(t *testing.T, name string, change func(n int, r *recording.Record) bool) string {
	t.Helper()
	src, err := recording.Open(filepath.Join(recordings, name+".kvrec"))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	path := filepath.Join(t.TempDir(), "changed.kvrec")
	dst, err := recording.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		r, err := src.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !change(n, r) {
			continue
		}
		if err := dst.Write(r); err != nil {
			t.Fatal(err)
		}
		if n%20 == 0 {
			if err := dst.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := dst.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// The verifier must be able to fail: numbers that no engine reported are wrong.
func TestFile_FalsifiedNumbersAreWrong(t *testing.T) {
	tests := []struct {
		name, recording string
		change          func(r *recording.Request)
		wrong           int
	}{
		{"exact, one block more", "vllm-0.32-dp2-restart", func(r *recording.Request) { r.CachedTokens += 32 }, 105},
		{"exact, one token more", "sglang-0.5.23-radix_p1", func(r *recording.Request) { r.CachedTokens++ }, 150},
		{"upper bound, more than it", "sglang-0.5.23-unified_rust_swa_p16", func(r *recording.Request) { r.CachedTokens = r.PromptTokens + 1 }, 150},
		{"upper bound, less than it", "sglang-0.5.23-unified_rust_swa_p16", func(r *recording.Request) { r.CachedTokens = 0 }, 0},
		{"host, one page more", "sglang-0.5.23-hicache_rust_write_back_p16", func(r *recording.Request) { r.HostCachedTokens += 16 }, 150},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := rewrite(t, tt.recording, func(_ int, r *recording.Record) bool {
				if r.Request != nil {
					tt.change(r.Request)
				}
				return true
			})
			got, err := File(context.Background(), path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got.Wrong != tt.wrong {
				t.Errorf("%d wrong, want %d: %+v", got.Wrong, tt.wrong, got)
			}
		})
	}
}

// Batches that are lost and cannot be fetched again leave no exact answer until the engine clears its cache, and no
// bound that does not hold (rule 11, cases 9 and 32).
func TestRule11_LostBatches(t *testing.T) {
	for _, keep := range []bool{false, true} {
		lost := 0
		path := rewrite(t, "vllm-0.32-hybrid-swa", func(n int, r *recording.Record) bool {
			if r.Kind == recording.KindMessage && n%50 == 7 {
				lost++
				return false
			}
			return true
		})
		exact := 0
		got, err := File(context.Background(), path, Options{
			Index:   indexer.Options{KeepOnGap: keep},
			Observe: func(p Prediction) { exact += btoi(p.Bound.Kind == indexer.Exact) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if lost == 0 || got.Wrong != 0 || exact == got.Requests {
			t.Errorf("keep %v: %d lost, %d exact of %+v", keep, lost, exact, got)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestFile_Errors(t *testing.T) {
	if _, err := File(context.Background(), filepath.Join(t.TempDir(), "absent"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
	none := rewrite(t, "vllm-0.32-base", func(_ int, r *recording.Record) bool { return r.Request == nil })
	if _, err := File(context.Background(), none, Options{}); err == nil {
		t.Error("a recording without requests proves nothing and was accepted")
	}
	stranger := rewrite(t, "vllm-0.32-base", func(_ int, r *recording.Record) bool { return r.Info == nil })
	if _, err := File(context.Background(), stranger, Options{}); !errors.Is(err, ErrUnknownSource) {
		t.Errorf("source not described: %v", err)
	}
}

// Requests that stand behind messages which came after them would look like restarts: the file is refused.
func TestFile_OutOfOrder(t *testing.T) {
	var late *recording.Record
	path := rewrite(t, "vllm-0.32-dp2-restart", func(n int, r *recording.Record) bool {
		if late == nil && r.Kind == recording.KindRequest && len(r.Request.After) > 0 {
			moved := *r
			late = &moved
			return false
		}
		if n == 100 { // whatever stands here, the request that was sent long before takes its place
			*r = *late
		}
		return true
	})
	if _, err := File(context.Background(), path, Options{}); !errors.Is(err, ErrOrder) {
		t.Errorf("got %v", err)
	}
}

// A torn end costs only the end.
func TestFile_Torn(t *testing.T) {
	whole := rewrite(t, "vllm-0.32-base", func(int, *recording.Record) bool { return true })
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "torn.kvrec")
	if err := os.WriteFile(path, data[:len(data)-100], 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := File(context.Background(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !got.Torn || got.Requests < 200 || got.Wrong != 0 {
		t.Errorf("got %+v", got)
	}
}
