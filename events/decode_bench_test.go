package events

import (
	"bytes"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
)

// benchPayload is the batch that golibs.md section 5 measures decoders with: one store of 64 hashes and 1024 tokens.
func benchPayload(tb testing.TB, asMap bool) []byte {
	hashes, list := make(array, 64), make(array, 1024)
	for i := range hashes {
		hashes[i] = uint64(0x9e3779b97f4a7c15) * uint64(i+1)
	}
	for i := range list {
		list[i] = 151643*i%150000 + 1
	}
	if !asMap {
		return batchOf(tb, array{"BlockStored", hashes, uint64(1) << 63, list, 16, nil, "GPU", "adapter", nil, 0, "full_attention", nil})
	}
	return batchOf(tb, object{"type", "BlockStored", "block_hashes", hashes, "parent_block_hash", uint64(1) << 63,
		"token_ids", list, "block_size", 16, "lora_id", nil, "medium", "GPU", "lora_name", "adapter", "group_idx", 0,
		"kv_cache_spec_kind", "full_attention"})
}

func BenchmarkDecode(b *testing.B) {
	small := storeWith("parent_block_hash", 7, "medium", "GPU", "group_idx", 0, "extra_keys", array{array{"a", array{"img", 3}}})
	for _, c := range []struct {
		name    string
		payload []byte
	}{
		{"array64", benchPayload(b, false)},
		{"map64", benchPayload(b, true)},
		{"map1x8", batchOf(b, small, small, small, small, small, small, small, small)},
	} {
		b.Run(c.name, func(b *testing.B) {
			dec := NewDecoder(Limits{})
			var batch Batch
			b.SetBytes(int64(len(c.payload)))
			b.ReportAllocs()
			for b.Loop() {
				if err := dec.Decode(c.payload, &batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDecodeLibrary reads the token list alone by the library's calls, to compare.
func BenchmarkDecodeLibrary(b *testing.B) {
	list := make(array, 1024)
	for i := range list {
		list[i] = 151643*i%150000 + 1
	}
	payload := pack(b, list)
	var src bytes.Reader
	dec := msgpack.NewDecoder(&src)
	b.ReportAllocs()
	for b.Loop() {
		src.Reset(payload)
		n, err := dec.DecodeArrayLen()
		if err != nil {
			b.Fatal(err)
		}
		for range n {
			if _, err := dec.DecodeUint32(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// A steady stream allocates nothing, names and all.
func TestDecodeAllocations(t *testing.T) {
	for _, payload := range [][]byte{
		benchPayload(t, false), benchPayload(t, true),
		batchOf(t, storeWith("cache_salt", "t-a", "extra_keys", array{array{"ad", array{"img", 3}, []byte{1}}}),
			object{"type", "BlockRemoved", "block_hashes", array{bytes.Repeat([]byte{7}, 32)}, "medium", "CPU_PINNED"},
			array{"BlockPinned"}),
	} {
		dec := NewDecoder(Limits{})
		var b Batch
		got := testing.AllocsPerRun(100, func() {
			if err := dec.Decode(payload, &b); err != nil {
				t.Fatal(err)
			}
		})
		if got > 0 {
			t.Errorf("%v allocations for %d events", got, len(b.Events))
		}
	}
}

// What one large payload needed is given back.
func TestRule17_BuffersShrink(t *testing.T) {
	many := make(array, keepTokens+1)
	for i := range many {
		many[i] = i
	}
	dec := NewDecoder(Limits{})
	var b Batch
	for _, payload := range [][]byte{batchOf(t, storeWith("token_ids", many, "block_hashes", many)), batchOf(t, storeOf(nil))} {
		if err := dec.Decode(payload, &b); err != nil || len(b.Events) != 1 {
			t.Fatalf("%v, %d events", err, len(b.Events))
		}
	}
	if cap(dec.tokens) > keepTokens || cap(dec.hashes) > keepHashes {
		t.Errorf("kept room for %d tokens, %d hashes", cap(dec.tokens), cap(dec.hashes))
	}
}

// The names remembered are bounded, however many go by.
func TestRule17_NamesAreBounded(t *testing.T) {
	dec := NewDecoder(Limits{})
	var b Batch
	for i := range 3 * keepNames {
		if err := dec.Decode(batchOf(t, storeWith("cache_salt", string(rune('a'+i%26))+string(rune(0x4e00+i)))), &b); err != nil {
			t.Fatal(err)
		}
		if len(dec.names) > keepNames {
			t.Fatalf("%d names kept", len(dec.names))
		}
	}
}
