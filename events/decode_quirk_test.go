package events

import (
	"testing"

	"github.com/vmihailenco/msgpack/v5"
)

// TestQuirks has the accepted forms of wire.md section 7, by number. Frames, sequences and sources have theirs in
// frame_test.go and tracker_test.go; what the numbers mean to an index is the index's to test.
func TestQuirks(t *testing.T) {
	wrapped := func(event any) []byte { return pack(t, event) }
	pair := func(a, b int) array { return array{a, b} }
	for _, c := range []struct {
		name  string
		event any
		want  Event
	}{
		{"Quirk01 array", storeOf(nil), stored(nil)},
		{"Quirk01 map", storeWith(), stored(nil)},
		{"Quirk03 5 elements", array{"BlockStored", array{101}, nil, array{1, 2, 3, 4}, 4}, stored(nil)},
		{"Quirk03 12 elements", storeOf(map[int]any{7: "ad", 9: 2, 10: "sliding_window", 11: 128}), stored(func(e *Event) {
			e.LoraName, e.Group, e.HasGroup, e.Spec, e.Window = "ad", 2, true, SpecSlidingWindow, 128
		})},
		{"Quirk03 removed 2", array{"BlockRemoved", array{101}}, Event{Kind: Removed, Hashes: ids(101)}},
		{"Quirk03 removed 6", array{"BlockRemoved", array{101}, "CPU", 3, "mamba", 64},
			Event{Kind: Removed, Hashes: ids(101), Tier: TierHost, Group: 3, HasGroup: true, Spec: SpecMamba, Window: 64}},
		{"Quirk03 removed with other tail", array{"BlockRemoved", array{101}, nil, nil, 9, "x", array{1}},
			Event{Kind: Removed, Hashes: ids(101)}},
		{"Quirk04 adapter", storeOf(map[int]any{7: "ad"}), stored(func(e *Event) { e.LoraName = "ad" })},
		{"Quirk04 metadata", storeOf(map[int]any{7: object{"session_id", 7, "cache_salt", "s"}}),
			stored(func(e *Event) { e.Salt = "s" })},
		{"Quirk04 metadata without salt", storeOf(map[int]any{7: object{"cache_salt", nil}}), stored(nil)},
		{"Quirk04 full and swa", storeOf(map[int]any{7: array{"full", "swa"}}), stored(nil)},
		{"Quirk04 swa", storeOf(map[int]any{7: array{"swa"}}), stored(func(e *Event) { e.Spec = SpecSlidingWindow })},
		{"Quirk04 mamba", storeOf(map[int]any{7: array{"mamba"}}), stored(func(e *Event) { e.Spec = SpecMamba })},
		{"Quirk04 no components", storeOf(map[int]any{7: array{}}), stored(nil)},
		{"Quirk04 unknown component", storeOf(map[int]any{7: array{"x"}}), stored(func(e *Event) { e.Spec = SpecUnknown })},
		{"Quirk04 nil", storeOf(map[int]any{7: nil}), stored(nil)},
		{"Quirk04 one component, map", storeWith("component_type", "swa"),
			stored(func(e *Event) { e.Spec = SpecSlidingWindow })},
		{"Quirk05 least keys", object{"type", "BlockStored", "block_hashes", array{101}}, Event{Kind: Stored, Hashes: ids(101)}},
		{"Quirk05 unknown keys", object{"new", object{"a", array{1}}, "block_hashes", array{101}, "remaining_copy_counts",
			array{1}, 7, "x", "type", "BlockRemoved", "token_ids", "none of a removal's"}, Event{Kind: Removed, Hashes: ids(101)}},
		{"Quirk08 array", wrapped(array{"BlockStored", array{h0}, 0, array{}, 0, nil, "SHARED_STORAGE"}),
			Event{Kind: Stored, Hashes: ids(h0), HasParent: true, Tier: TierShared}},
		{"Quirk08 map", wrapped(storeWith()), stored(nil)},
		{"Quirk09 widths", storeOf(map[int]any{1: array{bare(t, "05"), bare(t, "cc05"), bare(t, "cd0005"), bare(t, "ce00000005"),
			bare(t, "cf0000000000000005"), bare(t, "d005"), bare(t, "d10005"), bare(t, "d200000005"),
			bare(t, "d30000000000000005")}}), stored(func(e *Event) { e.Hashes = ids(5, 5, 5, 5, 5, 5, 5, 5, 5) })},
		{"Quirk09 negative widths", storeOf(map[int]any{1: array{bare(t, "fd"), bare(t, "d0fd"), bare(t, "d1fffd"),
			bare(t, "d2fffffffd"), bare(t, "d3fffffffffffffffd"), bare(t, "cffffffffffffffffd")}}),
			stored(func(e *Event) {
				const m3 = 18446744073709551613
				e.Hashes = ids(m3, m3, m3, m3, m3, m3)
			})},
		{"Quirk09 bytes and strings", storeOf(map[int]any{1: array{[]byte{1, 2}, []byte{}, "12", bare(t, "d9023132")}}),
			stored(func(e *Event) { e.Hashes = ids(0x0102, 0, 0x3132, 0x3132) })},
		{"Quirk09 token widths", storeOf(map[int]any{3: array{bare(t, "01"), bare(t, "d200000002"), bare(t, "cc03"),
			bare(t, "d30000000000000004"), bare(t, "cf00000000ffffffff")}}),
			stored(func(e *Event) { e.Tokens = []uint32{1, 2, 3, 4, 4294967295} })},
		{"Quirk09 parent of bytes", storeOf(map[int]any{2: []byte{1, 0}}),
			stored(func(e *Event) { e.Parent, e.HasParent = HashInt(256), true })},
		{"Quirk11 hash 0", storeOf(map[int]any{1: array{0}}), stored(func(e *Event) { e.Hashes = ids(0) })},
		{"Quirk11 parent 0 is kept", storeOf(map[int]any{2: 0}), stored(func(e *Event) { e.HasParent = true })},
		{"Quirk12 pairs", storeOf(map[int]any{3: array{pair(1, 2), pair(2, 300), pair(300, 70000)}}),
			stored(func(e *Event) { e.Tokens, e.Pairs = []uint32{1, 2, 300, 70000}, true })},
		{"Quirk12 pairs with wide headers", storeOf(map[int]any{3: array{bare(t, "dc00020102"), bare(t, "dd000000020203")}}),
			stored(func(e *Event) { e.Tokens, e.Pairs = tokens(1, 3), true })},
		{"Quirk13 nil tokens", storeWith("token_ids", nil, "block_size", nil), stored(func(e *Event) { e.Tokens = nil })},
		{"Quirk13 Mooncake", object{"event_id", 1, "timestamp", 1700000000500, "event_type", "stored", "type", "BlockStored",
			"model_name", nil, "block_size", nil, "additional_salt", nil, "lora_name", nil, "tenant_id", "default",
			"backend_id", "b", "group_id", nil, "medium", "cpu", "dp_rank", nil, "object_key", "0x65", "seq_hashes", array{101},
			"block_hashes", array{101}, "base_block_idx", 0, "parent_hash", nil, "token_ids", nil, "parent_block_hash", nil},
			Event{Kind: Stored, Hashes: ids(101), Tier: TierHost}},
		{"Quirk13 Mooncake with a salt", storeWith("additional_salt", "s"), stored(func(e *Event) { e.Salt = "s" })},
		{"Quirk14 sparse", storeOf(map[int]any{3: array{1, 2, 3, 4, 5, 6, 7, 8}}),
			stored(func(e *Event) { e.Tokens = tokens(1, 8) })},
		{"Quirk14 no hashes", storeOf(map[int]any{1: array{}}), stored(func(e *Event) { e.Hashes = nil })},
		{"Quirk15 placeholder", storeOf(map[int]any{3: array{}, 4: 0, 6: "CPU"}),
			stored(func(e *Event) { e.Tokens, e.BlockSize, e.Tier = nil, 0, TierHost })},
		{"Quirk16 negative block size", storeOf(map[int]any{4: -4}), stored(func(e *Event) { e.BlockSize = -4 })},
		{"Quirk21 repeated hash", storeOf(map[int]any{1: array{101, 101}, 2: 101}),
			stored(func(e *Event) { e.Hashes, e.Parent, e.HasParent = ids(101, 101), HashInt(101), true })},
		{"Quirk22 removal with group", object{"type", "BlockRemoved", "block_hashes", array{101}, "medium", "GPU", "group_idx", 1},
			Event{Kind: Removed, Hashes: ids(101), Group: 1, HasGroup: true}},
		{"Quirk24 items", storeOf(map[int]any{8: array{array{"ad", array{"img", -3}, []byte{9}, array{[]byte("dig"), 2}, nil,
			"", 7, 1.5, true, array{"x"}, array{1, 2}, array{"x", "y"}, object{"a", 1}}}}),
			stored(func(e *Event) {
				e.Extras = [][]Extra{{{Kind: ExtraString, Text: "ad"}, {Kind: ExtraPair, Text: "img", Offset: -3},
					{Kind: ExtraBytes, Text: "\x09"}, {Kind: ExtraPair, Text: "dig", Offset: 2},
					{Kind: ExtraOther}, {Kind: ExtraOther}, {Kind: ExtraOther}, {Kind: ExtraOther}, {Kind: ExtraOther},
					{Kind: ExtraOther}, {Kind: ExtraOther}}}
			})},
		{"Quirk25 salt on block 0", storeWith("block_hashes", array{101, 102}, "extra_keys", array{array{"t-a"}, nil}),
			stored(func(e *Event) { e.Hashes, e.Extras = ids(101, 102), [][]Extra{{{Kind: ExtraString, Text: "t-a"}}, nil} })},
		{"Quirk25 salt on the event", storeWith("cache_salt", "t-a"), stored(func(e *Event) { e.Salt = "t-a" })},
		{"Quirk26 adapter by number", storeOf(map[int]any{5: 7}), stored(func(e *Event) { e.LoraID, e.HasLoraID = 7, true })},
		{"Quirk26 adapter by name", storeWith("lora_id", 0, "lora_name", "ad"),
			stored(func(e *Event) { e.LoraName, e.HasLoraID = "ad", true })},
		{"Quirk26 form e", storeOf(map[int]any{7: "ad", 8: array{array{"dynamo-cache-salt:x"}}}), stored(func(e *Event) {
			e.LoraName, e.Extras = "ad", [][]Extra{{{Kind: ExtraString, Text: "dynamo-cache-salt:x"}}}
		})},
		{"Quirk28 lower case", storeOf(map[int]any{6: "cpu"}), stored(func(e *Event) { e.Tier = TierHost })},
		{"Quirk28 absent", storeOf(map[int]any{6: nil}), stored(nil)},
		{"Quirk28 unknown is not the device", storeOf(map[int]any{6: "HOLOGRAM"}), stored(func(e *Event) { e.Tier = TierUnknown })},
		{"Quirk29 remote", storeWith("locality", "REMOTE", "medium", "GPU"),
			stored(func(e *Event) { e.Tier, e.Remote = TierShared, true })},
		{"Quirk29 unheard of", storeWith("locality", "ORBIT"), stored(func(e *Event) { e.Tier, e.Remote = TierShared, true })},
		{"Quirk29 local", storeWith("locality", "LOCAL", "medium", "CPU", "ownership", "tier-1"),
			stored(func(e *Event) { e.Tier = TierHost })},
		{"Quirk29 owned by a tier", storeWith("ownership", "tier-1"),
			stored(func(e *Event) { e.Tier, e.Remote = TierShared, true })},
		{"Quirk29 removal", object{"locality", "REMOTE", "type", "BlockRemoved", "block_hashes", array{101}, "medium", "CPU"},
			Event{Kind: Removed, Hashes: ids(101), Tier: TierShared, Remote: true}},
		{"Quirk43 removal of nothing", object{"type", "BlockRemoved", "block_hashes", array{}}, Event{Kind: Removed}},
		{"cleared with a medium", object{"type", "AllBlocksCleared", "medium", 7}, Event{Kind: Cleared}},
		{"tier cleared", object{"type", "TierBlocksCleared", "medium", "CPU"}, Event{Kind: TierCleared, Tier: TierHost}},
		{"tier cleared, array", array{"TierBlocksCleared", "DISK"}, Event{Kind: TierCleared, Tier: TierDisk}},
		{"mm_keys", storeWith("mm_keys", array{array{object{"type", "mm_key", "hash", "ab", "start_offset", 3}}}),
			stored(func(e *Event) { e.Extras = [][]Extra{{{Kind: ExtraPair, Text: "ab"}}} })},
		{"mm_keys of nothing", storeWith("mm_keys", array{array{}}), stored(nil)},
		{"mm_keys without a hash", storeWith("mm_keys", array{array{object{"type", "mm_key"}}}),
			stored(func(e *Event) { e.Extras = [][]Extra{{{Kind: ExtraOther}}} })},
		{"block_mm_infos", storeWith("block_mm_infos", array{object{"mm_objects", array{object{"mm_hash",
			uint64(18446744073709551615), "offsets", array{}}}}}),
			stored(func(e *Event) { e.Extras = [][]Extra{{{Kind: ExtraHash, Offset: -1}}} })},
		{"block_mm_infos nil", storeWith("block_mm_infos", array{nil}), stored(nil)},
		{"both kinds of keys", storeWith("extra_keys", array{array{"s"}}, "block_mm_infos",
			array{object{"mm_objects", array{object{"mm_hash", 5}}}}), stored(func(e *Event) {
			e.Extras = [][]Extra{{{Kind: ExtraString, Text: "s"}, {Kind: ExtraHash, Offset: 5}}}
		})},
	} {
		t.Run(c.name, func(t *testing.T) {
			// The event before and the one behind show that nothing beside it moves.
			b := decode(t, batchOf(t, storeOf(nil), c.event, storeWith()))
			wantEvents(t, b, []Event{stored(nil), c.want, stored(nil)})
		})
	}
}

// TestRule10_OneBadEvent: what is wrong with an event costs that event, and says why.
func TestRule10_OneBadEvent(t *testing.T) {
	for _, c := range []struct {
		name  string
		event any
		want  Reason
	}{
		{"Quirk06 unknown tag", object{"type", "BlockInactive", "block_hashes", "x"}, ReasonUnknownEvent},
		{"Quirk06 unknown tag, array", array{"BlockPinned", array{object{"a", 1}}, 1.5}, ReasonUnknownEvent},
		{"Quirk07 no list of hashes", storeOf(map[int]any{1: 101}), ReasonBadEvent},
		{"Quirk07 nil hashes", storeOf(map[int]any{1: nil}), ReasonBadEvent},
		{"Quirk07 hash of a wrong type", storeOf(map[int]any{1: array{1, 1.5}}), ReasonBadEvent},
		{"Quirk07 no hashes", object{"type", "BlockStored", "token_ids", array{1}}, ReasonBadEvent},
		{"Quirk07 no type", object{"event_type", "stored", "block_hashes", array{1}}, ReasonBadEvent},
		{"Quirk07 type is a number", object{"type", 1}, ReasonBadEvent},
		{"Quirk07 short store", array{"BlockStored", array{101}, nil, array{1}}, ReasonBadEvent},
		{"Quirk07 short removal", array{"BlockRemoved"}, ReasonBadEvent},
		{"Quirk07 empty array", array{}, ReasonBadEvent},
		{"Quirk07 no tag", array{1, 2}, ReasonBadEvent},
		{"Quirk07 nil", nil, ReasonBadEvent},
		{"Quirk07 number", 7, ReasonBadEvent},
		{"Quirk07 string", "BlockStored", ReasonBadEvent},
		{"Quirk07 ext", bare(t, "c70305010203"), ReasonBadEvent},
		{"Quirk07 parent", storeOf(map[int]any{2: true}), ReasonBadEvent},
		{"Quirk07 block size", storeOf(map[int]any{4: 4.0}), ReasonBadEvent},
		{"Quirk07 block size too wide", storeOf(map[int]any{4: uint64(1) << 63}), ReasonBadEvent},
		{"Quirk07 adapter number", storeOf(map[int]any{5: "7"}), ReasonBadEvent},
		{"Quirk07 medium", storeOf(map[int]any{6: 0}), ReasonBadEvent},
		{"Quirk07 group", storeOf(map[int]any{9: array{}}), ReasonBadEvent},
		{"Quirk07 negative group", storeOf(map[int]any{9: -1}), ReasonBadEvent},
		{"Quirk07 huge group", storeOf(map[int]any{9: 65536}), ReasonBadEvent},
		{"Quirk07 kind", storeOf(map[int]any{10: 1}), ReasonBadEvent},
		{"Quirk07 window", storeOf(map[int]any{11: "128"}), ReasonBadEvent},
		{"Quirk07 locality", storeWith("locality", 1), ReasonBadEvent},
		{"Quirk07 extra keys", storeOf(map[int]any{8: "x"}), ReasonBadEvent},
		{"Quirk07 extra keys entry", storeOf(map[int]any{8: array{"x"}}), ReasonBadEvent},
		{"Quirk08 wrapped twice", pack(t, pack(t, storeWith())), ReasonBadEvent},
		{"Quirk08 wrapped and cut", pack(t, storeWith())[:40], ReasonBadEvent},
		{"Quirk08 wrapped with more behind", append(pack(t, storeWith()), 1), ReasonBadEvent},
		{"Quirk08 wrapped nothing", []byte{}, ReasonBadEvent},
		{"Quirk08 wrapped unknown", pack(t, array{"BlockPinned"}), ReasonUnknownEvent},
		{"Quirk08 wrapped hostile", []byte("\x92\xacBlockRemoved\xdd\xff\xff\xff\xff"), ReasonBadEvent},
		{"Quirk12 pairs that do not chain", storeOf(map[int]any{3: array{array{1, 2}, array{3, 4}}}), ReasonBadPairs},
		{"Quirk12 triple", storeOf(map[int]any{3: array{array{1, 2, 3}}}), ReasonBadPairs},
		{"Quirk12 token among pairs", storeOf(map[int]any{3: array{array{1, 2}, 2}}), ReasonBadPairs},
		{"Quirk12 pair among tokens", storeOf(map[int]any{3: array{1, array{1, 2}}}), ReasonBadToken},
		{"Quirk12 pair of strings", storeOf(map[int]any{3: array{array{"1", 2}}}), ReasonBadToken},
		{"Quirk13 string", storeOf(map[int]any{3: array{1, "9f3c", 3}}), ReasonBadToken},
		{"Quirk13 nil token", storeOf(map[int]any{3: array{1, nil}}), ReasonBadToken},
		{"Quirk13 float token", storeOf(map[int]any{3: array{1, 2.0}}), ReasonBadToken},
		{"Quirk13 tokens no list", storeOf(map[int]any{3: "1234"}), ReasonBadEvent},
		{"namespace: slot 7", storeOf(map[int]any{7: 42}), ReasonBadNamespace},
		{"namespace: component", storeOf(map[int]any{7: array{"full", 1}}), ReasonBadNamespace},
		{"namespace: salt", storeWith("cache_salt", 7), ReasonBadNamespace},
		{"namespace: adapter", storeWith("lora_name", 7), ReasonBadNamespace},
		{"namespace: metadata", storeWith("metadata", "t-a"), ReasonBadNamespace},
		{"namespace: two salts", storeWith("cache_salt", "a", "metadata", object{"cache_salt", "b"}), ReasonBadNamespace},
		{"namespace: keys of which block", storeWith("extra_keys", array{array{"a"}, nil}), ReasonBadNamespace},
		{"too long a name", storeWith("lora_name", string(make([]byte, 16<<10+1))), ReasonTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := decode(t, batchOf(t, storeOf(nil), c.event, storeWith()))
			wantEvents(t, b, []Event{stored(nil), stored(nil)}, c.want)
		})
	}
}

// Quirk02 is the batch: two, three or more elements, or a map, and a time in seconds or milliseconds.
func TestQuirk02_Batches(t *testing.T) {
	list := array{storeOf(nil)}
	for _, c := range []struct {
		name    string
		payload any
		want    Batch
	}{
		{"two", array{2.5, list}, Batch{Time: 2.5}},
		{"rank nil", array{2.5, list, nil}, Batch{Time: 2.5}},
		{"rank", array{2.5, list, 3}, Batch{Time: 2.5, Rank: 3, HasRank: true}},
		{"more", array{2.5, list, 3, object{"a", array{1}}, nil, msgpack.RawMessage{0xd4, 1, 2}}, Batch{Time: 2.5, Rank: 3, HasRank: true}},
		{"whole seconds", array{1700000000, list}, Batch{Time: 1700000000}},
		{"milliseconds", array{1700000000500, list}, Batch{Time: 1700000000.5}},
		{"no time", array{nil, list}, Batch{}},
		{"time is a string", array{"now", list}, Batch{}},
		{"negative time", array{-1, list}, Batch{}},
		{"not a number", array{bare(t, "cb7ff8000000000000"), list}, Batch{}},
		{"infinite", array{bare(t, "cb7ff0000000000000"), list}, Batch{}},
		{"float32", array{bare(t, "ca40200000"), list}, Batch{Time: 2.5}},
		{"map", object{"ts", 2.5, "events", list, "data_parallel_rank", 1}, Batch{Time: 2.5, Rank: 1, HasRank: true}},
		{"map, other order", object{"data_parallel_rank", nil, "x", array{1}, "events", list, "ts", 2.5}, Batch{Time: 2.5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := decode(t, pack(t, c.payload))
			if got.Time != c.want.Time || got.Rank != c.want.Rank || got.HasRank != c.want.HasRank {
				t.Errorf("got %v %d %v, want %v %d %v", got.Time, got.Rank, got.HasRank, c.want.Time, c.want.Rank, c.want.HasRank)
			}
			wantEvents(t, got, []Event{stored(nil)})
		})
	}
}

// Quirk44: an empty batch is a heartbeat, not a fault.
func TestQuirk44_EmptyBatch(t *testing.T) {
	wantEvents(t, decode(t, batchOf(t)), nil)
}
