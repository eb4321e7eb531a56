package scorerpc_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer/ingest"
	"github.com/kvscout/kvscout/scorer/scorerpc"
)

func ptr[T any](v T) *T { return &v }

// crediting runs the service's own goroutine until the test ends.
func crediting(t testing.TB, r *rig) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); r.service.Run(ctx) }() // ended by cancel, waited for below
	t.Cleanup(func() { cancel(); <-done })
}

func blockSize(n int) func(*ingest.Worker) {
	return func(w *ingest.Worker) { w.Sources[0].BlockSize = n }
}

func (r *rig) route(t testing.TB, req *kvscoutv1.ReportRoutedRequest, want uint32) {
	t.Helper()
	resp, err := r.ReportRouted(t.Context(), connect.NewRequest(req))
	if err != nil || resp.Msg.GetCreditedTokens() != want {
		t.Fatalf("credited %d tokens, %v; want %d", resp.Msg.GetCreditedTokens(), err, want)
	}
}

// until polls: nothing tells when a credit has ended.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("in vain: ", what)
		}
	}
}

// A choice counts at once, apart from what is held, and no more once events have confirmed it.
func TestReportRouted_Case141_UntilConfirmed(t *testing.T) {
	r := start(t, scorerpc.Options{})
	crediting(t, r)
	r.worker(t, "w0", "m", events.EngineVLLM, blockSize(4))
	r.worker(t, "w1", "m", events.EngineVLLM, blockSize(4))
	r.publish(t, "w0", store{first: 1, tokens: seq(1, 4), size: 4}.event())
	req := &kvscoutv1.ScoreRequest{Tokens: ids(seq(1, 16)), Remember: true}
	first := r.score(t, req)
	r.route(t, &kvscoutv1.ReportRoutedRequest{WorkerId: "w0", ScoreId: first.GetScoreId(), Ttl: durationpb.New(time.Minute)}, 16)
	r.route(t, &kvscoutv1.ReportRoutedRequest{
		WorkerId: "w1", Prompt: &kvscoutv1.PromptTarget{Tokens: ids(seq(1, 10))}, Ttl: durationpb.New(time.Minute),
	}, 8)
	got := r.score(t, req).GetWorkers()
	w0, w1 := got[0], got[1]
	if w0.GetWorkerId() != "w0" || w0.GetHeldTokens() != 4 || w0.GetReusableTokens() != 4 || w0.GetPredictedTokens() != 12 || w0.GetScore() != 1 {
		t.Errorf("credited beyond what is held: %v", w0)
	}
	if w1.GetHeldTokens() != 0 || w1.GetPredictedTokens() != 8 || w1.GetScore() != 0.5 {
		t.Errorf("credited from nothing: %v", w1)
	}
	r.publish(t, "w0", store{first: 2, parent: 1, tokens: seq(5, 16), size: 4}.event())
	until(t, "confirmation", func() bool { return r.service.Stats().GetRoutedConfirmed() == 1 })
	r.publish(t, "w0", []any{"BlockRemoved", []any{2, 3, 4}, "GPU"})
	if w := r.score(t, req).GetWorkers()[1]; w.GetWorkerId() != "w0" || w.GetPredictedTokens() != 0 || w.GetScore() != 0.25 {
		t.Errorf("confirmed and evicted: %v", w)
	}
	if s := r.service.Stats(); s.GetRouted() != 2 || s.GetRoutedWaiting() != 1 || s.GetRemembered() != 3 {
		t.Errorf("stats %v", s)
	}
}

// A prediction cannot lift an answer above what events could confirm: not of a salted prompt of an engine that publishes
// no salts, of a stale source, or where a slower tier is worth more.
func TestReportRouted_NeverAboveConfirmation(t *testing.T) {
	r := start(t, scorerpc.Options{})
	crediting(t, r)
	r.worker(t, "w0", "m", events.EngineVLLM, blockSize(4))
	r.publish(t, "w0", store{first: 1, tokens: seq(1, 8), size: 4, medium: "CPU"}.event())
	r.route(t, &kvscoutv1.ReportRoutedRequest{WorkerId: "w0", Prompt: &kvscoutv1.PromptTarget{Tokens: ids(seq(1, 16))}, Ttl: durationpb.New(time.Minute)}, 16)
	weights := &kvscoutv1.TierWeights{Device: ptr(0.25), Host: ptr(1.0)}
	// Confirmed it would be 16 tokens of 0.25; held are 8 of 1. So it stays.
	if w := r.score(t, &kvscoutv1.ScoreRequest{Tokens: ids(seq(1, 16)), TierWeights: weights}).GetWorkers()[0]; w.GetScore() != 0.5 || w.GetPredictedTokens() != 8 {
		t.Errorf("host worth more: %v", w)
	}
	if w := r.score(t, &kvscoutv1.ScoreRequest{Tokens: ids(seq(1, 16))}).GetWorkers()[0]; w.GetScore() != 0.5*0.75+0.5 {
		t.Errorf("device beyond host: %v", w)
	}
	if w := r.score(t, &kvscoutv1.ScoreRequest{Tokens: ids(seq(1, 16)), CacheSalt: "s"}).GetWorkers()[0]; w.GetPredictedTokens() != 0 {
		t.Errorf("of another namespace: %v", w)
	}
}

func TestReportRouted_Errors(t *testing.T) {
	r := start(t, scorerpc.Options{})
	r.worker(t, "w0", "m", events.EngineVLLM, blockSize(4))
	r.worker(t, "other", "n", events.EngineVLLM, blockSize(4))
	hashes := r.score(t, &kvscoutv1.ScoreRequest{Model: "m", BlockHashes: &kvscoutv1.BlockHashes{BlockSize: 4, Packed: make([]byte, 8)}, Remember: true})
	prompt := &kvscoutv1.PromptTarget{Model: "m", Tokens: ids(seq(1, 8))}
	for _, tt := range []struct {
		reason string
		code   connect.Code
		req    *kvscoutv1.ReportRoutedRequest
	}{
		{"BAD_WORKER", connect.CodeInvalidArgument, &kvscoutv1.ReportRoutedRequest{Prompt: prompt}},
		{"UNKNOWN_WORKER", connect.CodeNotFound, &kvscoutv1.ReportRoutedRequest{WorkerId: "w9", Prompt: prompt}},
		{"UNKNOWN_RANK", connect.CodeNotFound, &kvscoutv1.ReportRoutedRequest{WorkerId: "w0", Rank: 3, Prompt: prompt}},
		{"NO_PROMPT", connect.CodeInvalidArgument, &kvscoutv1.ReportRoutedRequest{WorkerId: "w0"}},
		{"TWO_PROMPTS", connect.CodeInvalidArgument, &kvscoutv1.ReportRoutedRequest{WorkerId: "w0", Prompt: prompt, ScoreId: "x"}},
		{"UNKNOWN_SCORE", connect.CodeNotFound, &kvscoutv1.ReportRoutedRequest{WorkerId: "w0", ScoreId: "x"}},
		{"NOT_CREDITABLE", connect.CodeFailedPrecondition, &kvscoutv1.ReportRoutedRequest{WorkerId: "w0", ScoreId: hashes.GetScoreId()}},
		{"NOT_CREDITABLE", connect.CodeFailedPrecondition, &kvscoutv1.ReportRoutedRequest{WorkerId: "other", Prompt: prompt}},
		{"BAD_TTL", connect.CodeInvalidArgument, &kvscoutv1.ReportRoutedRequest{WorkerId: "w0", Prompt: prompt, Ttl: durationpb.New(-1)}},
		{"BAD_TTL", connect.CodeInvalidArgument, &kvscoutv1.ReportRoutedRequest{WorkerId: "w0", Prompt: prompt, Ttl: durationpb.New(time.Hour)}},
		{"UNKNOWN_MODEL", connect.CodeNotFound, &kvscoutv1.ReportRoutedRequest{WorkerId: "w0", Prompt: &kvscoutv1.PromptTarget{Model: "x", Tokens: ids(seq(1, 8))}}},
	} {
		_, err := r.ReportRouted(t.Context(), connect.NewRequest(tt.req))
		wantReason(t, err, tt.code, tt.reason)
	}
	if n := r.service.Stats().GetErrors()["NOT_CREDITABLE"]; n != 2 {
		t.Errorf("%d refusals are counted", n)
	}
}

func TestReportOutcome_Errors(t *testing.T) {
	r := start(t, scorerpc.Options{})
	r.worker(t, "w0", "m", events.EngineVLLM, blockSize(4))
	r.worker(t, "w1", "m", events.EngineVLLM, blockSize(4))
	id := r.score(t, &kvscoutv1.ScoreRequest{Tokens: ids(seq(1, 16)), Candidates: []string{"w0"}, Remember: true}).GetScoreId()
	outcome := func(edit func(*kvscoutv1.ReportOutcomeRequest)) error {
		req := &kvscoutv1.ReportOutcomeRequest{WorkerId: "w0", ScoreId: id, PromptTokens: 16, CachedTokens: 8}
		edit(req)
		_, err := r.ReportOutcome(t.Context(), connect.NewRequest(req))
		return err
	}
	wantReason(t, outcome(func(o *kvscoutv1.ReportOutcomeRequest) { o.ScoreId = "" }), connect.CodeInvalidArgument, "NO_SCORE_ID")
	wantReason(t, outcome(func(o *kvscoutv1.ReportOutcomeRequest) { o.ScoreId = "x" }), connect.CodeNotFound, "UNKNOWN_SCORE")
	wantReason(t, outcome(func(o *kvscoutv1.ReportOutcomeRequest) { o.WorkerId = "" }), connect.CodeInvalidArgument, "BAD_WORKER")
	wantReason(t, outcome(func(o *kvscoutv1.ReportOutcomeRequest) { o.WorkerId = "w1" }), connect.CodeNotFound, "UNKNOWN_WORKER")
	wantReason(t, outcome(func(o *kvscoutv1.ReportOutcomeRequest) { o.Rank = 1 }), connect.CodeNotFound, "UNKNOWN_RANK")
	wantReason(t, outcome(func(o *kvscoutv1.ReportOutcomeRequest) { o.PromptTokens = 0 }), connect.CodeInvalidArgument, "BAD_OUTCOME")
	wantReason(t, outcome(func(o *kvscoutv1.ReportOutcomeRequest) { o.CachedTokens = 17 }), connect.CodeInvalidArgument, "BAD_OUTCOME")
	if err := outcome(func(*kvscoutv1.ReportOutcomeRequest) {}); err != nil {
		t.Error(err)
	}
	wantReason(t, outcome(func(*kvscoutv1.ReportOutcomeRequest) {}), connect.CodeFailedPrecondition, "ALREADY_REPORTED")
}

// A worker whose numbers miss is flagged in every answer, until it is registered anew.
func TestReportOutcome_FlagsAnswers(t *testing.T) {
	r := start(t, scorerpc.Options{})
	r.worker(t, "w0", "m", events.EngineVLLM, blockSize(4))
	r.publish(t, "w0", store{first: 1, tokens: seq(1, 16), size: 4}.event())
	req := &kvscoutv1.ScoreRequest{Tokens: ids(seq(1, 20)), Remember: true}
	for range 16 {
		resp := r.score(t, req)
		if f := resp.GetWorkers()[0].GetFlagged(); f != nil {
			t.Fatalf("flagged too early: %v", f)
		}
		out, err := r.ReportOutcome(t.Context(), connect.NewRequest(&kvscoutv1.ReportOutcomeRequest{
			WorkerId: "w0", ScoreId: resp.GetScoreId(), PromptTokens: 20, CachedTokens: 0,
		}))
		if err != nil || out.Msg.GetPredictedTokens() != 16 {
			t.Fatalf("%v, %v", out, err)
		}
	}
	f := r.score(t, req).GetWorkers()[0].GetFlagged()
	if f.GetCause() != kvscoutv1.AccuracyCause_ACCURACY_CAUSE_HIDDEN_NAMESPACE || f.GetOver() != 16 || f.GetOverTokens() != 256 || f.GetRecent() != 0 {
		t.Errorf("flagged as %v", f)
	}
	if a := r.service.Accuracy("w0", 0); a.GetOutcomes() != 16 {
		t.Errorf("accuracy %v", a)
	}
	r.fleet.Deregister("w0", nil)
	r.worker(t, "w0", "m", events.EngineVLLM, blockSize(4))
	if w := r.score(t, req).GetWorkers()[0]; w.GetFlagged() != nil || r.service.Accuracy("w0", 0) != nil {
		t.Errorf("registered anew: %v", w)
	}
}

// What an error of a report says is no secret: no salt, no token (rule of section 7).
func TestReports_KeepSecrets(t *testing.T) {
	r := start(t, scorerpc.Options{})
	r.worker(t, "w0", "m", events.EngineTRTLLM, blockSize(4))
	r.worker(t, "w1", "m", events.EngineVLLM, blockSize(4))
	_, err := r.ReportRouted(t.Context(), connect.NewRequest(&kvscoutv1.ReportRoutedRequest{
		WorkerId: "w0", Prompt: &kvscoutv1.PromptTarget{Tokens: ids(seq(987654, 987670)), CacheSalt: "s3cret"},
	}))
	wantReason(t, err, connect.CodeFailedPrecondition, "NOT_CREDITABLE")
	if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "98765") {
		t.Errorf("%v", err)
	}
}
