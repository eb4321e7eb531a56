package scorerpc_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer/ingest"
	"github.com/kvscout/kvscout/scorer/scorerpc"
)

func order(resp *kvscoutv1.ScoreResponse) (out []string) {
	for _, w := range resp.GetWorkers() {
		out = append(out, w.GetWorkerId())
	}
	return out
}

func TestScore_MaxWorkers(t *testing.T) {
	r := three(t)
	for n, want := range map[uint32][]string{0: {"w2", "w1", "w0"}, 1: {"w2"}, 2: {"w2", "w1"}, 3: {"w2", "w1", "w0"}, 9: {"w2", "w1", "w0"}} {
		resp := r.score(t, &kvscoutv1.ScoreRequest{Model: "m", Tokens: ids(seq(1, 16)), MaxWorkers: n})
		if diff := cmp.Diff(want, order(resp)); diff != "" || int(resp.GetWorkersOmitted()) != 3-len(want) {
			t.Errorf("%d: %d omitted, %s", n, resp.GetWorkersOmitted(), diff)
		}
	}
}

// The best holder that is not rated is told: no candidate, or of another role.
func TestScore_BestOutside(t *testing.T) {
	r := three(t)
	r.worker(t, "d", "m", events.EngineVLLM, blockSize(4), func(w *ingest.Worker) { w.Role = ingest.RoleDecode })
	r.publish(t, "d", store{first: 1, tokens: seq(1, 16), size: 4}.event())
	for name, tt := range map[string]struct {
		req  *kvscoutv1.ScoreRequest
		want string
		held uint32
	}{
		"all are rated":     {&kvscoutv1.ScoreRequest{}, "", 0},
		"candidates":        {&kvscoutv1.ScoreRequest{Candidates: []string{"w0", "d"}}, "w2", 12},
		"the best is asked": {&kvscoutv1.ScoreRequest{Candidates: []string{"w0", "w2", "d"}}, "w1", 8},
		"role":              {&kvscoutv1.ScoreRequest{Role: kvscoutv1.Role_ROLE_PREFILL}, "d", 16},
		"candidate of another role": {
			&kvscoutv1.ScoreRequest{Role: kvscoutv1.Role_ROLE_PREFILL, Candidates: []string{"w0", "d"}}, "d", 16},
		"nobody holds it": {&kvscoutv1.ScoreRequest{Candidates: []string{"w0"}, Tokens: ids(seq(50, 60))}, "", 0},
	} {
		tt.req.Model = "m"
		if tt.req.Tokens == nil {
			tt.req.Tokens = ids(seq(1, 16))
		}
		got := r.score(t, tt.req).GetBestOutside()
		if got.GetWorkerId() != tt.want || got.GetHeldTokens() != tt.held {
			t.Errorf("%s: %v, want %q", name, got, tt.want)
		}
	}
}

// What each KV-cache group holds, where, and why the match ended.
func TestScore_Explain(t *testing.T) {
	r := start(t, scorerpc.Options{})
	r.worker(t, "w0", "m", events.EngineVLLM)
	r.publish(t, "w0",
		store{first: 1, tokens: seq(1, 16), size: 4}.event(),
		store{first: 3, parent: 2, tokens: seq(9, 20), size: 4, medium: "CPU"}.event(),
		[]any{"BlockRemoved", []any{3}, "GPU"},
	)
	r.worker(t, "w1", "m", events.EngineVLLM)
	r.publish(t, "w1", store{first: 1, tokens: seq(1, 20), size: 4}.event())
	r.worker(t, "w2", "m", events.EngineVLLM)
	if e := r.score(t, &kvscoutv1.ScoreRequest{Tokens: ids(seq(1, 22))}).GetWorkers()[0].GetExplanation(); e != nil {
		t.Errorf("explained though not asked: %v", e)
	}
	run := func(tier kvscoutv1.Tier, first, blocks uint32) *kvscoutv1.BlockRun {
		return &kvscoutv1.BlockRun{Tier: tier, FirstBlock: first, Blocks: blocks}
	}
	const device, host = kvscoutv1.Tier_TIER_DEVICE, kvscoutv1.Tier_TIER_HOST
	want := map[string]*kvscoutv1.GroupHolding{
		"w0": {BlockSize: 4, LeadingBlocks: 5, End: kvscoutv1.MatchEnd_MATCH_END_NOT_HELD,
			Runs: []*kvscoutv1.BlockRun{run(device, 0, 2), run(host, 2, 1), run(device, 3, 1), run(host, 4, 1)}},
		"w1": {BlockSize: 4, LeadingBlocks: 5, End: kvscoutv1.MatchEnd_MATCH_END_NOT_HELD, Runs: []*kvscoutv1.BlockRun{run(device, 0, 5)}},
		"w2": nil,
	}
	for _, w := range r.score(t, &kvscoutv1.ScoreRequest{Tokens: ids(seq(1, 26)), Explain: true}).GetWorkers() {
		var got *kvscoutv1.GroupHolding
		if groups := w.GetExplanation().GetGroups(); len(groups) == 1 {
			got = groups[0]
		}
		if diff := cmp.Diff(want[w.GetWorkerId()], got, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", w.GetWorkerId(), diff)
		}
	}
	for _, w := range r.score(t, &kvscoutv1.ScoreRequest{Tokens: ids(seq(1, 23)), Explain: true, MaxWorkers: 2}).GetWorkers() {
		if end := w.GetExplanation().GetGroups()[0].GetEnd(); end != kvscoutv1.MatchEnd_MATCH_END_PROMPT {
			t.Errorf("%s holds all full blocks, and ended by %v", w.GetWorkerId(), end)
		}
	}
}
