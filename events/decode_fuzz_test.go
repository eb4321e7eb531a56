package events

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzDecode: whatever the bytes, no panic, memory in proportion to them, and the same result from a new decoder and
// from one that has read other payloads.
func FuzzDecode(f *testing.F) {
	for _, v := range vectors {
		f.Add(unhex(f, v.payload))
	}
	files, err := filepath.Glob("testdata/frames/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatalf("no frames: %v", err)
	}
	for _, file := range files {
		for _, payload := range readPayloads(f, file) {
			f.Add(payload)
		}
	}
	f.Add(batchOf(f, storeWith("metadata", object{"cache_salt", "a"}, "mm_keys", array{array{object{"hash", "ab"}}},
		"block_mm_infos", array{object{"mm_objects", array{object{"mm_hash", 1}}}}, "locality", "REMOTE"),
		pack(f, storeOf(map[int]any{7: array{"swa"}}))))
	used := NewDecoder(Limits{})
	f.Fuzz(func(t *testing.T, payload []byte) {
		var first, again Batch
		var err1 error
		spent := allocated(func() { err1 = NewDecoder(Limits{}).Decode(payload, &first) })
		// The costliest byte is a nil entry of extra_keys (24) beside events of 15 bytes (264); errors and the
		// fuzzing engine's own goroutines take the constant.
		if limit := uint64(len(payload))*128 + 1<<20; spent > limit {
			t.Errorf("%d bytes allocated for a payload of %d", spent, len(payload))
		}
		err2 := used.Decode(payload, &again)
		if (err1 == nil) != (err2 == nil) || err1 != nil && err1.Error() != err2.Error() {
			t.Fatalf("a new decoder says %v, a used one %v", err1, err2)
		}
		if err1 != nil && !errors.Is(err1, ErrPayload) && !errors.Is(err1, ErrTooLarge) {
			t.Errorf("error of neither kind: %v", err1)
		}
		if Buffered(payload) {
			return // what these mean depends on those before: FuzzBuffered
		}
		if diff := cmp.Diff(first, again, asEmpty); diff != "" {
			t.Errorf("a new decoder (-) and a used one (+) differ:\n%s", diff)
		}
		for _, e := range first.Events {
			checkEvent(t, e)
		}
	})
}

// checkEvent holds e against what Event promises to those who index it.
func checkEvent(t *testing.T, e Event) {
	t.Helper()
	switch {
	case e.Kind < Stored || e.Kind > TierCleared:
		t.Errorf("kind %d", e.Kind)
	case e.Extras != nil && len(e.Extras) != len(e.Hashes):
		t.Errorf("extras of %d blocks, %d hashes", len(e.Extras), len(e.Hashes))
	case e.Pairs && len(e.Tokens) < 2:
		t.Errorf("pairs of %d tokens", len(e.Tokens))
	case e.Remote && e.Tier != TierShared:
		t.Errorf("remote copy in tier %v", e.Tier)
	case e.Group < 0 || e.Group > maxGroup || e.Window < 0:
		t.Errorf("group %d, window %d", e.Group, e.Window)
	case e.Kind == Cleared && cmp.Diff(Event{Kind: Cleared}, e) != "":
		t.Errorf("fields of a clear: %+v", e)
	}
}
