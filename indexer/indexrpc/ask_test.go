package indexrpc_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/kvscout/kvscout/events/discover"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer/indexrpc"
)

// asking is a service that asks workers, beside the serving port of a vLLM with two ranks, in the form of
// vllm-project/vllm#55844. Nobody listens at the endpoints that it tells.
func asking(t *testing.T) (r *rig, url string, replay *atomic.Int64) {
	t.Helper()
	replay = new(atomic.Int64)
	replay.Store(11)
	mux := http.NewServeMux()
	mux.HandleFunc("/kv_event_sources", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `[{"data_parallel_rank":0,"endpoint":"tcp://*:1","replay_endpoint":"tcp://*:%d","topic":"kv"},
			{"data_parallel_rank":1,"endpoint":"tcp://*:2","replay_endpoint":"tcp://*:12","topic":"kv"}]`, replay.Load())
	})
	mux.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"tiny","parent":null},{"id":"lora","parent":"tiny"}]}`)
	})
	mux.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"version":"0.32.0"}`) })
	port := httptest.NewServer(mux)
	t.Cleanup(port.Close)
	asker := discover.NewAsker(discover.AskerOptions{})
	t.Cleanup(asker.Close)
	return start(t, indexrpc.Options{Describe: asker.Describe}), port.URL, replay
}

// A worker of which only the URL is stated tells the rest. What is stated goes first, and labels stay mere labels.
func TestRegisterWorker_ByURL(t *testing.T) {
	r, url, replay := asking(t)
	only := func(s *kvscoutv1.WorkerSpec) {
		s.Model, s.Engine, s.Url, s.Labels = "", "", url, map[string]string{"role": "prefill"}
		s.Speculative = "eagle"
	}
	want := &kvscoutv1.WorkerSpec{
		WorkerId: "w", Url: url, Labels: map[string]string{"role": "prefill"}, Model: "tiny", Adapters: []string{"lora"},
		Engine: "vllm", EngineVersion: "0.32.0", Ranks: 2, EventEndpoint: "tcp://127.0.0.1:1", ReplayEndpoint: "tcp://127.0.0.1:11",
		Topic: "kv", Speculative: "eagle",
	}
	got := r.register(t, "w", only)
	if diff := cmp.Diff(want, got.GetWorker().GetSpec(), protocmp.Transform()); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	sources := got.GetWorker().GetSources()
	if len(sources) != 2 || sources[1].GetEventEndpoint() != "tcp://127.0.0.1:2" || sources[1].GetReplayEndpoint() != "tcp://127.0.0.1:12" {
		t.Errorf("sources = %v", sources)
	}
	if r.register(t, "w", only).GetReplaced() {
		t.Error("the same call replaced the worker, though it tells the same")
	}
	replay.Store(13)
	if again := r.register(t, "w", only); !again.GetReplaced() || again.GetWorker().GetSpec().GetReplayEndpoint() != "tcp://127.0.0.1:13" {
		t.Errorf("the worker tells otherwise now: %v", again)
	}
	if got := r.register(t, "w2", func(s *kvscoutv1.WorkerSpec) { s.Url, s.Model = url, "mine" }).GetWorker().GetSpec().GetModel(); got != "mine" {
		t.Errorf("the model is %q, stated as mine", got)
	}
}

// A worker that does not tell changes nothing; one that need not be asked is not.
func TestRegisterWorker_ByURL_Errors(t *testing.T) {
	r, url, _ := asking(t)
	try := func(spec *kvscoutv1.WorkerSpec) error {
		_, err := r.RegisterWorker(t.Context(), connect.NewRequest(&kvscoutv1.RegisterWorkerRequest{Worker: spec}))
		return err
	}
	const nobody = "http://127.0.0.1:1"
	r.register(t, "w", func(s *kvscoutv1.WorkerSpec) { s.Url, s.EventEndpoint = nobody, "tcp://127.0.0.1:1" })
	before := r.list(t, &kvscoutv1.ListWorkersRequest{Model: "m"})
	for _, down := range []string{nobody, "http://169.254.169.254"} {
		wantReason(t, try(&kvscoutv1.WorkerSpec{WorkerId: "w", Url: down}), connect.CodeUnavailable, "WORKER_DOWN")
	}
	for name, spec := range map[string]*kvscoutv1.WorkerSpec{
		"no URL":            {WorkerId: "x", Url: "127.0.0.1:8000"},
		"no URL, not asked": {WorkerId: "x", Url: "w0", Model: "m", Engine: "vllm", EventEndpoint: "tcp://127.0.0.1:1"},
		"ranks":             {WorkerId: "x", Url: url, Ranks: 2},
		"replay alone":      {WorkerId: "x", Url: url, ReplayEndpoint: "tcp://x:1"},
		"role":              {WorkerId: "x", Url: url, Role: 9},
	} {
		t.Run(name, func(t *testing.T) { wantReason(t, try(spec), connect.CodeInvalidArgument, "BAD_WORKER") })
	}
	if diff := cmp.Diff(before, r.list(t, &kvscoutv1.ListWorkersRequest{})); diff != "" {
		t.Errorf("workers (-before +after):\n%s", diff)
	}
	r = start(t, indexrpc.Options{})
	wantReason(t, try(&kvscoutv1.WorkerSpec{WorkerId: "x", Url: url}), connect.CodeInvalidArgument, "BAD_WORKER")
}
