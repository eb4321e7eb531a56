package events

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The values that wire.md gives for its example payloads.
const (
	h0 = uint64(2164874634404590027)
	h1 = uint64(17270480062156288726)
	// SGLang and TensorRT-LLM send signed integers; these are their 64 bits.
	g0 = ^uint64(3488128144981237669) + 1
	g1 = uint64(5674439469042975057)
	t0 = ^uint64(3008348362083223407) + 1
	t1 = ^uint64(5039930091950635172) + 1
)

// vectors are the payloads of wire.md section 8, made with Python's msgpack.
var vectors = []struct {
	name, payload string
	want          Batch
}{
	{
		name:    "V-1 oldest array, batch of 2",
		payload: "92cb3ff80000000000009196ab426c6f636b53746f72656492fe03c098010203040506070804c0",
		want: Batch{Time: 1.5, Events: []Event{
			{Kind: Stored, Hashes: ids(0xfffffffffffffffe, 3), Tokens: tokens(1, 8), BlockSize: 4},
		}},
	},
	{
		name:    "V-2 array with group fields",
		payload: "93cb3ff8000000000000939cab426c6f636b53746f72656492cf1e0b2e028ef071cbcfefad121d154ab2d6c098010203040506070804c0a3475055c092c0c000ae66756c6c5f617474656e74696f6ec094ac426c6f636b52656d6f76656491cfefad121d154ab2d6a34750550091b0416c6c426c6f636b73436c656172656400",
		want: Batch{Time: 1.5, HasRank: true, Events: []Event{
			{Kind: Stored, Hashes: ids(h0, h1), Tokens: tokens(1, 8), BlockSize: 4, HasGroup: true, Spec: SpecFull},
			{Kind: Removed, Hashes: ids(h1), HasGroup: true},
			{Kind: Cleared},
		}},
	},
	{
		name:    "V-3 array, 32-byte hash, rank 1",
		payload: "93cb3ff80000000000009198ab426c6f636b53746f72656491c420c9d58ba695280d69b243e1e0df813136ca9196b286fb1a021e0b2e028ef071cbc0940102030404c0a3475055c001",
		want: Batch{Time: 1.5, Rank: 1, HasRank: true, Events: []Event{{
			Kind: Stored, Tokens: tokens(1, 4), BlockSize: 4,
			Hashes: []Hash{HashBytes([]byte("\xc9\xd5\x8b\xa6\x95\x28\x0d\x69\xb2\x43\xe1\xe0\xdf\x81\x31\x36\xca\x91\x96\xb2\x86\xfb\x1a\x02\x1e\x0b\x2e\x02\x8e\xf0\x71\xcb"))},
		}}},
	},
	{
		name:    "V-4 map events",
		payload: "93cb3ff8000000000000938ba474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657392cf1e0b2e028ef071cbcfefad121d154ab2d6b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f696473980102030405060708aa626c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c0aa65787472615f6b65797392c0c0a967726f75705f69647800b26b765f63616368655f737065635f6b696e64ae66756c6c5f617474656e74696f6e84a474797065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391cfefad121d154ab2d6a66d656469756da3475055a967726f75705f6964780081a474797065b0416c6c426c6f636b73436c656172656400",
		want: Batch{Time: 1.5, HasRank: true, Events: []Event{
			{Kind: Stored, Hashes: ids(h0, h1), Tokens: tokens(1, 8), BlockSize: 4, HasGroup: true, Spec: SpecFull},
			{Kind: Removed, Hashes: ids(h1), HasGroup: true},
			{Kind: Cleared},
		}},
	},
	{
		name:    "V-5 host placeholder",
		payload: "93cb3ff80000000000009189a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657391cf1e0b2e028ef071cbb1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f69647390aa626c6f636b5f73697a6500a76c6f72615f6964c0a66d656469756da3435055a96c6f72615f6e616d65c0a967726f75705f6964780000",
		want: Batch{Time: 1.5, HasRank: true, Events: []Event{
			{Kind: Stored, Hashes: ids(h0), Tier: TierHost, HasGroup: true},
		}},
	},
	{
		name:    "S-1 SGLang array, two pages",
		payload: "93cb3ff80000000000009297ab426c6f636b53746f72656491d3cf97adeedb59e05bc0940102030404c0a347505597ab426c6f636b53746f72656491cf4ebfa8a1f3c34151d3cf97adeedb59e05b940506070804c0a347505500",
		want: Batch{Time: 1.5, HasRank: true, Events: []Event{
			{Kind: Stored, Hashes: ids(g0), Tokens: tokens(1, 4), BlockSize: 4},
			{Kind: Stored, Hashes: ids(g1), Parent: HashInt(g0), HasParent: true, Tokens: tokens(5, 8), BlockSize: 4},
		}},
	},
	{
		name:    "S-2 SGLang map, salted, rank nil",
		payload: "93cb3ff80000000000009288a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657392d3cf97adeedb59e05bcf4ebfa8a1f3c34151b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f696473980102030405060708aa626c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da3475055aa63616368655f73616c74a874656e616e742d6183a474797065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391cf4ebfa8a1f3c34151a66d656469756da3475055c0",
		want: Batch{Time: 1.5, Events: []Event{
			{Kind: Stored, Hashes: ids(g0, g1), Tokens: tokens(1, 8), BlockSize: 4, Salt: "tenant-a"},
			{Kind: Removed, Hashes: ids(g1)},
		}},
	},
	{
		name:    "S-3 SGLang bigram page",
		payload: "93cb3ff80000000000009197ab426c6f636b53746f72656491d3cf97adeedb59e05bc09292010292020302c0a347505500",
		want: Batch{Time: 1.5, HasRank: true, Events: []Event{
			{Kind: Stored, Hashes: ids(g0), Tokens: tokens(1, 3), Pairs: true, BlockSize: 2},
		}},
	},
	{
		name:    "S-4 SGLang array with the salt in a map",
		payload: "93cb3ff80000000000009198ab426c6f636b53746f72656491d3cf97adeedb59e05bc0940102030404c0a347505581aa63616368655f73616c74a874656e616e742d6100",
		want: Batch{Time: 1.5, HasRank: true, Events: []Event{
			{Kind: Stored, Hashes: ids(g0), Tokens: tokens(1, 4), BlockSize: 4, Salt: "tenant-a"},
		}},
	},
	{
		name:    "T-1 TensorRT-LLM streaming",
		payload: "93cb3ff80000000000009288a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657392d3d640331a8566b891d3ba0e9248b87b075cb1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f696473980102030405060708aa626c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c083a474797065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391d3ba0e9248b87b075ca66d656469756da347505500",
		want: Batch{Time: 1.5, HasRank: true, Events: []Event{
			{Kind: Stored, Hashes: ids(t0, t1), Tokens: tokens(1, 8), BlockSize: 4},
			{Kind: Removed, Hashes: ids(t1)},
		}},
	},
}

func TestWireVectors(t *testing.T) {
	dec := NewDecoder(DefaultLimits())
	var b Batch
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			if err := dec.Decode(unhex(t, v.payload), &b); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(v.want, b, asEmpty); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Dynamo's relay of TensorRT-LLM's events (components/src/dynamo/trtllm/publisher.py, ZmqKvEventPublisher): one map a batch,
// without medium and adapter name; a removal may name nothing; block_mm_infos has an entry for each block.
func TestDynamoRelay(t *testing.T) {
	relay := func(event object) Batch { return decode(t, pack(t, array{1.5, array{event}, 3})) }
	want := func(e Event) Batch { return Batch{Time: 1.5, Rank: 3, HasRank: true, Events: []Event{e}} }
	for _, tt := range []struct {
		event object
		want  Event
	}{
		{object{"type", "BlockStored", "block_hashes", array{int64(-3008348362083223407)}, "parent_block_hash", nil,
			"token_ids", array{1, 2, 3, 4}, "block_size", 4, "lora_id", nil, "block_mm_infos", array{nil}},
			Event{Kind: Stored, Hashes: ids(t0), Tokens: tokens(1, 4), BlockSize: 4}},
		{object{"type", "BlockStored", "block_hashes", array{int64(-5039930091950635172)}, "parent_block_hash", int64(-3008348362083223407),
			"token_ids", array{5, 6, 7, 8}, "block_size", 4, "lora_id", 7,
			"block_mm_infos", array{object{"mm_objects", array{object{"mm_hash", uint64(1) << 63, "offsets", array{}}}}}},
			Event{Kind: Stored, Hashes: ids(t1), Parent: HashInt(t0), HasParent: true, Tokens: tokens(5, 8), BlockSize: 4, LoraID: 7, HasLoraID: true,
				Extras: [][]Extra{{{Kind: ExtraHash, Offset: -1 << 63}}}}},
		{object{"type", "BlockRemoved", "block_hashes", array{}}, Event{Kind: Removed}},
		{object{"type", "AllBlocksCleared"}, Event{Kind: Cleared}},
	} {
		if diff := cmp.Diff(want(tt.want), relay(tt.event), asEmpty); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt.event, diff)
		}
	}
}
