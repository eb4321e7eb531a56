package events

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// frame is what testdata/frames/make.py says a payload means.
type frame struct {
	Time   float64
	Rank   *int
	Events []frameEvent
}

type frameEvent struct {
	Type      string
	Hashes    []string
	Parent    string
	Tokens    []uint32
	Pairs     bool
	BlockSize int `json:"block_size"`
	Medium    string
	LoraID    *int64 `json:"lora_id"`
	LoraName  string `json:"lora_name"`
	CacheSalt string `json:"cache_salt"`
	Extras    [][][3]any
	Group     *int
	SpecKind  string `json:"kv_cache_spec_kind"`
	Window    int    `json:"kv_cache_spec_sliding_window"`
}

// TestRecordedFrames reads payloads of real engines and compares them with what Python's msgpack reads.
func TestRecordedFrames(t *testing.T) {
	files, err := filepath.Glob("testdata/frames/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no frames: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			payloads := readPayloads(t, file)
			raw, err := os.ReadFile(strings.TrimSuffix(file, ".txt") + ".json")
			if err != nil {
				t.Fatal(err)
			}
			var frames []frame
			if err := json.Unmarshal(raw, &frames); err != nil {
				t.Fatal(err)
			}
			if len(frames) != len(payloads) {
				t.Fatalf("%d payloads, %d meanings", len(payloads), len(frames))
			}
			dec := NewDecoder(Limits{})
			var b Batch
			for i, payload := range payloads {
				if err := dec.Decode(payload, &b); err != nil {
					t.Fatalf("payload %d: %v", i, err)
				}
				if diff := cmp.Diff(frames[i].batch(t), b, asEmpty); diff != "" {
					t.Errorf("payload %d, Python (-) and we (+) differ:\n%s", i, diff)
				}
			}
		})
	}
}

func readPayloads(tb testing.TB, file string) [][]byte {
	tb.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	var out [][]byte
	for line := range bytes.Lines(text) {
		payload, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(line)))
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, payload)
	}
	return out
}

func (f frame) batch(t *testing.T) Batch {
	t.Helper()
	b := Batch{Time: f.Time}
	if f.Rank != nil {
		b.Rank, b.HasRank = *f.Rank, true
	}
	for _, e := range f.Events {
		b.Events = append(b.Events, e.event(t))
	}
	return b
}

func (f frameEvent) event(t *testing.T) Event {
	t.Helper()
	e := Event{
		Kind:   map[string]Kind{"BlockStored": Stored, "BlockRemoved": Removed, "AllBlocksCleared": Cleared}[f.Type],
		Tokens: f.Tokens, Pairs: f.Pairs, BlockSize: f.BlockSize,
		Tier:     map[string]Tier{"": TierDevice, "GPU": TierDevice, "CPU_PINNED": TierHost}[f.Medium],
		LoraName: f.LoraName, Salt: f.CacheSalt, Window: f.Window,
		Spec: map[string]SpecKind{
			"": SpecUnset, "full_attention": SpecFull, "sliding_window": SpecSlidingWindow,
		}[f.SpecKind],
	}
	for _, h := range f.Hashes {
		e.Hashes = append(e.Hashes, frameHash(t, h))
	}
	if f.Parent != "" {
		e.Parent, e.HasParent = frameHash(t, f.Parent), true
	}
	if f.LoraID != nil {
		e.LoraID, e.HasLoraID = *f.LoraID, true
	}
	if f.Group != nil {
		e.Group, e.HasGroup = *f.Group, true
	}
	for _, row := range f.Extras {
		var out []Extra
		for _, item := range row {
			x := Extra{
				Kind: map[any]ExtraKind{"string": ExtraString, "pair": ExtraPair, "bytes": ExtraBytes}[item[0]],
				Text: item[1].(string), Offset: int64(item[2].(float64)),
			}
			if x.Kind == ExtraBytes {
				x.Text = string(unhex(t, x.Text))
			}
			out = append(out, x)
		}
		e.Extras = append(e.Extras, out)
	}
	return e
}

// frameHash reads 32 bytes in hexadecimal, or an integer in decimal.
func frameHash(t *testing.T, s string) Hash {
	t.Helper()
	if len(s) == 64 {
		return HashBytes(unhex(t, s))
	}
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return HashInt(v)
}

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}
