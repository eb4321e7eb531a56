package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// FuzzBuffered: whatever the bytes, no panic, memory in proportion to them, and no complaint about JSON that Go's own
// library takes for whole.
func FuzzBuffered(f *testing.F) {
	f.Add(bufferedOf(0, full, `"type": "created", "num_blocks_per_cache_level": [2231, 0]`))
	f.Add(bufferedOf(1, full, storedData("null", storedBlock("924206229973855", unique(1, 4), `, "mm_keys": [{"hash": "a"}], "cache_salt": "\u00e9", "lora_id": 1`), storedBlock(`"abcd"`, `[5, 6]`, ""))))
	f.Add([]byte("[" + string(bufferedOf(2, `, "attention_dp_rank": 1, "layer_group_id": 0`, `"type": "removed", "block_hashes": [1, -2, "ff"]`)) + ", {}]"))
	f.Add(bufferedOf(3, "", `"type": "updated", "block_hash": 1, "cache_level": {"old_value": 0, "new_value": 1}`))
	used := NewDecoder(Limits{})
	f.Fuzz(func(t *testing.T, payload []byte) {
		if !Buffered(payload) {
			return // FuzzDecode
		}
		var b Batch
		var err error
		spent := allocated(func() { err = NewDecoder(Limits{}).Decode(payload, &b) })
		if limit := uint64(len(payload))*128 + 1<<20; spent > limit {
			t.Errorf("%d bytes allocated for a payload of %d", spent, len(payload))
		}
		if err != nil && !errors.Is(err, ErrPayload) && !errors.Is(err, ErrTooLarge) {
			t.Errorf("error of neither kind: %v", err)
		}
		if json.Valid(payload) && err != nil {
			t.Errorf("JSON that is whole: %v", err)
		}
		for _, e := range b.Events {
			group := e
			group.Group = 0 // a window, which may be any number
			checkEvent(t, group)
			if e.Kind == Stored && len(e.Tokens) > 0 && e.BlockSize <= 0 {
				t.Errorf("%d tokens in blocks of %d", len(e.Tokens), e.BlockSize)
			}
		}
		_ = used.Decode(payload, &b)
		if used.buffered.away > maxAway || len(used.buffered.ranks) > maxBufferedRanks {
			t.Errorf("%d blocks, %d ranks remembered", used.buffered.away, len(used.buffered.ranks))
		}
		_, _, _ = ParseBufferedID(payload)
	})
}

func BenchmarkBuffered(b *testing.B) {
	var blocks []string
	for i := range 64 {
		blocks = append(blocks, storedBlock(fmt.Sprint(uint64(1)<<63+uint64(i)), unique(i*32, i*32+31), `, "mm_keys": []`))
	}
	payload := bufferedOf(1, full, storedData("null", blocks...))
	payload = []byte(strings.ReplaceAll(string(payload), " ", ""))
	d := NewDecoder(Limits{})
	var batch Batch
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	for b.Loop() {
		if err := d.Decode(payload, &batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(64*b.N)/b.Elapsed().Seconds()/1e6, "Mblocks/s")
}
