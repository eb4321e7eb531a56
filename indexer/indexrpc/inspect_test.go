package indexrpc_test

import (
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer/indexrpc"
)

func (r *rig) inspect(t testing.TB, req *kvscoutv1.InspectRequest) *kvscoutv1.InspectResponse {
	t.Helper()
	resp, err := r.Inspect(t.Context(), connect.NewRequest(req))
	if err != nil {
		t.Fatal(err)
	}
	return resp.Msg
}

// holders asks who holds a prompt of the only model.
func (r *rig) holders(t testing.TB, prompt *kvscoutv1.Tokens) []*kvscoutv1.PromptHolder {
	t.Helper()
	return r.inspect(t, &kvscoutv1.InspectRequest{Prompt: &kvscoutv1.PromptTarget{Tokens: prompt}}).GetPrompt().GetHolders()
}

// Who holds 1..8 in blocks of 4: w1 the first block on the device and the second on the host only, w0 and w2 the first.
func TestInspect_Prompt(t *testing.T) {
	r := start(t, indexrpc.Options{})
	for _, id := range []string{"w2", "w0", "w1", "w3"} {
		r.register(t, id)
	}
	r.publish(t, "w0", batch(0, payload(t, stored(1, nil, "GPU", 1, 2, 3, 4))))
	r.publish(t, "w2", batch(0, payload(t, stored(1, nil, "GPU", 1, 2, 3, 4))))
	r.publish(t, "w1", batch(0, payload(t, stored(1, nil, "GPU", 1, 2, 3, 4), stored(2, 1, "CPU", 5, 6, 7, 8))))
	r.publish(t, "w3", batch(0, payload(t, stored(1, nil, "GPU", 9, 9, 9, 9))))

	resp := r.inspect(t, &kvscoutv1.InspectRequest{Prompt: &kvscoutv1.PromptTarget{Model: "m", Tokens: tokens(1, 2, 3, 4, 5, 6, 7, 8, 9)}})
	device := &kvscoutv1.BlockRun{Tier: kvscoutv1.Tier_TIER_DEVICE, Blocks: 1}
	host := &kvscoutv1.BlockRun{Tier: kvscoutv1.Tier_TIER_HOST, FirstBlock: 1, Blocks: 1}
	holder := func(id string, runs ...*kvscoutv1.BlockRun) *kvscoutv1.PromptHolder {
		return &kvscoutv1.PromptHolder{WorkerId: id, BlockSize: 4, Runs: runs,
			Bound:     &kvscoutv1.Bound{Kind: kvscoutv1.BoundKind_BOUND_KIND_EXACT},
			Freshness: &kvscoutv1.Freshness{State: kvscoutv1.FreshnessState_FRESHNESS_STATE_LIVE, LastSequence: proto.Uint64(0)}}
	}
	want := &kvscoutv1.PromptHolders{PromptTokens: 9, Holders: []*kvscoutv1.PromptHolder{
		holder("w1", device, host), holder("w0", device), holder("w2", device)}}
	ignore := protocmp.IgnoreFields(&kvscoutv1.Freshness{}, "age_seconds")
	if diff := cmp.Diff(want, resp.GetPrompt(), protocmp.Transform(), ignore); diff != "" {
		t.Errorf("holders (-want +got):\n%s", diff)
	}
	if resp.GetIndexVersion() == 0 || resp.GetSources() != nil {
		t.Errorf("answer = %v", resp)
	}
}

// Salts are secrets: the scopes of a worker tell that there is one, not which.
func TestInspect_Worker(t *testing.T) {
	r := start(t, indexrpc.Options{})
	r.register(t, "w0", func(s *kvscoutv1.WorkerSpec) { s.Ranks = 2 })
	salted := append(stored(5, nil, "GPU", 1, 2, 3, 4), nil, []any{[]any{"tenant-a"}})
	r.publish(t, "w0", batch(0, payload(t, stored(1, nil, "GPU", 1, 2, 3, 4, 5, 6, 7, 8), salted)))

	resp := r.inspect(t, &kvscoutv1.InspectRequest{Worker: &kvscoutv1.WorkerTarget{WorkerId: "w0"}})
	if strings.Contains(resp.String(), "tenant-a") {
		t.Error("the salt is in the answer")
	}
	if len(resp.GetSources()) != 2 || resp.GetPrompt() != nil {
		t.Fatalf("answer = %v", resp)
	}
	want := []*kvscoutv1.ScopeStats{{Model: "m", BlockSize: 4, Blocks: 2}, {Model: "m", BlockSize: 4, Salted: true, Blocks: 1}}
	if diff := cmp.Diff(want, resp.GetSources()[0].GetScopes(), protocmp.Transform()); diff != "" {
		t.Errorf("scopes (-want +got):\n%s", diff)
	}
	one := r.inspect(t, &kvscoutv1.InspectRequest{Worker: &kvscoutv1.WorkerTarget{WorkerId: "w0", Rank: proto.Uint32(1)}})
	if len(one.GetSources()) != 1 || one.GetSources()[0].GetStats().GetRank() != 1 {
		t.Errorf("rank 1: %v", one)
	}
}

func TestInspect_ListsScopesUpToABound(t *testing.T) {
	r := start(t, indexrpc.Options{})
	r.register(t, "w0")
	var events [][]any
	for i := range 300 {
		events = append(events, append(stored(10+i, nil, "GPU", 1, 2, 3, 4), nil, []any{[]any{"tenant-" + strings.Repeat("x", i+1)}}))
	}
	r.publish(t, "w0", batch(0, payload(t, events...)))
	got := r.inspect(t, &kvscoutv1.InspectRequest{Worker: &kvscoutv1.WorkerTarget{WorkerId: "w0"}}).GetSources()[0]
	if len(got.GetScopes()) != 256 || got.GetScopesOmitted() != 44 {
		t.Errorf("%d scopes listed, %d omitted, want 256 and 44", len(got.GetScopes()), got.GetScopesOmitted())
	}
}

func TestInspect_Refuses(t *testing.T) {
	r := start(t, indexrpc.Options{MaxTokens: 4})
	r.register(t, "w0")
	r.register(t, "t0", func(s *kvscoutv1.WorkerSpec) { s.Model, s.Engine = "trt", "trtllm" })
	prompt := func(p *kvscoutv1.PromptTarget) *kvscoutv1.InspectRequest { return &kvscoutv1.InspectRequest{Prompt: p} }
	worker := &kvscoutv1.WorkerTarget{WorkerId: "w0"}
	for _, tt := range []struct {
		req    *kvscoutv1.InspectRequest
		code   connect.Code
		reason string
	}{
		{&kvscoutv1.InspectRequest{}, connect.CodeInvalidArgument, "NO_TARGET"},
		{&kvscoutv1.InspectRequest{Worker: &kvscoutv1.WorkerTarget{}}, connect.CodeInvalidArgument, "NO_TARGET"},
		{&kvscoutv1.InspectRequest{Worker: worker, Prompt: &kvscoutv1.PromptTarget{}}, connect.CodeInvalidArgument, "TWO_TARGETS"},
		{&kvscoutv1.InspectRequest{Worker: &kvscoutv1.WorkerTarget{WorkerId: "w9"}}, connect.CodeNotFound, "UNKNOWN_WORKER"},
		{&kvscoutv1.InspectRequest{Worker: &kvscoutv1.WorkerTarget{WorkerId: "w0", Rank: proto.Uint32(3)}}, connect.CodeNotFound, "UNKNOWN_RANK"},
		{prompt(&kvscoutv1.PromptTarget{Model: "m"}), connect.CodeInvalidArgument, "NO_PROMPT"},
		{prompt(&kvscoutv1.PromptTarget{Tokens: tokens(1)}), connect.CodeInvalidArgument, "MODEL_REQUIRED"},
		{prompt(&kvscoutv1.PromptTarget{Model: "x", Tokens: tokens(1)}), connect.CodeNotFound, "UNKNOWN_MODEL"},
		{prompt(&kvscoutv1.PromptTarget{Model: strings.Repeat("x", 2000), Tokens: tokens(1)}), connect.CodeNotFound, "UNKNOWN_MODEL"},
		{prompt(&kvscoutv1.PromptTarget{Model: "m", Tokens: tokens(1, 2, 3, 4, 5)}), connect.CodeResourceExhausted, "PROMPT_TOO_LONG"},
		{prompt(&kvscoutv1.PromptTarget{Model: "trt", Tokens: tokens(1), CacheSalt: "s"}), connect.CodeFailedPrecondition, "SALT_NOT_SUPPORTED_BY_ENGINE"},
	} {
		_, err := r.Inspect(t.Context(), connect.NewRequest(tt.req))
		wantReason(t, err, tt.code, tt.reason)
	}
}
