package e2e

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// kind is one way to break a message.
type kind struct {
	name string
	op   obj // for the engine
	// reason is why the server rejects it, once; empty if it is odd but allowed.
	reason string
}

// whole are payloads of the engines' schemas, by hand from the wire formats: vLLM's first arrays, 32-byte hashes, SGLang's
// maps with a salt, TensorRT-LLM's maps. All are of rank 0, or of none.
var whole = map[string]string{
	"V-1": "92cb3ff80000000000009196ab426c6f636b53746f72656492fe03c098010203040506070804c0",
	"V-3": "93cb3ff80000000000009198ab426c6f636b53746f72656491c420c9d58ba695280d69b243e1e0df813136ca9196b286fb1a021e0b2e028ef071cb" +
		"c0940102030404c0a3475055c000",
	"S-2": "93cb3ff80000000000009288a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657392d3cf97adeedb59e05bcf4ebfa8a1f3" +
		"c34151b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f696473980102030405060708aa626c6f636b5f73697a6504a76c6f7261" +
		"5f6964c0a66d656469756da3475055aa63616368655f73616c74a874656e616e742d6183a474797065ac426c6f636b52656d6f766564ac626c6f" +
		"636b5f68617368657391cf4ebfa8a1f3c34151a66d656469756da3475055c0",
	"T-1": "93cb3ff80000000000009288a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657392d3d640331a8566b891d3ba0e9248b8" +
		"7b075cb1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f696473980102030405060708aa626c6f636b5f73697a6504a76c6f7261" +
		"5f6964c0a66d656469756da3475055a96c6f72615f6e616d65c083a474797065ac426c6f636b52656d6f766564ac626c6f636b5f686173686573" +
		"91d3ba0e9248b87b075ca66d656469756da347505500",
	// V-2 and V-4 clear the cache at their end.
	"V-2": "93cb3ff8000000000000939cab426c6f636b53746f72656492cf1e0b2e028ef071cbcfefad121d154ab2d6c098010203040506070804c0a34750" +
		"55c092c0c000ae66756c6c5f617474656e74696f6ec094ac426c6f636b52656d6f76656491cfefad121d154ab2d6a34750550091b0416c6c426c" +
		"6f636b73436c656172656400",
	"V-4": "93cb3ff8000000000000938ba474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657392cf1e0b2e028ef071cbcfefad121d15" +
		"4ab2d6b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f696473980102030405060708aa626c6f636b5f73697a6504a76c6f7261" +
		"5f6964c0a66d656469756da3475055a96c6f72615f6e616d65c0aa65787472615f6b65797392c0c0a967726f75705f69647800b26b765f636163" +
		"68655f737065635f6b696e64ae66756c6c5f617474656e74696f6e84a474797065ac426c6f636b52656d6f766564ac626c6f636b5f6861736865" +
		"7391cfefad121d154ab2d6a66d656469756da3475055a967726f75705f6964780081a474797065b0416c6c426c6f636b73436c656172656400",
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func payload(name string, b []byte, reason string) kind {
	return kind{name, obj{"op": "payload", "data": base64.StdEncoding.EncodeToString(b)}, reason}
}

func value(name string, v any, reason string) kind {
	return kind{name, obj{"op": "value", "value": v}, reason}
}

// countedKinds are the broken messages whose count is known: each is rejected once, for its reason.
func countedKinds(t testing.TB, r *rand.Rand) []kind {
	return slices.Concat(truncations(t), wrongBatches(), wrongFields(), hostileHeaders(t), nested(t), wrongFrames(), randomBytes(r))
}

// truncations cuts payloads at every byte. What is left is never a whole value.
func truncations(t testing.TB) (out []kind) {
	for _, name := range []string{"V-1", "V-3", "S-2", "T-1"} {
		b := unhex(t, whole[name])
		for n := range len(b) {
			out = append(out, payload(fmt.Sprintf("%s cut at %d", name, n), b[:n], "bad_payload"))
		}
		out = append(out, payload(name+" and a byte more", append(b, 0xc0), "bad_payload"))
	}
	return out
}

// wrongBatches are values that are no batch.
func wrongBatches() (out []kind) {
	for _, v := range []any{
		nil, 7, -7, 1.5, true, "batch", "", list{}, list{1.5}, obj{}, obj{"ts": 1.5}, obj{"event": list{}},
		list{1.5, 7}, list{1.5, "x"}, list{1.5, obj{}}, list{1.5, true}, list{1.5, 2.5}, obj{"ts": 1.5, "events": 7},
		list{1.5, list{}, "rank"}, list{1.5, list{}, 1.5}, list{1.5, list{}, list{}}, list{1.5, list{}, true},
	} {
		out = append(out, value(fmt.Sprintf("batch %v", v), v, "bad_payload"))
	}
	return out
}

// wrongFields puts every wrong type into every field of an event.
func wrongFields() (out []kind) {
	add := func(field, reason string, values ...any) {
		for _, v := range values {
			e := stored(900, nil, span(1, 4))
			e["type"], e["block_size"] = "BlockStored", blockSize
			e[field] = v
			out = append(out, value(fmt.Sprintf("%s %v", field, v), list{1.5, list{e}, 0}, reason))
		}
	}
	add("block_hashes", "bad_event", "x", 7, true, 1.5, obj{}, list{1.5}, list{true}, list{list{}}, list{nil}, list{obj{}})
	add("parent_block_hash", "bad_event", 1.5, true, list{}, obj{}, list{1})
	add("token_ids", "bad_event", "x", 7, true, 1.5, obj{})
	add("token_ids", "bad_token", list{1.5, 2, 3, 4}, list{"a", 2, 3, 4}, list{-1, 2, 3, 4}, list{1 << 32, 2, 3, 4},
		list{true, 2, 3, 4}, list{nil, 2, 3, 4}, list{obj{}, 2, 3, 4}, list{1, 2, 3, "x"}, list{1, 2, 3, -9})
	add("token_ids", "bad_pairs", list{list{1, 2}, list{3, 4}}, list{list{1, 2}, list{2, 3}, list{9, 4}})
	add("block_size", "bad_event", "4", 1.5, true, list{}, obj{}, list{4})
	add("lora_id", "bad_event", "x", 1.5, list{}, obj{})
	add("medium", "bad_event", 7, 1.5, true, list{}, obj{})
	add("group_idx", "bad_event", "x", -1, 1.5, list{}, obj{}, 1<<40)
	add("kv_cache_spec_kind", "bad_event", 7, 1.5, list{}, obj{})
	add("kv_cache_spec_sliding_window", "bad_event", "x", 1.5, list{}, -1)
	add("locality", "bad_event", 7, list{})
	add("extra_keys", "bad_namespace", list{list{"a"}, nil}, list{nil, list{"a"}})
	add("type", "bad_event", 7, nil, true, list{}, obj{})
	add("type", "unknown_event", "BlockPinned", "", "blockstored", strings.Repeat("x", 40_000))
	for _, e := range []any{
		7, nil, true, 1.5, "x", list{}, obj{}, list{7}, list{"BlockStored"}, list{"BlockStored", list{1}},
		list{"BlockStored", list{1}, nil, span(1, 4)}, list{"BlockRemoved"}, list{"BlockRemoved", 7},
		list{"BlockRemoved", list{1}, 7}, list{"BlockStored", 7, nil, span(1, 4), 4},
	} {
		out = append(out, value(fmt.Sprintf("event %v", e), list{1.5, list{e}, 0}, "bad_event"))
	}
	return out
}

// hostileHeaders announce far more than follows, as the payload and as each part of it (case 88).
func hostileHeaders(t testing.TB) (out []kind) {
	event := "91" + "82" + "a474797065" + "ab426c6f636b53746f726564" // one event, a map of two: its type, and
	places := map[string]string{
		"payload": "", "time": "93", "events": "93cb3ff8000000000000", "event": "93cb3ff800000000000091",
		"tag":               "93cb3ff80000000000009191",
		"block_hashes":      "93cb3ff8000000000000" + event + "ac626c6f636b5f686173686573",
		"token_ids":         "93cb3ff8000000000000" + event + "a9746f6b656e5f696473",
		"unknown key":       "93cb3ff8000000000000" + event + "a3776174",
		"parent_block_hash": "93cb3ff8000000000000" + event + "b1706172656e745f626c6f636b5f68617368",
		"medium":            "93cb3ff8000000000000" + event + "a66d656469756d",
		"rank":              "93cb3ff800000000000090",
	}
	for place, before := range places {
		for _, header := range []string{"ddffffffff", "dfffffffff", "c6ffffffff", "dbffffffff", "c9ffffffff01", "dcffff", "deffff", "d9ff"} {
			out = append(out, payload(fmt.Sprintf("%s in %s", header, place), unhex(t, before+header), "bad_payload"))
		}
	}
	slices.SortFunc(out, func(a, b kind) int { return strings.Compare(a.name, b.name) }) // one order for one seed
	return out
}

// nested are arrays in arrays. Where a value is skipped they are allowed, however deep.
func nested(t testing.TB) (out []kind) {
	event := unhex(t, "93cb3ff8000000000000"+"91"+"82"+"a3776174")
	tag := unhex(t, "a474797065"+"b0416c6c426c6f636b73436c6561726564")
	tag = append(tag[:5], unhex(t, "a54f74686572")...) // type "Other", so that nothing is cleared
	for _, depth := range []int{1, 10, 1000, 100_000, 1_000_000} {
		arrays := []byte(strings.Repeat("\x91", depth) + "\x00")
		out = append(out,
			payload(fmt.Sprintf("%d arrays", depth), arrays, "bad_payload"),
			payload(fmt.Sprintf("%d arrays as time", depth), slices.Concat([]byte{0x92}, arrays, []byte{0x90}), ""),
			payload(fmt.Sprintf("%d arrays in a key", depth), slices.Concat(event, arrays, tag, []byte{0}), "unknown_event"))
		maps := []byte(strings.Repeat("\x81\x00", depth) + "\x00")
		out = append(out, payload(fmt.Sprintf("%d maps as time", depth), slices.Concat([]byte{0x92}, maps, []byte{0x90}), ""))
	}
	return out
}

// wrongFrames are messages that are not topic, sequence and payload.
func wrongFrames() (out []kind) {
	for n := 1; n <= 10; n++ {
		if n != 3 {
			out = append(out, kind{fmt.Sprintf("%d frames", n), sent(make([][]byte, n)...), "bad_frames"})
		}
	}
	for n := range 8 {
		out = append(out, kind{fmt.Sprintf("sequence of %d bytes", n), sent(nil, make([]byte, n), []byte{0x92, 1, 0x90}), "bad_sequence"})
	}
	out = append(out, kind{"sequence of ones", sent(nil, []byte(strings.Repeat("\xff", 8)), []byte{0x92, 1, 0x90}), "bad_sequence"})
	for _, n := range []int{1 << 10, 1 << 16, 1 << 20, 4 << 20} {
		out = append(out, kind{fmt.Sprintf("topic of %d bytes", n), sent(make([]byte, n), []byte{1}, nil), "bad_sequence"},
			kind{fmt.Sprintf("one frame of %d bytes", n), sent(make([]byte, n)), "bad_frames"})
	}
	return out
}

// randomBytes are payloads that begin with neither an array nor a map.
func randomBytes(r *rand.Rand) (out []kind) {
	for i := range 80 {
		b := make([]byte, 1+r.IntN(1<<(1+i%14)))
		for j := range b {
			b[j] = byte(r.Uint32())
		}
		for b[0]&0xe0 == 0x80 || b[0] >= 0xdc && b[0] <= 0xdf {
			b[0] = byte(r.Uint32())
		}
		out = append(out, payload(fmt.Sprintf("%d random bytes", len(b)), b, "bad_payload"))
	}
	return out
}

// wildKinds are valid payloads with bits flipped, and events with absurd numbers. What each does is not told beforehand.
func wildKinds(t testing.TB, r *rand.Rand, n int) (out []kind) {
	for _, e := range []obj{
		{"block_size": 1 << 31}, {"block_size": -1}, {"block_size": 0}, {"block_size": 1}, {"block_size": 1 << 62},
		{"block_hashes": []uint64{1<<64 - 1}}, {"block_hashes": list{}}, {"block_hashes": span(1, 100_000)},
		{"token_ids": []uint32{1<<32 - 1, 0, 0, 0}}, {"token_ids": span(1, 200_000)}, {"token_ids": list{}},
		{"parent_block_hash": 900}, {"parent_block_hash": -1}, {"group_idx": 65_535}, {"group_idx": 65_536},
		{"kv_cache_spec_kind": "unheard"}, {"kv_cache_spec_sliding_window": 1 << 30, "kv_cache_spec_kind": "sliding_window"},
		{"medium": "TAPE"}, {"lora_id": 1 << 62}, {"lora_name": strings.Repeat("l", 60_000)}, {"locality": "MOON"},
	} {
		full := stored(900, nil, span(1, 4))
		full["type"], full["block_size"] = "BlockStored", blockSize
		for k, v := range e {
			full[k] = v
		}
		out = append(out, value(fmt.Sprintf("%.60v", e), list{1e300, list{full}, 0}, ""))
	}
	for _, rank := range []int{-1, 1, 7, 1 << 31, -1 << 31, 1 << 62} {
		out = append(out, value(fmt.Sprintf("rank %d", rank), list{-1.5, list{}, rank}, ""))
	}
	names := []string{"V-1", "V-2", "V-3", "V-4", "S-2", "T-1"}
	for len(out) < n {
		name := names[len(out)%len(names)]
		b := unhex(t, whole[name])
		for range 1 + r.IntN(3) {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
		out = append(out, payload(fmt.Sprintf("%s with flipped bits: %x", name, b), b, ""))
	}
	return out
}
