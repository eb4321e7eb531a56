package scorerpc_test

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/stream"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer/ingest"
	"github.com/kvscout/kvscout/scorer/scorerpc"
)

const (
	exact    = kvscoutv1.BoundKind_BOUND_KIND_EXACT
	lower    = kvscoutv1.BoundKind_BOUND_KIND_LOWER
	upper    = kvscoutv1.BoundKind_BOUND_KIND_UPPER
	estimate = kvscoutv1.BoundKind_BOUND_KIND_ESTIMATE
)

func bound(kind kvscoutv1.BoundKind, reasons ...kvscoutv1.BoundReason) *kvscoutv1.Bound {
	return &kvscoutv1.Bound{Kind: kind, Reasons: reasons}
}

func live(last uint64) *kvscoutv1.Freshness {
	return &kvscoutv1.Freshness{State: kvscoutv1.FreshnessState_FRESHNESS_STATE_LIVE, LastSequence: &last}
}

func unheard() *kvscoutv1.Freshness {
	return &kvscoutv1.Freshness{State: kvscoutv1.FreshnessState_FRESHNESS_STATE_UNKNOWN}
}

func tier(t kvscoutv1.Tier, n uint32) *kvscoutv1.TierTokens {
	return &kvscoutv1.TierTokens{Tier: t, Tokens: n}
}

// wantWorkers compares all but ages.
func wantWorkers(t testing.TB, want, got []*kvscoutv1.WorkerScore) {
	t.Helper()
	ignore := protocmp.IgnoreFields(&kvscoutv1.Freshness{}, "age_seconds")
	if diff := cmp.Diff(want, got, protocmp.Transform(), ignore); diff != "" {
		t.Errorf("workers (-want +got):\n%s", diff)
	}
}

// held is what a request's answer says each worker holds, as "id/rank".
func held(resp *kvscoutv1.ScoreResponse) map[string]uint32 {
	out := make(map[string]uint32)
	for _, w := range resp.GetWorkers() {
		out[w.GetWorkerId()] += w.GetHeldTokens()
	}
	return out
}

// A prompt of 20 tokens in blocks of 4. w0 holds 16 on the device; w1 8 there, 4 more on the host and 4 on disk; w2 was
// heard and holds nothing of it; w3 was never heard. All three protocols agree.
func TestScore_TiersAndOrder(t *testing.T) {
	r := start(t, scorerpc.Options{})
	for _, id := range []string{"w0", "w1", "w2", "w3"} {
		r.worker(t, id, "m", events.EngineVLLM)
	}
	r.publish(t, "w0", store{first: 1, tokens: seq(1, 16), size: 4}.event())
	r.publish(t, "w1", store{first: 1, tokens: seq(1, 8), size: 4}.event(),
		store{first: 3, parent: 2, tokens: seq(9, 12), size: 4, medium: "CPU"}.event(),
		store{first: 4, parent: 3, tokens: seq(13, 16), size: 4, medium: "DISK"}.event())
	r.publish(t, "w2", store{first: 1, tokens: seq(101, 104), size: 4}.event())

	const device, host, disk = kvscoutv1.Tier_TIER_DEVICE, kvscoutv1.Tier_TIER_HOST, kvscoutv1.Tier_TIER_DISK
	want := []*kvscoutv1.WorkerScore{
		{WorkerId: "w0", BlockSize: 4, HeldTokens: 16, ReusableTokens: 16, Score: 0.8, Known: true,
			Tiers: []*kvscoutv1.TierTokens{tier(device, 16)}, Freshness: live(0), Bound: bound(exact)},
		{WorkerId: "w1", BlockSize: 4, HeldTokens: 8, ReusableTokens: 8, Score: 0.6, Known: true, // (8 + 0.75x4 + 0.25x4) / 20
			Tiers: []*kvscoutv1.TierTokens{tier(device, 8), tier(host, 4), tier(disk, 4)}, Freshness: live(0), Bound: bound(exact)},
		{WorkerId: "w2", BlockSize: 4, Known: true, Freshness: live(0), Bound: bound(exact)},
		{WorkerId: "w3", Known: true, Freshness: unheard(), Bound: bound(lower, kvscoutv1.BoundReason_BOUND_REASON_HISTORY_MISSING)},
	}
	for protocol, client := range r.byProtocol {
		t.Run(protocol, func(t *testing.T) {
			resp, err := client.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{Tokens: ids(seq(1, 20))}))
			if err != nil {
				t.Fatal(err)
			}
			wantWorkers(t, want, resp.Msg.GetWorkers())
			if resp.Msg.GetPromptTokens() != 20 || resp.Msg.GetIndexVersion() == 0 || resp.Msg.GetWarnings() != nil || resp.Msg.GetRender() != nil {
				t.Errorf("answer = %v", resp.Msg)
			}
		})
	}
	// The request's own weights: (8x0.5 + 4x1 + 4x0.25) / 20 beats 16x0.5 / 20.
	resp := r.score(t, &kvscoutv1.ScoreRequest{Tokens: ids(seq(1, 20)),
		TierWeights: &kvscoutv1.TierWeights{Device: proto.Float64(0.5), Host: proto.Float64(1)}})
	if best := resp.GetWorkers()[0]; best.GetWorkerId() != "w1" || best.GetScore() != 0.45 {
		t.Errorf("best by own weights = %v", best)
	}
}

// Case 139, rule 7: what is held and what will be skipped differ where the prompt ends on a block's edge. Case 124: full
// blocks only.
func TestScore_Case139_Case124(t *testing.T) {
	r := start(t, scorerpc.Options{})
	r.worker(t, "w0", "m", events.EngineVLLM)
	r.publish(t, "w0", store{first: 1, tokens: seq(1, 8), size: 4}.event())
	for _, tt := range []struct{ prompt, held, reusable uint32 }{{8, 8, 4}, {9, 8, 8}, {7, 4, 4}, {3, 0, 0}, {4, 4, 0}} {
		w := r.score(t, &kvscoutv1.ScoreRequest{Tokens: ids(seq(1, tt.prompt))}).GetWorkers()[0]
		if w.GetHeldTokens() != tt.held || w.GetReusableTokens() != tt.reusable {
			t.Errorf("prompt of %d: held %d, reusable %d, want %d and %d", tt.prompt, w.GetHeldTokens(), w.GetReusableTokens(), tt.held, tt.reusable)
		}
	}
}

// The keys are those of Dynamo's own test (tokens 0..11, blocks of 4, seed 1337); the third worker uses blocks of 8.
func TestScore_Hashes(t *testing.T) {
	r := start(t, scorerpc.Options{})
	for id, size := range map[string]int{"w4": 4, "w8": 8} {
		r.worker(t, id, "m", events.EngineVLLM)
		r.publish(t, id, store{first: 1, tokens: seq(0, 7), size: size}.event())
	}
	var packed []byte
	for _, key := range []uint64{9143094415614847814, 12124091508212882195, 1088361764653601668} {
		packed = binary.LittleEndian.AppendUint64(packed, key)
	}
	resp := r.score(t, &kvscoutv1.ScoreRequest{BlockHashes: &kvscoutv1.BlockHashes{BlockSize: 4, Packed: packed, PromptTokens: 16}})
	if resp.GetPromptTokens() != 16 {
		t.Errorf("prompt tokens = %d, want those stated", resp.GetPromptTokens())
	}
	wantWorkers(t, []*kvscoutv1.WorkerScore{
		{WorkerId: "w4", BlockSize: 4, HeldTokens: 8, ReusableTokens: 8, Score: 0.5, Known: true, Freshness: live(0), Bound: bound(exact),
			Tiers: []*kvscoutv1.TierTokens{tier(kvscoutv1.Tier_TIER_DEVICE, 8)}},
		{WorkerId: "w8", BlockSize: 8, Known: true, Freshness: live(0), Bound: bound(lower, kvscoutv1.BoundReason_BOUND_REASON_OTHER_BLOCK_SIZE)},
	}, resp.GetWorkers())
	if got := r.score(t, &kvscoutv1.ScoreRequest{BlockHashes: &kvscoutv1.BlockHashes{BlockSize: 4, Packed: packed}}).GetPromptTokens(); got != 12 {
		t.Errorf("prompt tokens = %d, want the blocks' 12", got)
	}
}

// Rule 13, cases 77 and 107: a candidate that is not known says so, with all its ranks if it is, each id once; one of
// another model is known and named in a warning.
func TestRule13_Candidates(t *testing.T) {
	r := start(t, scorerpc.Options{})
	r.worker(t, "192.0.2.1:8000", "m", events.EngineVLLM, func(w *ingest.Worker) {
		w.Sources = append(w.Sources, events.Source{Engine: events.EngineVLLM, Rank: 1})
	})
	r.worker(t, "w1", "m", events.EngineVLLM)
	r.worker(t, "other", "n", events.EngineVLLM)
	r.publish(t, "w1", store{first: 1, tokens: seq(1, 4), size: 4}.event())
	resp := r.score(t, &kvscoutv1.ScoreRequest{Model: "m", Tokens: ids(seq(1, 4)),
		Candidates: []string{"192.0.2.1", "other", "192.0.2.1:8000", "192.0.2.1", "192.0.2.1:8000"}})
	missing := bound(lower, kvscoutv1.BoundReason_BOUND_REASON_HISTORY_MISSING)
	wantWorkers(t, []*kvscoutv1.WorkerScore{
		{WorkerId: "192.0.2.1", Freshness: unheard(), Bound: bound(lower, kvscoutv1.BoundReason_BOUND_REASON_UNKNOWN_WORKER)},
		{WorkerId: "192.0.2.1:8000", Known: true, Freshness: unheard(), Bound: missing},
		{WorkerId: "192.0.2.1:8000", Rank: 1, Known: true, Freshness: unheard(), Bound: missing},
		{WorkerId: "other", Known: true, Freshness: unheard(), Bound: bound(exact)},
	}, resp.GetWorkers())
	if w := resp.GetWarnings(); len(w) != 1 || !strings.Contains(w[0], `"other"`) {
		t.Errorf("warnings = %q", w)
	}
}

// Rules 12 and 13: a source that is stale scores 0 and says why.
func TestRule12_Stale(t *testing.T) {
	r := start(t, scorerpc.Options{}, ingest.Options{Stream: stream.Options{StaleAfter: time.Millisecond}})
	r.worker(t, "w0", "m", events.EngineVLLM, func(w *ingest.Worker) { w.Sources[0].Events = "tcp://127.0.0.1:1" })
	var got *kvscoutv1.WorkerScore
	eventually(t, func() bool {
		got = r.score(t, &kvscoutv1.ScoreRequest{Tokens: ids(seq(1, 4))}).GetWorkers()[0]
		return got.GetFreshness().GetState() == kvscoutv1.FreshnessState_FRESHNESS_STATE_STALE
	})
	want := bound(estimate, kvscoutv1.BoundReason_BOUND_REASON_HISTORY_MISSING, kvscoutv1.BoundReason_BOUND_REASON_STALE)
	if !proto.Equal(got.GetBound(), want) || got.GetScore() != 0 || !got.GetKnown() {
		t.Errorf("stale worker = %v", got)
	}
}

func TestScore_Roles(t *testing.T) {
	r := start(t, scorerpc.Options{})
	for id, role := range map[string]ingest.Role{"any": ingest.RoleAny, "p": ingest.RolePrefill, "d": ingest.RoleDecode, "both": ingest.RoleBoth} {
		r.worker(t, id, "m", events.EngineVLLM, func(w *ingest.Worker) { w.Role = role })
	}
	r.worker(t, "only", "n", events.EngineVLLM, func(w *ingest.Worker) { w.Role = ingest.RoleDecode })
	ask := func(role kvscoutv1.Role, model string, candidates ...string) (names []string, warnings int) {
		resp := r.score(t, &kvscoutv1.ScoreRequest{Model: model, Tokens: ids(seq(1, 4)), Role: role, Candidates: candidates})
		for _, w := range resp.GetWorkers() {
			names = append(names, w.GetWorkerId())
		}
		return names, len(resp.GetWarnings())
	}
	for _, tt := range []struct {
		role       kvscoutv1.Role
		model      string
		candidates []string
		want       []string
		warnings   int
	}{
		{kvscoutv1.Role_ROLE_UNSPECIFIED, "m", nil, []string{"any", "both", "d", "p"}, 0},
		{kvscoutv1.Role_ROLE_PREFILL, "m", nil, []string{"any", "both", "p"}, 0},
		{kvscoutv1.Role_ROLE_DECODE, "m", nil, []string{"any", "both", "d"}, 0},
		{kvscoutv1.Role_ROLE_BOTH, "m", nil, []string{"any", "both"}, 0},
		{kvscoutv1.Role_ROLE_PREFILL, "m", []string{"d", "p", "unheard"}, []string{"p", "unheard"}, 1},
		{kvscoutv1.Role_ROLE_PREFILL, "m", []string{"only"}, nil, 1},
		{kvscoutv1.Role_ROLE_PREFILL, "n", nil, nil, 1},
	} {
		names, warnings := ask(tt.role, tt.model, tt.candidates...)
		if diff := cmp.Diff(tt.want, names); diff != "" || warnings != tt.warnings {
			t.Errorf("%v of %s among %v: %d warnings, names (-want +got):\n%s", tt.role, tt.model, tt.candidates, warnings, diff)
		}
	}
}

// Cases 26 and 78, rule 3: models, salts and adapters are apart; an adapter's name, or an alias, stands for its model.
func TestRule03_Scopes(t *testing.T) {
	r := start(t, scorerpc.Options{})
	r.worker(t, "w1", "m1", events.EngineVLLM, func(w *ingest.Worker) { w.Aliases = []string{"alias"} })
	r.worker(t, "w2", "m2", events.EngineVLLM)
	prompt := seq(1, 4)
	r.publish(t, "w1", store{first: 1, tokens: prompt, size: 4}.event(),
		store{first: 2, tokens: seq(5, 8), size: 4, salt: "tenant-a"}.event(),
		store{first: 3, tokens: seq(9, 12), size: 4, adapter: "lora"}.event())
	r.publish(t, "w2", store{first: 1, tokens: prompt, size: 4}.event())
	for _, tt := range []struct {
		name string
		req  *kvscoutv1.ScoreRequest
		want map[string]uint32
	}{
		{"m1", &kvscoutv1.ScoreRequest{Model: "m1", Tokens: ids(prompt)}, map[string]uint32{"w1": 4}},
		{"m2", &kvscoutv1.ScoreRequest{Model: "m2", Tokens: ids(prompt)}, map[string]uint32{"w2": 4}},
		{"alias", &kvscoutv1.ScoreRequest{Model: "alias", Tokens: ids(prompt)}, map[string]uint32{"w1": 4}},
		{"salt", &kvscoutv1.ScoreRequest{Model: "m1", Tokens: ids(seq(5, 8)), CacheSalt: "tenant-a"}, map[string]uint32{"w1": 4}},
		{"other salt", &kvscoutv1.ScoreRequest{Model: "m1", Tokens: ids(seq(5, 8)), CacheSalt: "tenant-b"}, map[string]uint32{"w1": 0}},
		{"no salt", &kvscoutv1.ScoreRequest{Model: "m1", Tokens: ids(seq(5, 8))}, map[string]uint32{"w1": 0}},
		{"adapter", &kvscoutv1.ScoreRequest{Model: "m1", Adapter: "lora", Tokens: ids(seq(9, 12))}, map[string]uint32{"w1": 4}},
		{"adapter as model", &kvscoutv1.ScoreRequest{Model: "lora", Tokens: ids(seq(9, 12))}, map[string]uint32{"w1": 4}},
		{"no adapter", &kvscoutv1.ScoreRequest{Model: "m1", Tokens: ids(seq(9, 12))}, map[string]uint32{"w1": 0}},
	} {
		if diff := cmp.Diff(tt.want, held(r.score(t, tt.req))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// Rule 15: SGLang before 0.5.19 publishes salted blocks like others. A version that is not stated is a current one.
func TestRule15_OldSGLang(t *testing.T) {
	for version, refused := range map[string]bool{"0.4.10": true, "0.5.9": true, "v0.5.9": true, "v": false, "": false,
		"0.5.18.post1": true, "0.5.19": false, "0.5.23": false, "0.6.0": false, "1.0.0": false} {
		r := start(t, scorerpc.Options{})
		r.worker(t, "w", "m", events.EngineSGLang, func(w *ingest.Worker) { w.Sources[0].Version = version })
		_, err := r.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{Tokens: ids(seq(1, 4)), CacheSalt: "s"}))
		if refused {
			wantReason(t, err, connect.CodeFailedPrecondition, "SALT_NOT_SUPPORTED_BY_ENGINE")
		} else if err != nil {
			t.Errorf("version %q: %v", version, err)
		}
	}
}

// Rule 15 where only some engines cannot tell salts: those are listed, credited with nothing, and named.
func TestRule15_MixedEngines(t *testing.T) {
	r := start(t, scorerpc.Options{})
	r.worker(t, "trt", "m", events.EngineTRTLLM)
	r.worker(t, "vllm", "m", events.EngineVLLM)
	for _, id := range []string{"trt", "vllm"} {
		r.publish(t, id, store{first: 1, tokens: seq(1, 4), size: 4, salt: "s"}.event())
	}
	resp := r.score(t, &kvscoutv1.ScoreRequest{Tokens: ids(seq(1, 4)), CacheSalt: "s"})
	if got := held(resp); got["vllm"] != 4 || got["trt"] != 0 {
		t.Errorf("held = %v", got)
	}
	trt := resp.GetWorkers()[1]
	if !proto.Equal(trt.GetBound(), bound(lower, kvscoutv1.BoundReason_BOUND_REASON_HIDDEN_NAMESPACE)) || !trt.GetKnown() || trt.GetScore() != 0 {
		t.Errorf("TensorRT-LLM's answer = %v", trt)
	}
	if w := resp.GetWarnings(); len(w) != 1 || !strings.Contains(w[0], `"trt"`) {
		t.Errorf("warnings = %q", w)
	}
}
