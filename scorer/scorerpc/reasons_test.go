package scorerpc_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/render"
	"github.com/kvscout/kvscout/scorer/scorerpc"
)

// refusal is a request with the error that it must get.
type refusal struct {
	name   string
	req    *kvscoutv1.ScoreRequest
	code   connect.Code
	reason string
}

const (
	badArgument  = connect.CodeInvalidArgument
	precondition = connect.CodeFailedPrecondition
	exhausted    = connect.CodeResourceExhausted
)

// asking is a good request for tokens, edited.
func asking(edit func(*kvscoutv1.ScoreRequest)) *kvscoutv1.ScoreRequest {
	req := &kvscoutv1.ScoreRequest{Model: "m", Tokens: &kvscoutv1.Tokens{Ids: []int64{1}}}
	edit(req)
	return req
}

func hashing(size uint32, bytes int, total uint32) *kvscoutv1.ScoreRequest {
	return &kvscoutv1.ScoreRequest{Model: "m", BlockHashes: &kvscoutv1.BlockHashes{BlockSize: size, Packed: make([]byte, bytes), PromptTokens: total}}
}

// rendering is a request with a body. Headers are pairs of name and value.
func rendering(path, body string, headers ...string) *kvscoutv1.ScoreRequest {
	h := &kvscoutv1.HttpRequest{Path: path, Body: []byte(body), Headers: make(map[string]string)}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Headers[headers[i]] = headers[i+1]
	}
	return &kvscoutv1.ScoreRequest{Model: "m", HttpRequest: h}
}

// fault is a request on which the renderer answers with a status.
func fault(status string) *kvscoutv1.ScoreRequest {
	return rendering("/v1/chat/completions", `{"messages":[]}`, "X-Fault", status)
}

// refusals has, together with refusedBodies, one request at least for every reason that proto names for Score and that
// needs no rig of its own. The rig has the models "m" (vLLM) and "trt" (TensorRT-LLM), 64 tokens and 2 candidates at
// most.
func refusals() []refusal {
	one := &kvscoutv1.Tokens{Ids: []int64{1}}
	packed := func(b ...byte) *kvscoutv1.ScoreRequest {
		return asking(func(r *kvscoutv1.ScoreRequest) { r.Tokens = &kvscoutv1.Tokens{Packed: b} })
	}
	id := func(v int64) *kvscoutv1.ScoreRequest {
		return asking(func(r *kvscoutv1.ScoreRequest) { r.Tokens = &kvscoutv1.Tokens{Ids: []int64{v}} })
	}
	weights := func(w *kvscoutv1.TierWeights) *kvscoutv1.ScoreRequest {
		return asking(func(r *kvscoutv1.ScoreRequest) { r.TierWeights = w })
	}
	outside := []*kvscoutv1.Feature{{Hash: "h", Offset: 1, Length: 1}}
	return []refusal{
		{"empty request", &kvscoutv1.ScoreRequest{Model: "m"}, badArgument, "NO_PROMPT"},
		{"empty tokens", &kvscoutv1.ScoreRequest{Model: "m", Tokens: &kvscoutv1.Tokens{}}, badArgument, "NO_PROMPT"},
		{"tokens and body", asking(func(r *kvscoutv1.ScoreRequest) { r.HttpRequest = chat(`{}`) }), badArgument, "TWO_PROMPTS"},
		{"tokens and hashes", asking(func(r *kvscoutv1.ScoreRequest) { r.BlockHashes = &kvscoutv1.BlockHashes{} }), badArgument, "TWO_PROMPTS"},
		{"3 bytes", packed(1, 2, 3), badArgument, "TOKENS_NOT_MULTIPLE_OF_4"},
		{"packed -1", packed(255, 255, 255, 255), badArgument, "NEGATIVE_TOKEN"},
		{"id -1", id(-1), badArgument, "NEGATIVE_TOKEN"},
		{"id 2^32", id(math.MaxUint32 + 1), badArgument, "TOKEN_TOO_LARGE"},
		{"9 bytes of hashes", hashing(4, 9, 0), badArgument, "HASHES_NOT_MULTIPLE_OF_8"},
		{"block size 0", hashing(0, 8, 0), badArgument, "BAD_BLOCK_SIZE"},
		{"fewer tokens than blocks", hashing(4, 8, 3), badArgument, "BAD_PROMPT_TOKENS"},
		{"feature outside", asking(func(r *kvscoutv1.ScoreRequest) { r.Features = outside }), badArgument, "BAD_FEATURE"},
		{"weight over 1", weights(&kvscoutv1.TierWeights{Host: proto.Float64(1.5)}), badArgument, "BAD_TIER_WEIGHT"},
		{"weight no number", weights(&kvscoutv1.TierWeights{Device: proto.Float64(math.NaN())}), badArgument, "BAD_TIER_WEIGHT"},
		{"role", asking(func(r *kvscoutv1.ScoreRequest) { r.Role = 9 }), badArgument, "BAD_ROLE"},
		{"no model", &kvscoutv1.ScoreRequest{Tokens: one}, badArgument, "MODEL_REQUIRED"},
		{"unknown model", &kvscoutv1.ScoreRequest{Model: "x", Tokens: one}, connect.CodeNotFound, "UNKNOWN_MODEL"},
		{"salt", &kvscoutv1.ScoreRequest{Model: "trt", Tokens: one, CacheSalt: "s"}, precondition, "SALT_NOT_SUPPORTED_BY_ENGINE"},
		{"65 tokens", &kvscoutv1.ScoreRequest{Model: "m", Tokens: ids(seq(1, 65))}, exhausted, "PROMPT_TOO_LONG"},
		{"3 candidates", asking(func(r *kvscoutv1.ScoreRequest) { r.Candidates = []string{"a", "b", "c"} }), exhausted, "TOO_MANY_CANDIDATES"},
	}
}

// refusedBodies are the refusals of http_request.
func refusedBodies() []refusal {
	mismatch := rendering("/v1/chat/completions", `{"cache_salt":"b"}`)
	mismatch.CacheSalt = "a"
	featured := rendering("/v1/chat/completions", `{}`)
	featured.Features = []*kvscoutv1.Feature{{Hash: "h", Length: 1}}
	large := `{"prompt":"` + strings.Repeat("x", 5000) + `"}`
	return []refusal{
		{"feature with a body", featured, badArgument, "BAD_FEATURE"},
		{"empty path", rendering("", `{}`), badArgument, "BAD_PATH"},
		{"unknown path", rendering("/v1/embeddings", `{}`), badArgument, "BAD_PATH"},
		{"header", rendering("/v1/completions", `{}`, "bad name", "x"), badArgument, "BAD_HEADER"},
		{"empty body", rendering("/v1/completions", ""), badArgument, "BAD_BODY"},
		{"body no object", rendering("/v1/completions", "[]"), badArgument, "BAD_BODY"},
		{"body refused by the engine", fault("400"), badArgument, "BAD_BODY"},
		{"two salts", mismatch, badArgument, "SALT_MISMATCH"},
		{"several prompts", rendering("/v1/completions", `{"prompt":["a","b"]}`), badArgument, "SEVERAL_PROMPTS"},
		{"model unknown to the renderer", fault("404"), connect.CodeNotFound, "UNKNOWN_MODEL"},
		{"renderer without route", fault("405"), precondition, "RENDERER_UNUSABLE"},
		{"renderer wants credentials", fault("401"), precondition, "RENDERER_UNUSABLE"},
		{"large body", rendering("/v1/completions", large), exhausted, "BODY_TOO_LARGE"},
		{"renderer overloaded", fault("429"), exhausted, "OVERLOADED"},
		{"renderer down", fault("500"), connect.CodeUnavailable, "RENDERER_DOWN"},
		{"renderer slow", fault("hang"), connect.CodeDeadlineExceeded, "DEADLINE_EXCEEDED"},
	}
}

// Every reason reaches clients of all three protocols with its code and its ErrorInfo, and is counted.
func TestScore_Reasons(t *testing.T) {
	fake := new(fakeVLLM)
	renderer := fake.renderer(t, `[{"token_ids":[1]},{"token_ids":[2]}]`, func(o *render.Options) {
		o.MaxBody, o.Timeout = 4096, 300*time.Millisecond
	})
	r := start(t, scorerpc.Options{MaxPromptTokens: 64, MaxCandidates: 2, Renderer: renderer})
	r.worker(t, "w0", "m", events.EngineVLLM)
	r.worker(t, "t0", "trt", events.EngineTRTLLM)
	want := make(map[string]uint64)
	list := append(refusals(), refusedBodies()...)
	for protocol, client := range r.byProtocol {
		t.Run(protocol, func(t *testing.T) {
			for _, tt := range list {
				t.Run(tt.name, func(t *testing.T) {
					_, err := client.Score(t.Context(), connect.NewRequest(tt.req))
					wantReason(t, err, tt.code, tt.reason)
					if overloaded := tt.reason == "OVERLOADED"; overloaded && retryOf(err) != 3*time.Second {
						t.Errorf("retry after %v, want the renderer's 3s", retryOf(err))
					}
				})
				want[tt.reason]++
			}
		})
	}
	r.score(t, &kvscoutv1.ScoreRequest{Model: "m", Tokens: &kvscoutv1.Tokens{Ids: []int64{1}}})
	stats := r.service.Stats()
	if got, want := stats.GetRequests(), uint64(3*len(list)+1); got != want {
		t.Errorf("requests = %d, want %d", got, want)
	}
	for reason, n := range want {
		if got := stats.GetErrors()[reason]; got != n {
			t.Errorf("errors[%s] = %d, want %d", reason, got, n)
		}
	}
	if len(stats.GetErrors()) != len(want) {
		t.Errorf("errors = %v", stats.GetErrors())
	}
}

// What the engine says of a body goes to the one who sent it.
func TestScore_PassesTheEnginesWordsOn(t *testing.T) {
	r := start(t, scorerpc.Options{Renderer: new(fakeVLLM).renderer(t, "")})
	r.worker(t, "w0", "m", events.EngineVLLM)
	req := chat(`{}`)
	req.Headers = map[string]string{"X-Fault": "400"}
	_, err := r.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{HttpRequest: req}))
	if err == nil || !strings.Contains(err.Error(), "said by the engine") {
		t.Errorf("error = %v", err)
	}
}

func TestScore_NoRenderer(t *testing.T) {
	r := start(t, scorerpc.Options{})
	r.worker(t, "w0", "m", events.EngineVLLM)
	_, err := r.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{HttpRequest: chat(`{}`)}))
	wantReason(t, err, connect.CodeFailedPrecondition, "NO_RENDERER")
}

// Tokens for which their renderer does not vouch are no tokens: trtllm-render says so when the engine may run others.
func TestScore_RendererDoesNotVouch(t *testing.T) {
	renderer := new(fakeVLLM).renderer(t, `{"schema_version":1,"fingerprint":{"digest":"9f86"},"token_ids":[1],"tokens_trusted":false,"untrusted_reason":"named_tool_choice"}`,
		func(o *render.Options) { o.Protocol = render.ProtocolTRTLLM })
	r := start(t, scorerpc.Options{Renderer: renderer})
	r.worker(t, "w0", "m", events.EngineVLLM)
	_, err := r.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{HttpRequest: chat(`{}`)}))
	wantReason(t, err, connect.CodeFailedPrecondition, "RENDER_NOT_TRUSTED")
}

func TestScore_NotReady(t *testing.T) {
	r := start(t, scorerpc.Options{Ready: func() bool { return false }})
	_, err := r.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{}))
	wantReason(t, err, connect.CodeUnavailable, "NOT_READY")
}

// Rule 14: an answer without tokens is no prompt.
func TestRule14_NoTokensIsAnError(t *testing.T) {
	r := start(t, scorerpc.Options{Renderer: new(fakeVLLM).renderer(t, `{"token_ids":[]}`)})
	r.worker(t, "w0", "m", events.EngineVLLM)
	_, err := r.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{HttpRequest: chat(`{}`)}))
	wantReason(t, err, connect.CodeFailedPrecondition, "RENDERER_UNUSABLE")
}

// Rule 17: a call over the bound gets a typed error at once, which says when to come again.
func TestRule17_Overloaded(t *testing.T) {
	fake := new(fakeVLLM)
	r := start(t, scorerpc.Options{MaxCalls: 1, Renderer: fake.renderer(t, "")})
	r.worker(t, "w0", "m", events.EngineVLLM)
	hanging := chat(`{}`)
	hanging.Headers = map[string]string{"X-Fault": "hang"}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { // ended by cancel, waited for on done
		_, err := r.Score(ctx, connect.NewRequest(&kvscoutv1.ScoreRequest{HttpRequest: hanging}))
		done <- err
	}()
	eventually(t, func() bool { return fake.asked.Load() == 1 })
	_, err := r.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{Tokens: ids(seq(1, 4))}))
	wantReason(t, err, connect.CodeResourceExhausted, "OVERLOADED")
	if retryOf(err) <= 0 {
		t.Error("no RetryInfo")
	}
	cancel()
	if code := connect.CodeOf(<-done); code != connect.CodeCanceled {
		t.Errorf("the cancelled call ended with %v", code)
	}
	eventually(t, func() bool { return r.service.Stats().GetErrors()["CANCELED"] == 1 })
}

// Case 159: a call whose time is up stops and says so.
func TestScore_Case159_Deadline(t *testing.T) {
	fake := new(fakeVLLM)
	service := start(t, scorerpc.Options{Renderer: fake.renderer(t, "")})
	service.worker(t, "w0", "m", events.EngineVLLM)
	past, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for _, req := range []*kvscoutv1.ScoreRequest{{Tokens: ids(seq(1, 4))}, {HttpRequest: chat(`{}`)}} {
		_, err := service.service.Score(past, connect.NewRequest(req))
		wantReason(t, err, connect.CodeDeadlineExceeded, "DEADLINE_EXCEEDED")
	}
	if fake.asked.Load() != 0 {
		t.Error("the renderer was asked for a call whose time was up")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := service.service.Score(gone, connect.NewRequest(&kvscoutv1.ScoreRequest{Tokens: ids(seq(1, 4))}))
	wantReason(t, err, connect.CodeCanceled, "CANCELED")
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t testing.TB, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	limit := time.After(10 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("the condition did not come about")
		}
	}
}
