package events

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// The events below have the form that TensorRT-LLM's KVCacheEventSerializer writes (tensorrt_llm/_utils.py, and the
// assertions of tests/unittest/llmapi/test_llm_kv_cache_events.py and kv_cache_manager_v2_tests): created, stored,
// removed and updated, with the hashes that its own tests name.

// unique is the JSON of the tokens from first to last.
func unique(first, last int) string {
	var out []string
	for t := first; t <= last; t++ {
		out = append(out, fmt.Sprintf(`{"type": "unique_token", "token_id": %d, "token_extra_id": 0}`, t))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// storedBlock is one stored_block; more are further members.
func storedBlock(hash, tokens, more string) string {
	return fmt.Sprintf(`{"type": "stored_block", "block_hash": %s, "tokens": %s, "cache_level": 0, "priority": 35%s}`,
		hash, tokens, more)
}

// bufferedOf is one event; head are further members beside its data.
func bufferedOf(id int, head, data string) []byte {
	return fmt.Appendf(nil, `{"event_id": %d, "data": {%s}%s}`, id, data, head)
}

func storedData(parent string, blocks ...string) string {
	return fmt.Sprintf(`"type": "stored", "parent_hash": %s, "blocks": [%s]`, parent, strings.Join(blocks, ", "))
}

const (
	v1First = 924206229973855 // of tokens 1..4
	full    = `, "window_size": 4096`
)

// bufferedFeed decodes events one after another with one decoder.
func bufferedFeed(t *testing.T, src Source, payloads ...[]byte) (last Batch) {
	t.Helper()
	d := NewSourceDecoder(src, Limits{})
	for _, p := range payloads {
		if err := d.Decode(p, &last); err != nil {
			t.Fatalf("%s: %v", p, err)
		}
	}
	return last
}

func TestBuffered_Stored(t *testing.T) {
	created := bufferedOf(0, full, `"type": "created", "num_blocks_per_cache_level": [2231, 0]`)
	for _, tt := range []struct {
		name  string
		event []byte
		want  []Event
	}{
		{ // wire T-2 without and with the newer members
			name:  "one block",
			event: bufferedOf(7, full+`, "attention_dp_rank": 0`, storedData("null", storedBlock("924206229973855", unique(1, 4), `, "mm_keys": [], "cache_salt": null`))),
			want:  []Event{{Kind: Stored, Hashes: ids(v1First), Tokens: tokens(1, 4), BlockSize: 4, Group: 4096, HasGroup: true, Spec: SpecFull}},
		},
		{
			name:  "a chain behind a parent, its last block not full",
			event: bufferedOf(1, full, storedData("17999999999999999999", storedBlock("1", unique(1, 4), ""), storedBlock("2", unique(5, 8), ""), storedBlock("3", unique(9, 9), ""))),
			want: []Event{
				{Kind: Stored, Parent: HashInt(17999999999999999999), HasParent: true, Hashes: ids(1, 2), Tokens: tokens(1, 8), BlockSize: 4, Group: 4096, HasGroup: true, Spec: SpecFull},
				{Kind: Stored, Parent: HashInt(2), HasParent: true, Hashes: ids(3), Tokens: tokens(9, 9), BlockSize: 4, Group: 4096, HasGroup: true, Spec: SpecFull},
			},
		},
		{
			name:  "hexadecimal digests (hash_algo v2_sha256)",
			event: bufferedOf(1, `, "hash_algo": "v2_sha256"`, storedData(`"abcd"`, storedBlock(`"`+strings.Repeat("0f", 32)+`"`, unique(1, 4), ""))),
			want:  []Event{{Kind: Stored, Parent: HashInt(0xabcd), HasParent: true, Hashes: []Hash{HashBytes([]byte(strings.Repeat("\x0f", 32)))}, Tokens: tokens(1, 4), BlockSize: 4}},
		},
		{
			name:  "salt and media",
			event: bufferedOf(1, "", storedData("null", storedBlock("1", unique(1, 4), `, "cache_salt": "te\u006eant", "mm_keys": [{"type": "mm_key", "hash": "aa", "start_offset": 3}]`))),
			want: []Event{{Kind: Stored, Hashes: ids(1), Tokens: tokens(1, 4), BlockSize: 4, Salt: "tenant",
				Extras: [][]Extra{{{Kind: ExtraPair, Text: "aa"}}}}},
		},
		{
			name:  "an extra id and a salt's digest match no request",
			event: bufferedOf(1, "", storedData("null", storedBlock("1", `[{"token_id": 1, "token_extra_id": 9}, {"token_id": 2, "token_extra_id": 0}]`, ""), storedBlock("2", `[3, 4]`, `, "cache_salt_id": 123, "mm_keys": null`))),
			want: []Event{{Kind: Stored, Hashes: ids(1, 2), Tokens: tokens(1, 4), BlockSize: 2,
				Extras: [][]Extra{{{Kind: ExtraOther}}, {{Kind: ExtraOther}}}}},
		},
		{
			name:  "unknown members, another order, signed hashes, an adapter's number",
			event: []byte(`{"new": [[{"a": "]}\""}], 1e9, true], "data": {"blocks": [{"tokens": ` + unique(1, 4) + `, "lora_id": 7, "block_hash": -3, "x": {}}], "parent_hash": null, "type": "stored"}, "event_id": 4}`),
			want:  []Event{{Kind: Stored, Hashes: ids(1<<64 - 3), Tokens: tokens(1, 4), BlockSize: 4, LoraID: 7, HasLoraID: true}},
		},
		{name: "no event", event: []byte(`{}`)},
		{name: "a window's creation", event: bufferedOf(1, `, "window_size": 512`, `"type": "created", "num_blocks_per_cache_level": [9]`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantEvents(t, bufferedFeed(t, Source{}, created, tt.event), tt.want)
		})
	}
}

// A list holds events of one rank; rule 10: what is wrong with one of them costs that one.
func TestRule10_BufferedList(t *testing.T) {
	good := string(bufferedOf(3, `, "attention_dp_rank": 2`, `"type": "removed", "block_hashes": [18446744073709551615]`))
	b := bufferedFeed(t, Source{}, []byte(" ["[1:]+strings.Join([]string{
		good,
		string(bufferedOf(4, `, "attention_dp_rank": 2`, `"type": "removed", "block_hashes": [1, 2.5]`)),
		string(bufferedOf(4, `, "attention_dp_rank": 2`, `"type": "evaporated"`)),
		string(bufferedOf(4, `, "attention_dp_rank": 3`, `"type": "removed", "block_hashes": [1]`)),
		`{"data": {"type": "removed", "block_hashes": [1]}}`,
		`[7]`, `{}`, good,
	}, ", ")+"]\n"))
	if b.Rank != 2 || !b.HasRank {
		t.Errorf("rank %d, %v", b.Rank, b.HasRank)
	}
	gone := Event{Kind: Removed, Hashes: ids(1<<64 - 1)}
	wantEvents(t, b, []Event{gone, gone}, ReasonBadEvent, ReasonUnknownEvent, ReasonRankUnknown, ReasonBadEvent, ReasonBadEvent)
}

// Case 155: no token id is wrapped into another. Rule 3: a salt that cannot be told is refused.
func TestCase155_BufferedRefusals(t *testing.T) {
	for block, want := range map[string]Reason{
		storedBlock("1", `[{"token_id": -1}]`, ""):                                  ReasonBadToken,
		storedBlock("1", `[4294967296]`, ""):                                        ReasonBadToken,
		storedBlock("1", `[{"token_id": "9f3c"}]`, ""):                              ReasonBadToken,
		storedBlock("1", `[1.0]`, ""):                                               ReasonBadEvent,
		storedBlock("1", `[{"token_extra_id": 0}]`, ""):                             ReasonBadEvent,
		storedBlock("1", `[]`, ""):                                                  ReasonBadEvent,
		storedBlock("18446744073709551616", `[1]`, ""):                              ReasonBadEvent,
		storedBlock("1e3", `[1]`, ""):                                               ReasonBadEvent,
		storedBlock("null", `[1]`, ""):                                              ReasonBadEvent,
		storedBlock("1", `[1]`, `, "cache_salt": "\ud800"`):                         ReasonBadNamespace,
		storedBlock("1", `[1]`, `, "cache_salt": ["a"]`):                            ReasonBadNamespace,
		storedBlock("1", `[1]`, `, "cache_salt": "`+strings.Repeat("a", 1<<15)+`"`): ReasonTooLarge,
	} {
		b := bufferedFeed(t, Source{}, bufferedOf(1, "", storedData("null", block)))
		wantEvents(t, b, nil, want)
	}
}

// What is no JSON costs the payload, with what was read before kept.
func TestBuffered_Broken(t *testing.T) {
	whole := string(bufferedOf(3, "", `"type": "removed", "block_hashes": [5]`))
	for _, text := range []string{"{", `{"event_id"`, `{"event_id": 1, "data": {"type": "stored"`, "[" + whole, "[" + whole + ",]", "[" + whole + whole + "]",
		whole + "x", whole + "\x00", `[` + whole + `}`, `{"event_id": 1, "data": {"a": "\`} {
		var b Batch
		err := NewDecoder(Limits{}).Decode([]byte(text), &b)
		if !errors.Is(err, ErrPayload) {
			t.Errorf("%s: %v", text, err)
		}
	}
	var b Batch
	if err := NewDecoder(Limits{}).Decode([]byte("["+whole+", {"), &b); err == nil || len(b.Events) != 1 {
		t.Errorf("what precedes the break: %+v, %v", b.Events, err)
	}
}

// Rule 5: a move is a copy in the new tier and one less in the old; a removal takes the block from where it lies
// (wire T-3). Level 0 is the device, 1 the host, 2 disk.
func TestRule5_BufferedTiers(t *testing.T) {
	move := func(hash, from, to int) []byte {
		return bufferedOf(8, full, fmt.Sprintf(`"type": "updated", "block_hash": %d, "cache_level": {"type": "event_diff", "new_value": %d, "old_value": %d}, "priority": null`, hash, to, from))
	}
	d := NewDecoder(Limits{})
	var b Batch
	group := func(e Event) Event {
		e.Group, e.HasGroup = 4096, true
		if e.Kind == Stored {
			e.Spec = SpecFull
		}
		return e
	}
	for _, step := range []struct {
		payload []byte
		want    []Event
	}{
		{move(5, 0, 1), []Event{group(Event{Kind: Stored, Hashes: ids(5), Tier: TierHost}), group(Event{Kind: Removed, Hashes: ids(5)})}},
		{move(6, 0, 2), []Event{group(Event{Kind: Stored, Hashes: ids(6), Tier: TierDisk}), group(Event{Kind: Removed, Hashes: ids(6)})}},
		{move(7, 0, 1), []Event{group(Event{Kind: Stored, Hashes: ids(7), Tier: TierHost}), group(Event{Kind: Removed, Hashes: ids(7)})}},
		{move(7, 1, 0), []Event{group(Event{Kind: Stored, Hashes: ids(7)}), group(Event{Kind: Removed, Hashes: ids(7), Tier: TierHost})}},
		{bufferedOf(9, full, `"type": "updated", "block_hash": 5, "cache_level": null, "priority": {"type": "event_diff", "new_value": 9, "old_value": 1}`), nil},
		{bufferedOf(9, full, `"type": "removed", "block_hashes": [4, 5, 6, 7]`), []Event{
			group(Event{Kind: Removed, Hashes: ids(4, 7)}), group(Event{Kind: Removed, Hashes: ids(5), Tier: TierHost}),
			group(Event{Kind: Removed, Hashes: ids(6), Tier: TierDisk}),
		}},
		{bufferedOf(10, full, `"type": "removed", "block_hashes": [5]`), []Event{group(Event{Kind: Removed, Hashes: ids(5)})}},
		{[]byte(fmt.Sprintf(`{"event_id": 11, "data": {"type": "stored", "parent_hash": null, "blocks": [{"block_hash": 8, "cache_level": 1, "tokens": [1, 2]}, {"block_hash": 9, "cache_level": 7, "tokens": [3, 4]}]}%s}`, full)), []Event{
			group(Event{Kind: Stored, Hashes: ids(8), Tokens: tokens(1, 2), BlockSize: 2, Tier: TierHost}),
			group(Event{Kind: Stored, Hashes: ids(9), Parent: HashInt(8), HasParent: true, Tokens: tokens(3, 4), BlockSize: 2, Tier: TierUnknown}),
		}},
		// A new process has nothing anywhere.
		{bufferedOf(0, full, `"type": "created", "num_blocks_per_cache_level": [1, 1]`), nil},
		{bufferedOf(1, full, `"type": "removed", "block_hashes": [8]`), []Event{group(Event{Kind: Removed, Hashes: ids(8)})}},
	} {
		if err := d.Decode(step.payload, &b); err != nil {
			t.Fatal(err)
		}
		wantEvents(t, b, step.want)
	}
}

// Case 134: a window is a group of its own, so what happens in the smaller one leaves the larger one alone.
func TestCase134_BufferedWindows(t *testing.T) {
	d := NewDecoder(Limits{})
	var b Batch
	small := `, "window_size": 512`
	for _, p := range [][]byte{
		bufferedOf(0, small, `"type": "created", "num_blocks_per_cache_level": [1]`),
		bufferedOf(1, full, `"type": "created", "num_blocks_per_cache_level": [1]`),
		bufferedOf(2, small, storedData("null", storedBlock("1", unique(1, 4), ""))),
	} {
		if err := d.Decode(p, &b); err != nil {
			t.Fatal(err)
		}
	}
	wantEvents(t, b, []Event{{Kind: Stored, Hashes: ids(1), Tokens: tokens(1, 4), BlockSize: 4, Group: 512, HasGroup: true, Spec: SpecSlidingWindow, Window: 512}})
	if err := d.Decode(bufferedOf(3, small, `"type": "removed", "block_hashes": [1]`), &b); err != nil {
		t.Fatal(err)
	}
	wantEvents(t, b, []Event{{Kind: Removed, Hashes: ids(1), Group: 512, HasGroup: true}})
	// A layer group is the group, where the V2 manager names it.
	if err := d.Decode(bufferedOf(4, full+`, "layer_group_id": 1`, storedData("null", storedBlock("1", unique(1, 4), ""))), &b); err != nil {
		t.Fatal(err)
	}
	wantEvents(t, b, []Event{{Kind: Stored, Hashes: ids(1), Tokens: tokens(1, 4), BlockSize: 4, Group: 1, HasGroup: true, Spec: SpecFull}})
}

// Rule 3, case 101: an adapter that its event hides shows by the block's hash.
func TestRule3_BufferedHiddenNamespace(t *testing.T) {
	plain := bufferedOf(1, "", storedData("null", storedBlock("924206229973855", unique(1, 4), ""), storedBlock("2728178455351807326", unique(5, 8), "")))
	salted := bufferedOf(2, "", storedData("null", storedBlock("6280297290684427985", unique(1, 4), ""), storedBlock("18177682803760873588", unique(5, 8), "")))
	b := bufferedFeed(t, Source{}, plain, salted)
	wantEvents(t, b, []Event{{Kind: Stored, Hashes: ids(6280297290684427985, 18177682803760873588), Tokens: tokens(1, 8), BlockSize: 4,
		Extras: [][]Extra{{{Kind: ExtraOther}}, nil}}})
}

// The stream does not tell the block size: it is configured, or shows where a block has another one behind it.
func TestBuffered_BlockSize(t *testing.T) {
	lone := bufferedOf(1, "", storedData("null", storedBlock("1", unique(1, 3), "")))
	size := func(b Batch) int { return b.Events[len(b.Events)-1].BlockSize }
	if got := size(bufferedFeed(t, Source{BlockSize: 8}, lone)); got != 8 {
		t.Errorf("configured 8: %d", got)
	}
	if got := size(bufferedFeed(t, Source{}, lone)); got != 4 {
		t.Errorf("a lone block of 3 cannot be full: size %d", got)
	}
	pair := bufferedOf(1, "", storedData("null", storedBlock("1", unique(1, 4), ""), storedBlock("2", unique(5, 6), "")))
	if got := size(bufferedFeed(t, Source{BlockSize: 8}, pair, lone)); got != 4 {
		t.Errorf("case 116, the stream shows 4 and not 8: %d", got)
	}
	if got := size(bufferedFeed(t, Source{}, bufferedOf(1, "", storedData("null", storedBlock("1", unique(1, 4), ""))), lone)); got != 4 {
		t.Errorf("a lone block of 4 may be full: %d", got)
	}
}

func TestParseBufferedID(t *testing.T) {
	for _, tt := range []struct {
		text  string
		want  BufferedID
		empty bool
		err   error
	}{
		{text: `{"event_id": 18446744073709551614, "data": {"event_id": 1}, "attention_dp_rank": 3}`, want: BufferedID{ID: 1<<64 - 2, Rank: 3, HasRank: true}},
		{text: `{"data": [], "event_id": 0, "attention_dp_rank": null}`},
		{text: `{ }`, empty: true},
		{text: `{"data": {}}`, err: ErrNoEventID},
		{text: `{"event_id": -1}`, err: ErrNoEventID},
		{text: `{"event_id": 18446744073709551615}`, err: ErrNoEventID},
		{text: `{"event_id": "1"}`, err: ErrNoEventID},
		{text: `{"event_id": 1`, err: ErrPayload},
		{text: `[]`, err: ErrPayload},
		{text: ``, err: ErrPayload},
	} {
		id, empty, err := ParseBufferedID([]byte(tt.text))
		if !errors.Is(err, tt.err) || err == nil && (id != tt.want || empty != tt.empty) {
			t.Errorf("%s: %+v, %v, %v", tt.text, id, empty, err)
		}
	}
}
