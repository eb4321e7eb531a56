package indexrpc_test

import (
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/indexer/ingest"
)

func (r *rig) list(t testing.TB, req *kvscoutv1.ListWorkersRequest) []string {
	t.Helper()
	resp, err := r.ListWorkers(t.Context(), connect.NewRequest(req))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, w := range resp.Msg.GetWorkers() {
		ids = append(ids, w.GetSpec().GetWorkerId())
	}
	return ids
}

// The worker comes back as it was given, with one source per rank, each at its own port.
func TestRegisterWorker_ShowsWhatWasGiven(t *testing.T) {
	r := start(t, indexrpc.Options{})
	spec := &kvscoutv1.WorkerSpec{
		WorkerId: "10.0.0.1:8000", Labels: map[string]string{"zone": "a"}, Role: kvscoutv1.Role_ROLE_DECODE,
		Model: "m", ModelAliases: []string{"alias"}, Engine: "sglang", EngineVersion: "0.5.23", BlockSize: 16, Ranks: 2,
		// Nobody listens there: that is no error (case 147).
		EventEndpoint: "tcp://127.0.0.1:1", ReplayEndpoint: "tcp://127.0.0.1:11", Topic: "kv",
		Speculative: "eagle", PairKeys: true, ReuseReports: true, HashFormat: "dynamo", Unpublished: []string{"namespace"},
	}
	resp, err := r.RegisterWorker(t.Context(), connect.NewRequest(&kvscoutv1.RegisterWorkerRequest{Worker: spec}))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(spec, resp.Msg.GetWorker().GetSpec(), protocmp.Transform()); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	sources := resp.Msg.GetWorker().GetSources()
	if len(sources) != 2 || sources[1].GetRank() != 1 || sources[1].GetEventEndpoint() != "tcp://127.0.0.1:2" || sources[1].GetReplayEndpoint() != "tcp://127.0.0.1:12" {
		t.Errorf("sources = %v", sources)
	}
	if got := sources[0].GetBlockSizes(); !cmp.Equal(got, []uint32{16}) {
		t.Errorf("block sizes = %v, want the configured one", got)
	}
}

// Case 147: twice is as once, another description replaces, deregistering twice is no error.
func TestRegisterWorker_Case147(t *testing.T) {
	r := start(t, indexrpc.Options{})
	if r.register(t, "w0").GetReplaced() {
		t.Error("a new worker replaced one")
	}
	r.publish(t, "w0", batch(0, unhex(t, stored8)))
	if r.register(t, "w0").GetReplaced() {
		t.Error("the same worker replaced itself")
	}
	if got := r.holders(t, tokens(1, 2, 3, 4)); len(got) != 1 {
		t.Errorf("%d holders after registering again, want 1", len(got))
	}
	if !r.register(t, "w0", func(s *kvscoutv1.WorkerSpec) { s.BlockSize = 4 }).GetReplaced() {
		t.Error("another description did not replace")
	}
	if got := r.holders(t, tokens(1, 2, 3, 4)); len(got) != 0 {
		t.Errorf("%d holders after the replacement, want 0", len(got))
	}
	for _, want := range []bool{true, false} {
		resp, err := r.DeregisterWorker(t.Context(), connect.NewRequest(&kvscoutv1.DeregisterWorkerRequest{WorkerId: "w0"}))
		if err != nil || resp.Msg.GetKnown() != want {
			t.Errorf("deregister: %v, %v, want known = %v", resp, err, want)
		}
	}
}

func TestDeregisterWorker_Rank(t *testing.T) {
	r := start(t, indexrpc.Options{})
	r.register(t, "w0", func(s *kvscoutv1.WorkerSpec) { s.Ranks = 2 })
	for _, tt := range []struct {
		rank  uint32
		known bool
	}{{7, false}, {0, true}, {0, false}} {
		resp, err := r.DeregisterWorker(t.Context(), connect.NewRequest(&kvscoutv1.DeregisterWorkerRequest{WorkerId: "w0", Rank: &tt.rank}))
		if err != nil || resp.Msg.GetKnown() != tt.known {
			t.Errorf("rank %d: %v, %v, want known = %v", tt.rank, resp, err, tt.known)
		}
	}
	resp, err := r.ListWorkers(t.Context(), connect.NewRequest(&kvscoutv1.ListWorkersRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	w := resp.Msg.GetWorkers()[0]
	if w.GetSpec().GetRanks() != 1 || len(w.GetSources()) != 1 || w.GetSources()[0].GetRank() != 1 {
		t.Errorf("worker after the loss of rank 0: %v", w)
	}
}

func TestListWorkers_Filters(t *testing.T) {
	r := start(t, indexrpc.Options{})
	for id, role := range map[string]kvscoutv1.Role{"any": 0, "prefill": 1, "decode": 2, "both": 3} {
		r.register(t, id, func(s *kvscoutv1.WorkerSpec) { s.Role, s.ModelAliases = role, []string{"alias"} })
	}
	r.register(t, "other", func(s *kvscoutv1.WorkerSpec) { s.Model = "n" })
	for _, tt := range []struct {
		req  *kvscoutv1.ListWorkersRequest
		want []string
	}{
		{&kvscoutv1.ListWorkersRequest{}, []string{"any", "both", "decode", "other", "prefill"}},
		{&kvscoutv1.ListWorkersRequest{Model: "n"}, []string{"other"}},
		{&kvscoutv1.ListWorkersRequest{Model: "alias", Role: kvscoutv1.Role_ROLE_PREFILL}, []string{"any", "both", "prefill"}},
		{&kvscoutv1.ListWorkersRequest{Model: "m", Role: kvscoutv1.Role_ROLE_BOTH}, []string{"any", "both"}},
		{&kvscoutv1.ListWorkersRequest{Model: "unheard"}, nil},
	} {
		if diff := cmp.Diff(tt.want, r.list(t, tt.req)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt.req, diff)
		}
	}
	_, err := r.ListWorkers(t.Context(), connect.NewRequest(&kvscoutv1.ListWorkersRequest{Role: 9}))
	wantReason(t, err, connect.CodeInvalidArgument, "BAD_ROLE")
}

func TestRegisterWorker_Refuses(t *testing.T) {
	r := start(t, indexrpc.Options{}, ingest.Options{MaxWorkers: 1})
	long := strings.Repeat("x", 1025)
	edits := map[string]func(*kvscoutv1.WorkerSpec){
		"no id":          func(s *kvscoutv1.WorkerSpec) { s.WorkerId = "" },
		"no model":       func(s *kvscoutv1.WorkerSpec) { s.Model = "" },
		"no engine":      func(s *kvscoutv1.WorkerSpec) { s.Engine = "" },
		"unknown engine": func(s *kvscoutv1.WorkerSpec) { s.Engine = "lmdeploy" },
		"role":           func(s *kvscoutv1.WorkerSpec) { s.Role = 9 },
		"ranks":          func(s *kvscoutv1.WorkerSpec) { s.Ranks = 1025 },
		"block size":     func(s *kvscoutv1.WorkerSpec) { s.BlockSize = 1 << 31 },
		"speculative":    func(s *kvscoutv1.WorkerSpec) { s.Speculative = "medusa" },
		"endpoint":       func(s *kvscoutv1.WorkerSpec) { s.EventEndpoint = "http://x:1" },
		"port":           func(s *kvscoutv1.WorkerSpec) { s.EventEndpoint = "tcp://x:65535"; s.Ranks = 2 },
		"colliding ports": func(s *kvscoutv1.WorkerSpec) {
			s.EventEndpoint, s.ReplayEndpoint = "tcp://x:5", "tcp://x:6"
			s.Ranks = 2
		},
		"metadata service": func(s *kvscoutv1.WorkerSpec) { s.EventEndpoint = "tcp://169.254.169.254:5557" },
		"link-local replay": func(s *kvscoutv1.WorkerSpec) {
			s.EventEndpoint, s.ReplayEndpoint = "tcp://127.0.0.1:5557", "tcp://[fe80::1]:5558"
		},
		"replay alone":           func(s *kvscoutv1.WorkerSpec) { s.ReplayEndpoint = "tcp://x:5" },
		"hash format":            func(s *kvscoutv1.WorkerSpec) { s.HashFormat = "md5" },
		"unpublished":            func(s *kvscoutv1.WorkerSpec) { s.Unpublished = []string{"everything"} },
		"much unpublished":       func(s *kvscoutv1.WorkerSpec) { s.Unpublished = make([]string, 4) },
		"empty alias":            func(s *kvscoutv1.WorkerSpec) { s.ModelAliases = []string{""} },
		"long id":                func(s *kvscoutv1.WorkerSpec) { s.WorkerId = long },
		"long label":             func(s *kvscoutv1.WorkerSpec) { s.Labels = map[string]string{"k": long} },
		"long alias":             func(s *kvscoutv1.WorkerSpec) { s.ModelAliases = []string{long} },
		"aliases without number": func(s *kvscoutv1.WorkerSpec) { s.ModelAliases = strings.Split(strings.Repeat("a", 65), "") },
	}
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			spec := &kvscoutv1.WorkerSpec{WorkerId: "w", Model: "m", Engine: "vllm"}
			edit(spec)
			_, err := r.RegisterWorker(t.Context(), connect.NewRequest(&kvscoutv1.RegisterWorkerRequest{Worker: spec}))
			wantReason(t, err, connect.CodeInvalidArgument, "BAD_WORKER")
		})
	}
	_, err := r.RegisterWorker(t.Context(), connect.NewRequest(&kvscoutv1.RegisterWorkerRequest{}))
	wantReason(t, err, connect.CodeInvalidArgument, "BAD_WORKER")
	_, err = r.DeregisterWorker(t.Context(), connect.NewRequest(&kvscoutv1.DeregisterWorkerRequest{}))
	wantReason(t, err, connect.CodeInvalidArgument, "BAD_WORKER")

	// Whoever else feeds a source of the index keeps it.
	if _, err := r.index.Open(events.Source{Worker: "played"}); err != nil {
		t.Fatal(err)
	}
	_, err = r.RegisterWorker(t.Context(), connect.NewRequest(&kvscoutv1.RegisterWorkerRequest{
		Worker: &kvscoutv1.WorkerSpec{WorkerId: "played", Model: "m", Engine: "vllm"}}))
	wantReason(t, err, connect.CodeFailedPrecondition, "SOURCE_TAKEN")

	r.register(t, "w0")
	_, err = r.RegisterWorker(t.Context(), connect.NewRequest(&kvscoutv1.RegisterWorkerRequest{
		Worker: &kvscoutv1.WorkerSpec{WorkerId: "w1", Model: "m", Engine: "vllm"}}))
	wantReason(t, err, connect.CodeResourceExhausted, "TOO_MANY_WORKERS")
	r.fleet.Close()
	_, err = r.RegisterWorker(t.Context(), connect.NewRequest(&kvscoutv1.RegisterWorkerRequest{
		Worker: &kvscoutv1.WorkerSpec{WorkerId: "w1", Model: "m", Engine: "vllm"}}))
	wantReason(t, err, connect.CodeUnavailable, "NOT_READY")
}
