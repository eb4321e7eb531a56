package scorerpc_test

import (
	"context"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/scorerpc"
	"github.com/kvscout/kvscout/scorer/turn"
)

// Rule 17: a request that does not get its turn is OVERLOADED with when to come again, of a batch it alone; those that wait are told.
func TestRule17_NoTurn(t *testing.T) {
	turns := turn.New(turn.Options{MaxWaiting: 1, MaxWait: time.Hour})
	fake := new(fakeVLLM)
	r := start(t, scorerpc.Options{Turns: turns, Renderer: fake.renderer(t, `{"token_ids":[1,2,3,4]}`)})
	r.worker(t, "w0", "m", events.EngineVLLM)
	ask := &kvscoutv1.ScoreRequest{Tokens: ids(seq(1, 4))}
	taken := 0
	for ; ; taken++ { // until there is no turn left
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err := turns.Enter(ctx)
		cancel()
		if err != nil {
			break
		}
	}
	waited := make(chan error, 1)
	go func() { waited <- turns.Enter(t.Context()) }() // ended by Leave below, waited for on waited
	eventually(t, func() bool { return turns.Waiting() == 1 })
	if got := r.service.Stats().GetWaiting(); got != 1 {
		t.Errorf("%d wait", got)
	}
	_, err := r.Score(t.Context(), connect.NewRequest(ask))
	wantReason(t, err, connect.CodeResourceExhausted, "OVERLOADED")
	if retryOf(err) <= 0 {
		t.Error("no RetryInfo")
	}
	// It is rendered all the same: renders are bounded by the renderer.
	_, err = r.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{HttpRequest: chat(`{}`)}))
	wantReason(t, err, connect.CodeResourceExhausted, "OVERLOADED")
	if fake.asked.Load() != 1 {
		t.Errorf("the renderer was asked %d times", fake.asked.Load())
	}
	res, err := r.ScoreBatch(t.Context(), connect.NewRequest(&kvscoutv1.ScoreBatchRequest{Requests: []*kvscoutv1.ScoreRequest{ask, {Model: "x", Tokens: ask.Tokens}}}))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := res.Msg.GetResults()[0].GetError(), res.Msg.GetResults()[1].GetError(); a.GetReason() != "OVERLOADED" || a.GetRetryAfter().AsDuration() <= 0 || b.GetReason() != "UNKNOWN_MODEL" {
		t.Errorf("a batch: %v, %v", a, b)
	}
	if got := r.service.Stats().GetErrors()["OVERLOADED"]; got != 3 {
		t.Errorf("%d were counted", got)
	}
	for range taken {
		turns.Leave()
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
	turns.Leave()
	if got := r.score(t, ask); len(got.GetWorkers()) != 1 {
		t.Errorf("with turns again: %v", got)
	}
}
