// Package v1_test pins what callers outside of this repository rely on and what the generator does not check.
package v1_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

func parse(t *testing.T, text string) *kvscoutv1.ScoreRequest {
	t.Helper()
	req := new(kvscoutv1.ScoreRequest)
	if err := protojson.Unmarshal([]byte(text), req); err != nil {
		t.Fatalf("parse %s: %v", text, err)
	}
	return req
}

// The JSON form of packed is the base64 of little-endian int32. The text is Python's
// base64.b64encode(struct.pack('<4i', 1, 2, 3, 151645)).
func TestScoreRequest_PackedIsBase64Int32(t *testing.T) {
	req := parse(t, `{"model": "m", "tokens": {"packed": "AQAAAAIAAAADAAAAXVACAA=="}}`)
	if got, want := hex.EncodeToString(req.GetTokens().GetPacked()), "0100000002000000030000005d500200"; got != want {
		t.Errorf("packed = %s, want %s", got, want)
	}
}

// A caller who sets two prompts must be told TWO_PROMPTS, so JSON with two must parse and show both.
func TestScoreRequest_TwoPromptsCanBeSeen(t *testing.T) {
	req := parse(t, `{"tokens": {"ids": [1]}, "http_request": {"path": "/v1/completions"}, "block_hashes": {}}`)
	if req.Tokens == nil || req.HttpRequest == nil || req.BlockHashes == nil {
		t.Errorf("a prompt is lost: %v", req)
	}
	req = parse(t, `{"tokens": {"packed": "AQAAAA==", "ids": [1]}}`)
	if len(req.Tokens.Packed) == 0 || len(req.Tokens.Ids) == 0 {
		t.Errorf("a form of the tokens is lost: %v", req)
	}
}

// A bad token id must reach the handler, which answers with its reason.
func TestScoreRequest_BadIdsCanBeSeen(t *testing.T) {
	req := parse(t, `{"tokens": {"ids": [-1, 4294967295, 4294967296]}}`)
	if diff := cmp.Diff([]int64{-1, 4294967295, 4294967296}, req.GetTokens().GetIds()); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
}

// Connect GET is offered only for methods marked without side effects.
func TestMethods_WithoutSideEffects(t *testing.T) {
	want := map[string]bool{
		"Score": true, "ScoreBatch": true, "ScoreStream": false, "ReportRouted": false, "ReportOutcome": false, "Render": true,
		"RegisterWorker": false, "DeregisterWorker": false, "ResetWorker": false, "ListWorkers": true,
		"GetStats": true, "StreamStats": false, "Inspect": true, "Publish": false,
		"Dump": false, "Clear": false,
	}
	got := make(map[string]bool)
	for _, file := range []protoreflect.FileDescriptor{kvscoutv1.File_kvscout_v1_score_proto, kvscoutv1.File_kvscout_v1_index_proto, kvscoutv1.File_kvscout_v1_render_proto} {
		methods := file.Services().Get(0).Methods()
		for i := range methods.Len() {
			m := methods.Get(i)
			options, _ := m.Options().(*descriptorpb.MethodOptions)
			got[string(m.Name())] = options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("methods without side effects (-want +got):\n%s", diff)
	}
}

// Salts are secrets: the fields that carry them, in whatever message, are marked for tools that print messages.
func TestSecrets_AreMarked(t *testing.T) {
	found := 0
	protoregistry.GlobalFiles.RangeFilesByPackage("kvscout.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Messages().Len() {
			fields := file.Messages().Get(i).Fields()
			for _, name := range []protoreflect.Name{"cache_salt", "extra_key"} {
				f := fields.ByName(name)
				if f == nil {
					continue
				}
				found++
				if options, _ := f.Options().(*descriptorpb.FieldOptions); !options.GetDebugRedact() {
					t.Errorf("%s is not marked debug_redact", f.FullName())
				}
			}
		}
		return true
	})
	if found < 5 {
		t.Errorf("only %d fields", found)
	}
}

// One word per idea: the enums of the API have the names of the events package, one number up.
func TestEnums_NamedAsInEvents(t *testing.T) {
	for tier := range events.Tier(events.TierCount) {
		want := "TIER_" + strings.ToUpper(tier.String())
		if got := kvscoutv1.Tier(tier + 1).String(); got != want {
			t.Errorf("tier %d = %s, want %s", tier+1, got, want)
		}
	}
	for state := events.StateUnknown; state <= events.StateStale; state++ {
		want := "FRESHNESS_STATE_" + strings.ToUpper(state.String())
		if got := kvscoutv1.FreshnessState(state + 1).String(); got != want {
			t.Errorf("state %d = %s, want %s", state+1, got, want)
		}
	}
}
