package indexrpc_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
)

func TestReadPrompt(t *testing.T) {
	// The bytes are Python's struct.pack('<3i', 1, 258, 2147483647) and struct.pack('<2Q', 1, 2**64 - 1).
	packed := []byte("\x01\x00\x00\x00\x02\x01\x00\x00\xff\xff\xff\x7f")
	keys := []byte("\x01\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff")
	tests := []struct {
		name string
		req  *kvscoutv1.ScoreRequest
		want indexer.Query
	}{
		{"packed", &kvscoutv1.ScoreRequest{Tokens: &kvscoutv1.Tokens{Packed: packed}},
			indexer.Query{Tokens: []uint32{1, 258, math.MaxInt32}}},
		{"ids", &kvscoutv1.ScoreRequest{Tokens: tokens(0, math.MaxUint32)}, indexer.Query{Tokens: []uint32{0, math.MaxUint32}}},
		{"namespace", &kvscoutv1.ScoreRequest{Tokens: tokens(1), CacheSalt: "s", Adapter: "a", ExtraKey: "e"},
			indexer.Query{Tokens: []uint32{1}, Namespace: indexer.Namespace{Salt: "s", Adapter: "a", Extra: "e"}}},
		{"features are sorted", &kvscoutv1.ScoreRequest{Tokens: tokens(1, 2, 3), Features: []*kvscoutv1.Feature{
			{Hash: "b", Offset: 2, Length: 1}, {Modality: "image", Hash: "a", Length: 2}}},
			indexer.Query{Tokens: []uint32{1, 2, 3}, Features: []indexer.Feature{{Hash: "a", Length: 2}, {Hash: "b", Offset: 2, Length: 1}}}},
		{"hashes", &kvscoutv1.ScoreRequest{BlockHashes: &kvscoutv1.BlockHashes{BlockSize: 4, Packed: keys, PromptTokens: 9}},
			indexer.Query{Keys: []indexer.Key{1, math.MaxUint64}, KeySize: 4, PromptTokens: 9}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := indexrpc.ReadPrompt(tt.req, 100)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("query (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadPrompt_Refuses(t *testing.T) {
	ids := func(features ...*kvscoutv1.Feature) *kvscoutv1.ScoreRequest {
		return &kvscoutv1.ScoreRequest{Tokens: tokens(1, 2, 3, 4), Features: features}
	}
	hashes := func(size uint32, bytes int, total uint32) *kvscoutv1.ScoreRequest {
		return &kvscoutv1.ScoreRequest{BlockHashes: &kvscoutv1.BlockHashes{BlockSize: size, Packed: make([]byte, bytes), PromptTokens: total}}
	}
	many := make([]*kvscoutv1.Feature, indexrpc.MaxFeatures+1)
	for i := range many {
		many[i] = &kvscoutv1.Feature{Hash: "h", Length: 1}
	}
	image := &kvscoutv1.Feature{Hash: "h", Length: 2}
	tests := []struct {
		name, reason string
		req          *kvscoutv1.ScoreRequest
	}{
		{"nothing", "NO_PROMPT", &kvscoutv1.ScoreRequest{}},
		{"empty tokens", "NO_PROMPT", &kvscoutv1.ScoreRequest{Tokens: &kvscoutv1.Tokens{}}},
		{"empty hashes", "NO_PROMPT", hashes(4, 0, 0)},
		{"tokens and hashes", "TWO_PROMPTS", &kvscoutv1.ScoreRequest{Tokens: tokens(1), BlockHashes: &kvscoutv1.BlockHashes{}}},
		{"packed and ids", "TWO_PROMPTS", &kvscoutv1.ScoreRequest{Tokens: &kvscoutv1.Tokens{Packed: make([]byte, 4), Ids: []int64{1}}}},
		{"5 bytes", "TOKENS_NOT_MULTIPLE_OF_4", &kvscoutv1.ScoreRequest{Tokens: &kvscoutv1.Tokens{Packed: make([]byte, 5)}}},
		{"packed -1", "NEGATIVE_TOKEN", &kvscoutv1.ScoreRequest{Tokens: &kvscoutv1.Tokens{Packed: []byte("\xff\xff\xff\xff")}}},
		{"id -1", "NEGATIVE_TOKEN", &kvscoutv1.ScoreRequest{Tokens: tokens(1, -1)}},
		{"id 2^32", "TOKEN_TOO_LARGE", &kvscoutv1.ScoreRequest{Tokens: tokens(math.MaxUint32 + 1)}},
		{"101 packed", "PROMPT_TOO_LONG", &kvscoutv1.ScoreRequest{Tokens: &kvscoutv1.Tokens{Packed: make([]byte, 404)}}},
		{"101 ids", "PROMPT_TOO_LONG", &kvscoutv1.ScoreRequest{Tokens: tokens(make([]int64, 101)...)}},
		{"104 hashed", "PROMPT_TOO_LONG", hashes(4, 26*8, 0)},
		{"101 stated", "PROMPT_TOO_LONG", hashes(4, 8, 101)},
		{"largest block", "PROMPT_TOO_LONG", hashes(math.MaxUint32, 16, 0)},
		{"9 bytes", "HASHES_NOT_MULTIPLE_OF_8", hashes(4, 9, 0)},
		{"7 bytes", "HASHES_NOT_MULTIPLE_OF_8", hashes(4, 7, 0)},
		{"block of 0", "BAD_BLOCK_SIZE", hashes(0, 8, 0)},
		{"7 tokens in 2 blocks of 4", "BAD_PROMPT_TOKENS", hashes(4, 16, 7)},
		{"feature behind the prompt", "BAD_FEATURE", ids(&kvscoutv1.Feature{Hash: "h", Offset: 3, Length: 2})},
		{"feature past 2^32", "BAD_FEATURE", ids(&kvscoutv1.Feature{Hash: "h", Offset: math.MaxUint32, Length: math.MaxUint32})},
		{"overlap", "BAD_FEATURE", ids(image, &kvscoutv1.Feature{Hash: "h", Offset: 1, Length: 1})},
		{"no hash", "BAD_FEATURE", ids(&kvscoutv1.Feature{Length: 1})},
		{"no length", "BAD_FEATURE", ids(&kvscoutv1.Feature{Hash: "h"})},
		{"too many", "BAD_FEATURE", ids(many...)},
		{"feature with hashes", "BAD_FEATURE", &kvscoutv1.ScoreRequest{
			BlockHashes: &kvscoutv1.BlockHashes{BlockSize: 4, Packed: make([]byte, 8)}, Features: []*kvscoutv1.Feature{image}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := indexrpc.ReadPrompt(tt.req, 100)
			var e *indexrpc.Error
			if !errors.As(err, &e) || e.Reason.String() != tt.reason {
				t.Errorf("got %v, want %s", err, tt.reason)
			}
		})
	}
}

// A negative token is found wherever it stands, and named by its position.
func TestReadPrompt_NegativeAnywhere(t *testing.T) {
	for n := 1; n <= 70; n++ {
		for at := range n {
			packed := bytes.Repeat([]byte("\xff\xff\xff\x7f"), n)
			packed[4*at+3] = 0x80
			_, err := indexrpc.ReadPrompt(&kvscoutv1.ScoreRequest{Tokens: &kvscoutv1.Tokens{Packed: packed}}, 100)
			var e *indexrpc.Error
			if !errors.As(err, &e) || e.Reason != indexrpc.ReasonNegativeToken || !strings.Contains(err.Error(), fmt.Sprintf("position %d is", at)) {
				t.Fatalf("token %d of %d is negative: %v", at, n, err)
			}
		}
	}
}

// A refusal names places, never ids: ids are the prompt.
func TestReadPrompt_ErrorsHideTokens(t *testing.T) {
	for _, id := range []int64{-987654321, 98765432123} {
		if _, err := indexrpc.ReadPrompt(&kvscoutv1.ScoreRequest{Tokens: tokens(id)}, 100); strings.Contains(err.Error(), "98765") {
			t.Errorf("the id is in %q", err)
		}
	}
}

// The API names each reason's code; the reasons that only Score has are checked in package scorerpc.
func TestReason_NamesAndCodes(t *testing.T) {
	seen := make(map[string]bool)
	for r := range indexrpc.ReasonCount {
		name := r.String()
		if name == "" || name != strings.ToUpper(name) || seen[name] || r.Code() == 0 {
			t.Errorf("reason %d is %q with code %v", r, name, r.Code())
		}
		seen[name] = true
	}
	if got := indexrpc.ReasonCount.String(); got != "INTERNAL" {
		t.Errorf("a number that is no reason is %q", got)
	}
	if got := indexrpc.Classify(errors.New("secret")); got.Reason.Code() != connect.CodeInternal || strings.Contains(got.Error(), "secret") {
		t.Errorf("an unknown error became %v", got)
	}
}

// Whatever bytes arrive, the parser answers with a query inside the bounds or with a reason, and never panics.
func FuzzPrompt(f *testing.F) {
	for _, req := range []*kvscoutv1.ScoreRequest{
		{}, {Tokens: tokens(1, -1)}, {Tokens: &kvscoutv1.Tokens{Packed: binary.LittleEndian.AppendUint32(nil, 7)}},
		{BlockHashes: &kvscoutv1.BlockHashes{BlockSize: math.MaxUint32, Packed: make([]byte, 16), PromptTokens: 3}},
		{Tokens: tokens(1, 2), Features: []*kvscoutv1.Feature{{Hash: "h", Offset: math.MaxUint32, Length: 2}}},
	} {
		b, err := proto.Marshal(req)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	const limit = 64
	f.Fuzz(func(t *testing.T, b []byte) {
		req := new(kvscoutv1.ScoreRequest)
		if proto.Unmarshal(b, req) != nil {
			return
		}
		q, err := indexrpc.ReadPrompt(req, limit)
		var e *indexrpc.Error
		if err != nil && (!errors.As(err, &e) || e.Reason.Code() != connect.CodeInvalidArgument && e.Reason.String() != "PROMPT_TOO_LONG") {
			t.Fatalf("error without a fitting reason: %v", err)
		}
		if n := q.Length(); err == nil && (n < 1 || n > limit) {
			t.Fatalf("prompt of %d tokens", n)
		}
	})
}
