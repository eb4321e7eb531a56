package scorerpc_test

import (
	"context"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/render"
	"github.com/kvscout/kvscout/scorer/scorerpc"
)

// Stats has how long answered requests took, of every way to ask; what was refused is not among them.
func TestStats_Latency(t *testing.T) {
	r := start(t, scorerpc.Options{})
	r.worker(t, "w0", "m", events.EngineVLLM)
	if got := r.service.Stats().GetLatency(); got.GetCount() != 0 || len(got.GetBuckets()) != 0 {
		t.Fatalf("before any call: %v", got)
	}
	ask := &kvscoutv1.ScoreRequest{Tokens: ids(seq(1, 16))}
	refused := &kvscoutv1.ScoreRequest{Model: "x", Tokens: ids(seq(1, 16))}
	begin := time.Now()
	r.score(t, ask)
	if _, err := r.Score(t.Context(), connect.NewRequest(refused)); err == nil {
		t.Fatal("answered about a model that is not known")
	}
	if _, err := r.ScoreBatch(t.Context(), connect.NewRequest(&kvscoutv1.ScoreBatchRequest{Requests: []*kvscoutv1.ScoreRequest{ask, refused, ask}})); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begin).Seconds()
	got := r.service.Stats().GetLatency()
	var low, high float64
	var count uint64
	for _, b := range got.GetBuckets() {
		low, high, count = low+float64(b.GetCount())*b.GetLowerSeconds(), high+float64(b.GetCount())*b.GetUpperSeconds(), count+b.GetCount()
	}
	// Two requests of the batch may run side by side.
	if got.GetCount() != 3 || count != 3 || got.GetSumSeconds() < low || got.GetSumSeconds() > high || low > 2*took {
		t.Errorf("%v: %d in buckets that say %v to %v s; all took %v s", got, count, low, high, took)
	}
}

// The wait for a renderer is in the latency, and the call is under way meanwhile.
func TestStats_InFlight(t *testing.T) {
	const wait = 50 * time.Millisecond
	entered := make(chan struct{})
	r := start(t, scorerpc.Options{MaxCalls: 7, Renderer: slow{entered: entered, wait: wait}})
	r.worker(t, "w0", "m", events.EngineVLLM)
	done := make(chan error, 1)
	go func() { // ends with the renderer, waited for below
		_, err := r.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{
			HttpRequest: &kvscoutv1.HttpRequest{Path: "/v1/completions", Body: []byte(`{"model":"m","prompt":"x"}`)},
		}))
		done <- err
	}()
	<-entered
	if s := r.service.Stats(); s.GetInFlight() != 1 || s.GetMaxInFlight() != 7 || s.GetLatency().GetCount() != 0 {
		t.Errorf("while it renders: %v", s)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if s := r.service.Stats(); s.GetInFlight() != 0 || s.GetLatency().GetSumSeconds() < wait.Seconds() {
		t.Errorf("afterwards: %v", s)
	}
}

// slow answers a while after it has told that it was asked.
type slow struct {
	entered chan<- struct{}
	wait    time.Duration
}

func (s slow) Render(context.Context, render.Request) (render.Result, error) {
	close(s.entered)
	time.Sleep(s.wait)
	return render.Result{Prompts: []render.Prompt{{Tokens: []uint32{1, 2, 3, 4}}}}, nil
}
