package scorerpc_test

import (
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/scorerpc"
)

// rendered is a rig whose renderer answers with the 9 tokens that vLLM 0.32 made of a recorded body, and a worker w0
// that holds the first 4 for everybody and the first 8 for tenant-a.
func rendered(t *testing.T, answer string, opts scorerpc.Options) (*rig, *fakeVLLM) {
	t.Helper()
	fake := new(fakeVLLM)
	opts.Renderer = fake.renderer(t, answer)
	r := start(t, opts)
	r.worker(t, "w0", "m", events.EngineVLLM)
	prompt := []uint32{151644, 872, 198, 80, 151645, 198, 151644, 77091, 198}
	r.publish(t, "w0", store{first: 1, tokens: prompt[:4], size: 4}.event(),
		store{first: 2, tokens: prompt[:8], size: 4, salt: "tenant-a"}.event(),
		store{first: 4, tokens: prompt[:8], size: 4, adapter: "lora"}.event())
	return r, fake
}

const nine = `{"token_ids":[151644,872,198,80,151645,198,151644,77091,198]`

// Case 25: the namespace that a body names is the one it is scored in.
func TestScore_BodyNamespace(t *testing.T) {
	r, _ := rendered(t, nine+"}", scorerpc.Options{})
	for _, tt := range []struct {
		name, model, salt, body string
		held                    uint32
		warnings                int
	}{
		{"plain", "m", "", `{"messages":[]}`, 4, 0},
		{"salt in the body", "m", "", `{"messages":[],"cache_salt":"tenant-a"}`, 8, 0},
		{"salt in the request", "m", "tenant-a", `{"messages":[]}`, 8, 0},
		{"salt in both", "m", "tenant-a", `{"cache_salt":"tenant-a"}`, 8, 0},
		{"another salt", "m", "", `{"cache_salt":"tenant-b"}`, 0, 0},
		{"model of the body", "", "", `{"model":"m"}`, 4, 0},
		{"adapter of the body", "", "", `{"model":"lora"}`, 8, 0},
		{"adapter of the body, model of the request", "m", "", `{"model":"lora"}`, 8, 0},
		{"model of the body, adapter of the request", "lora", "", `{"model":"m"}`, 4, 0}, // the engine obeys the body
		{"another model in the body", "m", "", `{"model":"gateway-name"}`, 4, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp := r.score(t, &kvscoutv1.ScoreRequest{Model: tt.model, CacheSalt: tt.salt, HttpRequest: chat(tt.body)})
			if got := resp.GetWorkers()[0].GetHeldTokens(); got != tt.held || len(resp.GetWarnings()) != tt.warnings {
				t.Errorf("held %d, warnings %q, want %d and %d warnings", got, resp.GetWarnings(), tt.held, tt.warnings)
			}
		})
	}
	_, err := r.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{HttpRequest: chat(`{"model":"x"}`)}))
	wantReason(t, err, connect.CodeNotFound, "UNKNOWN_MODEL")
}

// Rule 13: a name in the body that is not known may be that of an adapter of which nothing is cached yet. What the base
// model's namespace holds is then no fact; that nothing is held is one all the same.
func TestRule13_BodyOfAnUnknownName(t *testing.T) {
	r, _ := rendered(t, nine+"}", scorerpc.Options{})
	r.worker(t, "w1", "m", events.EngineVLLM)
	r.publish(t, "w1", []any{"AllBlocksCleared"})
	req := &kvscoutv1.ScoreRequest{Model: "m", HttpRequest: chat(`{"model":"lora-2"}`)}
	got := r.score(t, req).GetWorkers()
	if got[0].GetHeldTokens() != 4 || !proto.Equal(got[0].GetBound(), bound(upper, kvscoutv1.BoundReason_BOUND_REASON_HIDDEN_NAMESPACE)) {
		t.Errorf("holder: %v", got[0])
	}
	if got[1].GetHeldTokens() != 0 || got[1].GetBound().GetKind() != exact {
		t.Errorf("other: %v", got[1])
	}
	req.Adapter = "lora-2" // the caller knows
	if resp := r.score(t, req); len(resp.GetWarnings()) != 0 || resp.GetWorkers()[0].GetBound().GetKind() != exact {
		t.Errorf("named by the caller: %v", resp)
	}
	// An adapter that two models have is the one of the model asked for.
	r.worker(t, "other", "m2", events.EngineVLLM)
	r.publish(t, "other", store{first: 4, tokens: seq(1, 4), size: 4, adapter: "lora"}.event())
	resp := r.score(t, &kvscoutv1.ScoreRequest{Model: "m", HttpRequest: chat(`{"model":"lora"}`)})
	if w := resp.GetWorkers()[0]; w.GetHeldTokens() != 8 || w.GetBound().GetKind() != exact || len(resp.GetWarnings()) != 0 {
		t.Errorf("adapter of two models: %v", resp)
	}
}

func TestScore_RenderInfo(t *testing.T) {
	r, _ := rendered(t, nine+"}", scorerpc.Options{})
	resp := r.score(t, &kvscoutv1.ScoreRequest{HttpRequest: chat(`{}`)})
	if got := resp.GetRender(); !strings.HasPrefix(got.GetRenderer(), "vllm-render@127.0.0.1:") || got.GetDuration().AsDuration() <= 0 || resp.GetPromptTokens() != 9 {
		t.Errorf("answer = %v", resp)
	}
	named, _ := rendered(t, nine+"}", scorerpc.Options{RendererName: "main"})
	if got := named.score(t, &kvscoutv1.ScoreRequest{HttpRequest: chat(`{}`)}).GetRender().GetRenderer(); got != "main" {
		t.Errorf("renderer = %q", got)
	}
}

// Case 157: of a request for which the engine does not read its cache nothing will be reused, and it is said.
func TestScore_Case157_CacheNotRead(t *testing.T) {
	r, _ := rendered(t, nine+`,"sampling_params":{"skip_reading_prefix_cache":true}}`, scorerpc.Options{})
	resp := r.score(t, &kvscoutv1.ScoreRequest{HttpRequest: chat(`{}`)})
	w := resp.GetWorkers()[0]
	if w.GetHeldTokens() != 4 || w.GetReusableTokens() != 0 || w.GetScore() != 0 || len(resp.GetWarnings()) != 1 {
		t.Errorf("answer = %v", resp)
	}
}

// Images are part of the keys. Where the renderer names none that the body has, the answer is an estimate.
func TestScore_Media(t *testing.T) {
	image := chat(`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}]}`)
	unnamed, _ := rendered(t, nine+"}", scorerpc.Options{})
	got := unnamed.score(t, &kvscoutv1.ScoreRequest{HttpRequest: image}).GetWorkers()[0]
	if got.GetHeldTokens() != 4 || !proto.Equal(got.GetBound(), bound(estimate, kvscoutv1.BoundReason_BOUND_REASON_MEDIA_UNNAMED)) {
		t.Errorf("unnamed: %v", got)
	}
	named, _ := rendered(t, nine+`,"features":{"mm_hashes":{"image":["h"]},"mm_placeholders":{"image":[{"offset":1,"length":2}]}}}`, scorerpc.Options{})
	got = named.score(t, &kvscoutv1.ScoreRequest{HttpRequest: image}).GetWorkers()[0]
	if got.GetHeldTokens() != 0 || got.GetBound().GetKind() != exact {
		t.Errorf("named: %v", got)
	}
}

// Rule 15: a salted request that no engine can answer is refused before anything is rendered, wherever the salt stands.
func TestRule15_RefusedBeforeRendering(t *testing.T) {
	r, fake := rendered(t, nine+"}", scorerpc.Options{})
	r.worker(t, "t0", "trt", events.EngineTRTLLM)
	for _, req := range []*kvscoutv1.ScoreRequest{
		{Model: "trt", CacheSalt: "s", HttpRequest: chat(`{}`)},
		{Model: "trt", HttpRequest: chat(`{"cache_salt":"s"}`)},
		{HttpRequest: chat(`{"model":"trt","cache_salt":"s"}`)},
		{Model: "trt", CacheSalt: "s", Tokens: ids(seq(1, 4))},
	} {
		_, err := r.Score(t.Context(), connect.NewRequest(req))
		wantReason(t, err, connect.CodeFailedPrecondition, "SALT_NOT_SUPPORTED_BY_ENGINE")
		if err != nil && strings.Contains(err.Error(), `"s"`) {
			t.Errorf("the salt is in %q", err)
		}
	}
	if n := fake.asked.Load(); n != 0 {
		t.Errorf("the renderer was asked %d times", n)
	}
	r.score(t, &kvscoutv1.ScoreRequest{Model: "trt", HttpRequest: chat(`{}`)})
	if n := fake.asked.Load(); n != 1 {
		t.Errorf("the renderer was asked %d times for the unsalted one", n)
	}
}

func TestScore_RenderedPromptTooLong(t *testing.T) {
	r, _ := rendered(t, nine+"}", scorerpc.Options{MaxPromptTokens: 8})
	_, err := r.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{HttpRequest: chat(`{}`)}))
	wantReason(t, err, connect.CodeResourceExhausted, "PROMPT_TOO_LONG")
}
