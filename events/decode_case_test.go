package events

import (
	"bytes"
	"errors"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The tests of this file are the cases of the catalogue of faults seen in public projects, as far as decoding goes.

func TestCase1_ArraysThenMaps(t *testing.T) {
	dec := NewDecoder(Limits{})
	var b Batch
	if err := dec.Decode(batchOf(t, array{"BlockStored", array{101}, nil, array{1, 2, 3, 4}, 4, nil, "GPU"}), &b); err != nil {
		t.Fatal(err)
	}
	wantEvents(t, b, []Event{stored(nil)})
	event := object{"block_size", 4, "nobody_knows", array{object{"a", 1}}, "token_ids", array{5, 6, 7, 8},
		"parent_block_hash", 101, "type", "BlockStored", "block_hashes", array{102}}
	if err := dec.Decode(batchOf(t, event), &b); err != nil {
		t.Fatal(err)
	}
	wantEvents(t, b, []Event{
		{Kind: Stored, Hashes: ids(102), Parent: HashInt(101), HasParent: true, Tokens: tokens(5, 8), BlockSize: 4},
	})
}

func TestCase2_IntegersOfAnyWidth(t *testing.T) {
	const wide = uint64(15760518052499183552)
	b := decode(t, batchOf(t,
		array{"BlockStored", array{wide}, nil, array{1, 2, 3, 4}, 4},
		array{"BlockStored", array{5}, wide, array{5, 6, 7, 8}, 4},
		array{"BlockStored", array{-3}, bare(t, "cd0005"), array{9, 10, 11, 12}, 4},
		array{"BlockRemoved", array{uint64(18446744073709551613)}}))
	wantEvents(t, b, []Event{
		{Kind: Stored, Hashes: ids(wide), Tokens: tokens(1, 4), BlockSize: 4},
		{Kind: Stored, Hashes: ids(5), Parent: HashInt(wide), HasParent: true, Tokens: tokens(5, 8), BlockSize: 4},
		{Kind: Stored, Hashes: ids(18446744073709551613), Parent: HashInt(5), HasParent: true, Tokens: tokens(9, 12), BlockSize: 4},
		{Kind: Removed, Hashes: ids(18446744073709551613)},
	})
}

func TestCase21_GarbageBetweenBatches(t *testing.T) {
	dec := NewDecoder(Limits{})
	var b Batch
	if err := dec.Decode(pack(t, array{1.0, array{storeOf(nil)}, 0}), &b); err != nil || len(b.Events) != 1 {
		t.Fatalf("%v, %d events", err, len(b.Events))
	}
	if err := dec.Decode([]byte{0x93, 0x01}, &b); !errors.Is(err, ErrPayload) || len(b.Events) != 0 {
		t.Fatalf("garbage: %v, %d events, want ErrPayload", err, len(b.Events))
	}
	if err := dec.Decode(pack(t, array{1.0, array{storeOf(nil)}}), &b); err != nil || len(b.Events) != 1 || b.HasRank {
		t.Fatalf("%v, %d events, rank %v", err, len(b.Events), b.HasRank)
	}
}

// The decoder hands on what cannot be divided or aligned; the index counts it.
func TestCase22_23_89_PassedOn(t *testing.T) {
	b := decode(t, batchOf(t,
		array{"BlockStored", array{101}, nil, array{}, 0, nil, "CPU"},
		array{"BlockStored", array{101}, nil, array{1, 2, 3, 4}, -4},
		array{"BlockStored", array{105}, 103, array{13, 14, 15, 16, 17, 18, 19, 20}, 4},
		array{"BlockStored", array{101}, nil, array{1, 2, 3, 4, 5}, 4}))
	wantEvents(t, b, []Event{
		{Kind: Stored, Hashes: ids(101), Tier: TierHost},
		{Kind: Stored, Hashes: ids(101), Tokens: tokens(1, 4), BlockSize: -4},
		{Kind: Stored, Hashes: ids(105), Parent: HashInt(103), HasParent: true, Tokens: tokens(13, 20), BlockSize: 4},
		{Kind: Stored, Hashes: ids(101), Tokens: tokens(1, 5), BlockSize: 4},
	})
}

func TestCase46_UnknownEventInTheMiddle(t *testing.T) {
	b := decode(t, batchOf(t, storeOf(nil),
		object{"type", "BlockPinned", "token_ids", "?", "block_hashes", object{"a", array{nil, 1.5}}},
		array{"BlockStored", array{102}, 101, array{5, 6, 7, 8}, 4}))
	wantEvents(t, b, []Event{
		stored(nil),
		{Kind: Stored, Hashes: ids(102), Parent: HashInt(101), HasParent: true, Tokens: tokens(5, 8), BlockSize: 4},
	}, ReasonUnknownEvent)
}

func TestCase47_NewTrailingFields(t *testing.T) {
	event := storeOf(map[int]any{7: nil, 8: nil, 9: 0, 10: "full_attention"})
	event = append(event, 77, object{"a", object{"b", array{1}}}, nil, bare(t, "d60502030405"))
	if len(event) != 15 {
		t.Fatalf("%d elements", len(event))
	}
	wantEvents(t, decode(t, batchOf(t, event, storeOf(nil))), []Event{
		stored(func(e *Event) { e.HasGroup, e.Spec, e.Window = true, SpecFull, 77 }), stored(nil),
	})
}

func TestCase53_Digests(t *testing.T) {
	first := append(make([]byte, 31), 1)
	second := append([]byte{0xff}, first[1:]...)
	b := decode(t, batchOf(t,
		array{"BlockStored", array{first}, nil, array{1, 2, 3, 4}, 4},
		array{"BlockStored", array{second}, first, array{5, 6, 7, 8}, 4},
		array{"BlockStored", array{7, 8}, nil, array{1, 2, 3, 4, 5, 6, 7, 8}, 4},
		array{"BlockRemoved", array{second}}))
	if len(b.Events) != 4 {
		t.Fatalf("%d events, rejects %v", len(b.Events), b.Rejects)
	}
	a, c := b.Events[0].Hashes[0], b.Events[1].Hashes[0]
	if a == c || !a.Digest() || !c.Digest() {
		t.Errorf("digests that differ in the first byte: %v and %v", a, c)
	}
	if b.Events[1].Parent != a || b.Events[3].Hashes[0] != c {
		t.Errorf("parent %v and removal %v do not name %v and %v", b.Events[1].Parent, b.Events[3].Hashes[0], a, c)
	}
	if diff := cmp.Diff(ids(7, 8), b.Events[2].Hashes); diff != "" {
		t.Error(diff)
	}
}

func TestCase54_ShortEvents(t *testing.T) {
	b := decode(t, batchOf(t,
		array{"BlockRemoved", array{101}},
		array{"BlockStored", array{101}, nil, array{1, 2, 3, 4}, 4, nil},
		array{"BlockRemoved", array{102}, 0},
		array{"BlockRemoved", array{103}}))
	wantEvents(t, b, []Event{{Kind: Removed, Hashes: ids(101)}, stored(nil), {Kind: Removed, Hashes: ids(103)}}, ReasonBadEvent)
}

func TestCase79_BatchAsMap(t *testing.T) {
	b := decode(t, pack(t, object{"ts", 1.0, "events", array{storeWith()}, "data_parallel_rank", 1}))
	wantEvents(t, b, []Event{stored(nil)})
	if b.Rank != 1 || !b.HasRank || b.Time != 1 {
		t.Errorf("rank %d %v, time %v", b.Rank, b.HasRank, b.Time)
	}
	b = decode(t, pack(t, array{2.0, array{storeWith()}, 1}))
	if b.Rank != 1 || !b.HasRank || b.Time != 2 {
		t.Errorf("rank %d %v, time %v", b.Rank, b.HasRank, b.Time)
	}
}

// A name and a salt that are spelled alike stay apart: one is LoraName, the other an untagged extra key.
func TestCase82_AdapterAndSaltAlike(t *testing.T) {
	b := decode(t, batchOf(t, storeWith("lora_name", "X", "extra_keys", array{array{"X"}})))
	wantEvents(t, b, []Event{stored(func(e *Event) {
		e.LoraName, e.Extras = "X", [][]Extra{{{Kind: ExtraString, Text: "X"}}}
	})})
}

func TestCase83_TwoSchemasForOneSlot(t *testing.T) {
	salted := stored(func(e *Event) { e.Salt = "t-a" })
	b := decode(t, batchOf(t,
		storeOf(map[int]any{7: object{"cache_salt", "t-a"}}),
		storeWith("metadata", object{"cache_salt", "t-a"}),
		storeWith("cache_salt", "t-a"),
		storeOf(map[int]any{7: 42})))
	wantEvents(t, b, []Event{salted, salted, salted}, ReasonBadNamespace)
}

func TestCase90_Bigrams(t *testing.T) {
	b := decode(t, batchOf(t,
		storeOf(map[int]any{3: array{array{1, 2}, array{2, 3}, array{3, 4}, array{4, 5}}}),
		array{"BlockStored", array{201}, nil, array{11, 12, 13, 14}, 4}))
	wantEvents(t, b, []Event{
		stored(func(e *Event) { e.Tokens, e.Pairs = tokens(1, 5), true }),
		{Kind: Stored, Hashes: ids(201), Tokens: tokens(11, 14), BlockSize: 4},
	})
}

func TestCase127_EmptyIsAbsent(t *testing.T) {
	b := decode(t, batchOf(t,
		storeWith("extra_keys", array{array{""}}), storeWith("cache_salt", ""), storeWith("lora_name", ""),
		storeOf(map[int]any{7: ""}), storeOf(map[int]any{7: object{"cache_salt", ""}}), storeWith("extra_keys", array{})))
	wantEvents(t, b, []Event{stored(nil), stored(nil), stored(nil), stored(nil), stored(nil), stored(nil)})
}

func TestCase155_NoTokenWraps(t *testing.T) {
	b := decode(t, batchOf(t,
		storeOf(map[int]any{3: array{1, -1, 3, 4}}),
		storeOf(map[int]any{3: array{1, uint64(4294967296), 3, 4}}),
		storeOf(map[int]any{3: array{1, "9f3c", 3, 4}}),
		storeOf(map[int]any{3: array{1, uint64(4294967295), 3, 4}})))
	wantEvents(t, b, []Event{stored(func(e *Event) { e.Tokens = []uint32{1, 4294967295, 3, 4} })},
		ReasonBadToken, ReasonBadToken, ReasonBadToken)
}

// TestCase88_Rule17_HostileHeaders: a length in a header costs nothing.
func TestCase88_Rule17_HostileHeaders(t *testing.T) {
	good := storeOf(nil)
	inEvent := func(before int, header string) []byte { // a store cut after some of its elements
		p := append([]byte{0x93, 0x01, 0x92}, pack(t, good)...)
		event := append([]byte{0x97}, pack(t, "BlockStored")...)
		for _, v := range good[1:before] {
			event = append(event, pack(t, v)...)
		}
		return append(append(p, event...), unhex(t, header)...)
	}
	for _, c := range []struct {
		name    string
		payload []byte
		events  int
	}{
		{"array", unhex(t, "ddffffffff"), 0},
		{"map", unhex(t, "dfffffffff"), 0},
		{"string", unhex(t, "dbffffffff"), 0},
		{"bytes", unhex(t, "c6ffffffff"), 0},
		{"ext", unhex(t, "c9ffffffff01"), 0},
		{"events", unhex(t, "9201ddffffffff"), 0},
		{"events of a map", append(unhex(t, "81a6"), "events\xdd\xff\xff\xff\xff"...), 0},
		{"event map", unhex(t, "920191dfffffffff"), 0},
		{"event bytes", unhex(t, "920191c6ffffffff"), 0},
		{"hashes", inEvent(1, "ddffffffff"), 1},
		{"hash bytes", inEvent(1, "91c6ffffffff"), 1},
		{"parent", inEvent(2, "dbffffffff"), 1},
		{"tokens", inEvent(3, "ddffffffff"), 1},
		{"pairs", inEvent(3, "91ddffffffff"), 1},
		{"medium", inEvent(6, "dbffffffff"), 1},
		{"unknown key", append(unhex(t, "920191"), "\x81\xa1x\xdf\xff\xff\xff\xff"...), 0},
		{"millions nested", append(unhex(t, "9201"), bytes.Repeat([]byte{0x91}, 4<<20)...), 0},
		{"millions nested in a field", append(append(inEvent(5, ""), bytes.Repeat([]byte{0x91}, 4<<20)...), 0xc0), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			dec := NewDecoder(Limits{})
			var b Batch
			var err error
			spent := allocated(func() { err = dec.Decode(c.payload, &b) })
			if !errors.Is(err, ErrPayload) {
				t.Errorf("error %v, want ErrPayload", err)
			}
			if len(b.Events) != c.events {
				t.Errorf("%d events before the fault, want %d", len(b.Events), c.events)
			}
			if spent > 1<<20 && len(c.payload) < 1<<20 {
				t.Errorf("%d bytes allocated", spent)
			}
		})
	}
}

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A value nested a million deep costs neither stack nor the events around it.
func TestRule17_DeepValueIsSkipped(t *testing.T) {
	deep := append(bytes.Repeat([]byte{0x91}, 1<<20), 0xc0)
	b := decode(t, batchOf(t, storeWith("new", rawOf(deep)), storeOf(map[int]any{12: rawOf(deep)}), rawOf(deep), storeOf(nil)))
	wantEvents(t, b, []Event{stored(nil), stored(nil), stored(nil)}, ReasonBadEvent)
}

func TestRule17_Limits(t *testing.T) {
	two := batchOf(t, storeOf(nil), storeWith("extra_keys", array{array{"some name", "b"}}), storeOf(nil))
	for _, c := range []struct {
		name    string
		limits  Limits
		err     error
		events  int
		rejects []Reason
	}{
		{"none", Limits{}, nil, 3, nil},
		{"payload", Limits{PayloadBytes: len(two) - 1}, ErrTooLarge, 0, nil},
		{"events", Limits{Events: 2}, ErrTooLarge, 0, nil},
		{"hashes", Limits{Hashes: 2}, nil, 2, []Reason{ReasonTooLarge}},
		{"tokens", Limits{Tokens: 9}, nil, 2, []Reason{ReasonTooLarge}},
		{"extras", Limits{Extras: 1}, nil, 2, []Reason{ReasonTooLarge}},
		{"strings", Limits{StringBytes: 8}, nil, 2, []Reason{ReasonTooLarge}},
		{"exact", Limits{len(two), 3, 3, 13, 2, 9}, nil, 3, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b Batch
			err := NewDecoder(c.limits).Decode(two, &b)
			if !errors.Is(err, c.err) || len(b.Events) != c.events {
				t.Errorf("error %v, %d events, want %v, %d", err, len(b.Events), c.err, c.events)
			}
			if diff := cmp.Diff(c.rejects, b.Rejects, asEmpty); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBadPayloads(t *testing.T) {
	whole := batchOf(t, storeOf(nil), storeWith())
	for _, c := range []struct {
		name    string
		payload []byte
		events  int
	}{
		{"empty", nil, 0},
		{"text", []byte("hello"), 0},
		{"nil", []byte{0xc0}, 0},
		{"invalid code", []byte{0xc1}, 0},
		{"array of one", pack(t, array{1.5}), 0},
		{"events is a map", pack(t, array{1.5, object{}}), 0},
		{"events is nil", pack(t, array{1.5, nil}), 0},
		{"map without events", pack(t, object{"ts", 1.5}), 0},
		{"map with events twice", pack(t, object{"events", array{storeOf(nil)}, "events", array{}}), 1},
		{"rank is a string", pack(t, array{1.5, array{storeOf(nil)}, "0"}), 1},
		{"rank too wide", pack(t, array{1.5, array{storeOf(nil)}, uint64(1) << 40}), 1},
		{"more behind", append(bytes.Clone(whole), 0xc0), 2},
		{"cut in the second event", whole[:len(whole)-8], 1},
		{"cut before the rank", whole[:len(whole)-1], 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b Batch
			if err := NewDecoder(Limits{}).Decode(c.payload, &b); !errors.Is(err, ErrPayload) {
				t.Errorf("error %v, want ErrPayload", err)
			}
			if len(b.Events) != c.events || len(b.Rejects) != 0 {
				t.Errorf("%d events and rejects %v, want %d", len(b.Events), b.Rejects, c.events)
			}
		})
	}
}

// A cut at any byte is an error, and what was whole before it was read.
func TestTruncation(t *testing.T) {
	whole := batchOf(t, storeOf(nil), storeWith("extra_keys", array{array{"a", array{"b", 1}}}), array{"BlockRemoved", array{1, -1}})
	for n := range len(whole) {
		var b Batch
		if err := NewDecoder(Limits{}).Decode(whole[:n], &b); !errors.Is(err, ErrPayload) {
			t.Errorf("cut at %d of %d: %v, want ErrPayload", n, len(whole), err)
		}
	}
}
