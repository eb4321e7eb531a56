package events

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vmihailenco/msgpack/v5"
)

// asEmpty takes nil and empty slices for equal.
var asEmpty = cmpopts.EquateEmpty()

// array and object build payloads; object is key, value, key, value, in the order given.
type (
	array  = []any
	object []any
)

func (o object) EncodeMsgpack(enc *msgpack.Encoder) error {
	if err := enc.EncodeMapLen(len(o) / 2); err != nil {
		return err
	}
	for _, v := range o {
		if err := enc.Encode(v); err != nil {
			return err
		}
	}
	return nil
}

// bare is msgpack written by hand, in hexadecimal.
func bare(tb testing.TB, s string) msgpack.RawMessage { return unhex(tb, s) }

// pack encodes v with the library's own encoder, integers as small as they go.
func pack(tb testing.TB, v any) []byte {
	tb.Helper()
	var out bytes.Buffer
	enc := msgpack.NewEncoder(&out)
	enc.UseCompactInts(true)
	if err := enc.Encode(v); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// batchOf is [1.5, events, 0].
func batchOf(tb testing.TB, events ...any) []byte {
	return pack(tb, array{1.5, append(array{}, events...), 0})
}

func decode(tb testing.TB, payload []byte) Batch {
	tb.Helper()
	var b Batch
	if err := NewDecoder(Limits{}).Decode(payload, &b); err != nil {
		tb.Fatalf("%x: %v", payload, err)
	}
	return b
}

// storeOf is a store of block 101 on tokens 1..4 as an array, with the slots given changed or added.
func storeOf(slots map[int]any) array {
	e := array{"BlockStored", array{101}, nil, array{1, 2, 3, 4}, 4, nil, "GPU"}
	for i := range 16 {
		v, ok := slots[i]
		switch {
		case ok && i < len(e):
			e[i] = v
		case ok:
			for len(e) < i {
				e = append(e, nil)
			}
			e = append(e, v)
		}
	}
	return e
}

// storeWith is the same store as a map, with fields added behind.
func storeWith(fields ...any) object {
	return append(object{"type", "BlockStored", "block_hashes", array{101}, "parent_block_hash", nil,
		"token_ids", array{1, 2, 3, 4}, "block_size", 4}, fields...)
}

// stored is what both decode to, as changed by edit.
func stored(edit func(*Event)) Event {
	e := Event{Kind: Stored, Hashes: ids(101), Tokens: tokens(1, 4), BlockSize: 4}
	if edit != nil {
		edit(&e)
	}
	return e
}

// ids are integer block ids.
func ids(vs ...uint64) []Hash {
	out := make([]Hash, len(vs))
	for i, v := range vs {
		out[i] = Hash{Lo: v}
	}
	return out
}

// tokens counts from first to last.
func tokens(first, last uint32) []uint32 {
	var out []uint32
	for t := first; t <= last; t++ {
		out = append(out, t)
	}
	return out
}

// wantEvents holds the events and rejects of b against what they should be.
func wantEvents(t *testing.T, b Batch, events []Event, rejects ...Reason) {
	t.Helper()
	if diff := cmp.Diff(events, b.Events, asEmpty); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(rejects, b.Rejects, asEmpty); diff != "" {
		t.Errorf("rejects (-want +got):\n%s", diff)
	}
}

// rawOf puts b into a payload as it is.
func rawOf(b []byte) msgpack.RawMessage { return b }
