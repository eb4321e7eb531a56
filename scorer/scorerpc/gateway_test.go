package scorerpc_test

import (
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer/ingest"
	"github.com/kvscout/kvscout/render"
	"github.com/kvscout/kvscout/scorer/scorerpc"
)

// packedNine is Python's struct.pack('<9i', 151644, 872, 198, 80, 151645, 198, 151644, 77091, 198), in base64 too.
const (
	packedNine = "\x5c\x50\x02\x00\x68\x03\x00\x00\xc6\x00\x00\x00\x50\x00\x00\x00\x5d\x50\x02\x00\xc6\x00\x00\x00\x5c\x50\x02\x00\x23\x2d\x01\x00\xc6\x00\x00\x00"
	base64Nine = "XFACAGgDAADGAAAAUAAAAF1QAgDGAAAAXFACACMtAQDGAAAA"
)

func withHeaders(body string, headers ...string) *kvscoutv1.HttpRequest {
	return rendering("/v1/chat/completions", body, headers...).HttpRequest
}

// Case25: which namespace a request runs in. The gateway's word on the tenant goes before the body's: header, then the
// extension object, then cache_salt, as Dynamo's EPP has it (peers' picker.rs); the first that is not empty counts.
func TestScore_Case25_Precedence(t *testing.T) {
	r, fake := rendered(t, nine+"}", scorerpc.Options{TenantHeader: "x-tenant-id"})
	for _, tt := range []struct {
		name, salt string
		req        *kvscoutv1.HttpRequest
		held       uint32 // 8: tenant-a, 4: nobody's
	}{
		{"header", "", withHeaders(`{}`, "X-Tenant-Id", " tenant-a\t"), 8},
		{"header before extension", "", withHeaders(`{"nvext":{"cache_salt":"b"}}`, "x-tenant-id", "tenant-a"), 8},
		{"header before body", "", withHeaders(`{"cache_salt":"b"}`, "x-tenant-id", "tenant-a"), 8},
		{"another header", "", withHeaders(`{"cache_salt":"tenant-a"}`, "x-tenant-id", "b"), 0},
		{"empty header", "", withHeaders(`{"cache_salt":"tenant-a"}`, "x-tenant-id", "  "), 8},
		{"extension", "", chat(`{"nvext":{"a":[{}],"cache_salt":"tenant-a"}}`), 8},
		{"extension before body", "", chat(`{"cache_salt":"b","nvext":{"cache_salt":"tenant-a"}}`), 8},
		{"empty extension salt", "", chat(`{"cache_salt":"tenant-a","nvext":{"cache_salt":""}}`), 8},
		{"null extension salt", "", chat(`{"cache_salt":"tenant-a","nvext":{"cache_salt":null}}`), 8},
		{"null extension", "", chat(`{"nvext":{"cache_salt":"b"},"nvext":null,"cache_salt":"tenant-a"}`), 8},
		{"agreeing request", "tenant-a", withHeaders(`{"cache_salt":"b"}`, "x-tenant-id", "tenant-a"), 8},
		{"none", "", withHeaders(`{}`, "x-other", "tenant-a"), 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp := r.score(t, &kvscoutv1.ScoreRequest{Model: "m", CacheSalt: tt.salt, HttpRequest: tt.req})
			if got := resp.GetWorkers()[0].GetHeldTokens(); got != tt.held {
				t.Errorf("held %d, want %d", got, tt.held)
			}
			if h := *fake.header.Load(); h.Get("X-Tenant-Id") != "" {
				t.Errorf("the tenant went to the renderer: %v", h)
			}
		})
	}
	for _, tt := range []struct {
		name, salt string
		req        *kvscoutv1.HttpRequest
		reason     string
	}{
		{"two spellings", "", withHeaders(`{}`, "x-tenant-id", "a", "X-Tenant-Id", "b"), "BAD_HEADER"},
		{"other than the request", "b", withHeaders(`{}`, "x-tenant-id", "a"), "SALT_MISMATCH"},
		{"extension no object", "", chat(`{"nvext":"secret"}`), "BAD_BODY"},
		{"extension salt no text", "", chat(`{"nvext":{"cache_salt":5}}`), "BAD_BODY"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := r.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{Model: "m", CacheSalt: tt.salt, HttpRequest: tt.req}))
			wantReason(t, err, badArgument, tt.reason)
		})
	}
	off, _ := rendered(t, nine+"}", scorerpc.Options{})
	if got := off.score(t, &kvscoutv1.ScoreRequest{HttpRequest: withHeaders(`{}`, "x-tenant-id", "tenant-a")}); got.GetWorkers()[0].GetHeldTokens() != 4 {
		t.Errorf("a header that is not configured counts: %v", got)
	}
}

// Rule 15: a tenant header is a salt like any other, and is refused before any render.
func TestRule15_TenantHeader(t *testing.T) {
	r, fake := rendered(t, nine+"}", scorerpc.Options{TenantHeader: "x-tenant-id"})
	r.worker(t, "t0", "trt", events.EngineTRTLLM)
	for _, req := range []*kvscoutv1.HttpRequest{withHeaders(`{}`, "x-tenant-id", "a"), chat(`{"nvext":{"cache_salt":"a"}}`)} {
		_, err := r.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{Model: "trt", HttpRequest: req}))
		wantReason(t, err, precondition, "SALT_NOT_SUPPORTED_BY_ENGINE")
	}
	if n := fake.asked.Load(); n != 0 {
		t.Errorf("the renderer was asked %d times", n)
	}
}

// The renderer gets the body less what only gateways know, by the base model's name, and else byte for byte.
func TestScore_BodyForRenderer(t *testing.T) {
	r, fake := rendered(t, nine+"}", scorerpc.Options{StripFields: []string{"nvext", "cache_namespace"}})
	for _, tt := range []struct{ body, want string }{
		{`{ "model" : "lora", "messages":[1.0, "\u00e9"], "nvext":{"cache_salt":null} , "x":1e3}`, `{ "model" : "m", "messages":[1.0, "\u00e9"], "x":1e3}`},
		{`{"cache_namespace":"a","model":"m","z":1,"a":2}`, `{"model":"m","z":1,"a":2}`},
		{`{"model":"m" ,"a":{"nvext":1}}`, `{"model":"m" ,"a":{"nvext":1}}`},
		{`{}`, `{}`},
	} {
		r.score(t, &kvscoutv1.ScoreRequest{Model: "m", HttpRequest: chat(tt.body)})
		if got := *fake.body.Load(); got != tt.want {
			t.Errorf("the renderer got %s\nwant %s", got, tt.want)
		}
	}
}

// sglang is a rig with a worker of SGLang that holds 8 tokens for an extra key and 4 for an adapter.
func sglang(t *testing.T) *rig {
	fake := new(fakeVLLM)
	opts := scorerpc.Options{Renderer: fake.renderer(t, strings.Replace(nine, "token_ids", "input_ids", 1)+"}", func(o *render.Options) { o.Protocol = render.ProtocolSGLang })}
	r := start(t, opts)
	r.worker(t, "s0", "m", events.EngineSGLang)
	r.publish(t, "s0", store{first: 4, tokens: []uint32{151644, 872, 198, 80}, size: 4, adapter: "lora"}.event())
	return r
}

// SGLang's bodies name adapter and namespace in fields of their own. Case25.
func TestScore_SGLangFields(t *testing.T) {
	r := sglang(t)
	hidden := bound(upper, kvscoutv1.BoundReason_BOUND_REASON_HIDDEN_NAMESPACE)
	for body, want := range map[string]struct {
		held  uint32
		bound *kvscoutv1.Bound
	}{
		`{}`:                   {0, bound(exact)},
		`{"lora_path":"lora"}`: {4, bound(exact)},
		`{"lora_path":null}`:   {0, bound(exact)},
		`{"lora_path":"x"}`:    {0, bound(exact)},
		// SGLang's events do not tell extra keys in this format, so the answer says that one was asked for.
		`{"lora_path":"lora","extra_key":"x"}`: {4, hidden},
	} {
		resp := r.score(t, &kvscoutv1.ScoreRequest{Model: "m", HttpRequest: chat(body)})
		if got := resp.GetWorkers()[0]; got.GetHeldTokens() != want.held || got.GetBound().GetKind() != want.bound.GetKind() {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
	for body, reason := range map[string]string{
		`{"lora_path":["lora"]}`: "BAD_BODY", `{"extra_key":["a","b"]}`: "BAD_BODY", `{"extra_key":"b"}`: "SALT_MISMATCH",
	} {
		_, err := r.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{Model: "m", ExtraKey: "a", HttpRequest: chat(body)}))
		wantReason(t, err, badArgument, reason)
	}
	// To vLLM they mean nothing.
	v, _ := rendered(t, nine+"}", scorerpc.Options{})
	if got := v.score(t, &kvscoutv1.ScoreRequest{HttpRequest: chat(`{"lora_path":["lora"],"extra_key":"x"}`)}); got.GetWorkers()[0].GetHeldTokens() != 4 {
		t.Errorf("vLLM: %v", got)
	}
}

// Tokens that the caller of the gateway put into the body are the prompt if callers are trusted; else such a body is
// refused, because the engine might run them and not what we render.
func TestScore_CallerTokens(t *testing.T) {
	bodies := []string{
		`{"prompt_token_ids":[151644,872,198,80,151645,198,151644,77091,198]}`,
		`{"prompt_token_ids":null,"prompt_token_ids_b64":"` + base64Nine + `"}`,
		`{"prompt_token_ids":[151644,872,198,80,151645,198,151644,77091,198],"prompt_token_ids_b64":"AAAA"}`,
		`{"input_ids":[151644,872,198,80,151645,198,151644,77091,198],"cache_salt":"tenant-a"}`,
		`{"nvext":{"token_data":[151644,872,198,80,151645,198,151644,77091,198]}}`,
		`{"kv_transfer_params":{"prompt_token_ids":[151644,872,198,80,151645,198,151644,77091,198]}}`,
	}
	trusting, fake := rendered(t, nine+"}", scorerpc.Options{TrustCallerTokens: true})
	wary, waryFake := rendered(t, nine+"}", scorerpc.Options{})
	for _, body := range bodies {
		resp := trusting.score(t, &kvscoutv1.ScoreRequest{Model: "m", HttpRequest: chat(body)})
		want := uint32(4)
		if strings.Contains(body, "tenant-a") {
			want = 8
		}
		if got := resp.GetWorkers()[0].GetHeldTokens(); got != want || resp.GetPromptTokens() != 9 || resp.GetRender() != nil {
			t.Errorf("%s: held %d, want %d: %v", body, got, want, resp)
		}
		_, err := wary.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{Model: "m", HttpRequest: chat(body)}))
		wantReason(t, err, badArgument, "CALLER_TOKENS")
		if strings.Contains(err.Error(), "872") {
			t.Errorf("tokens are in %q", err)
		}
	}
	if fake.asked.Load()+waryFake.asked.Load() != 0 {
		t.Error("a renderer was asked")
	}
	for body, reason := range map[string]string{
		`{"prompt_token_ids":[1],"input_ids":[1]}`:        "TWO_PROMPTS",
		`{"prompt_token_ids":[-1]}`:                       "NEGATIVE_TOKEN",
		`{"prompt_token_ids":[1.5]}`:                      "BAD_BODY",
		`{"prompt_token_ids":[]}`:                         "NO_PROMPT",
		`{"prompt_token_ids_b64":"AAA="}`:                 "TOKENS_NOT_MULTIPLE_OF_4",
		`{"prompt_token_ids_b64":"no base64"}`:            "BAD_BODY",
		`{"prompt_token_ids_b64":[1]}`:                    "BAD_BODY",
		`{"kv_transfer_params":{"prompt_token_ids":"x"}}`: "BAD_BODY",
	} {
		_, err := trusting.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{Model: "m", HttpRequest: chat(body)}))
		wantReason(t, err, badArgument, reason)
	}
	// Absent and null are as nothing.
	wary.score(t, &kvscoutv1.ScoreRequest{Model: "m", HttpRequest: chat(`{"prompt_token_ids":null,"kv_transfer_params":{},"nvext":{"token_data":null}}`)})
}

// Tokens come back packed, whichever way they came, with the items among them.
func TestScore_ReturnTokens(t *testing.T) {
	r, _ := rendered(t, nine+`,"features":{"mm_hashes":{"image":["h"]},"mm_placeholders":{"image":[{"offset":1,"length":2}]}}}`, scorerpc.Options{})
	resp := r.score(t, &kvscoutv1.ScoreRequest{HttpRequest: chat(`{}`), ReturnTokens: true})
	want := []*kvscoutv1.Feature{{Modality: "image", Hash: "h", Offset: 1, Length: 2}}
	if diff := cmp.Diff(want, resp.GetFeatures(), protocmp.Transform()); diff != "" || string(resp.GetTokens().GetPacked()) != packedNine {
		t.Errorf("tokens %x, features (-want +got):\n%s", resp.GetTokens().GetPacked(), diff)
	}
	again := r.score(t, &kvscoutv1.ScoreRequest{Tokens: resp.GetTokens(), Features: resp.GetFeatures(), ReturnTokens: true})
	if !proto.Equal(again.GetTokens(), resp.GetTokens()) || len(again.GetFeatures()) != 1 || !proto.Equal(again.GetWorkers()[0], resp.GetWorkers()[0]) && again.GetWorkers()[0].GetScore() != resp.GetWorkers()[0].GetScore() {
		t.Errorf("again: %v", again)
	}
	if quiet := r.score(t, &kvscoutv1.ScoreRequest{HttpRequest: chat(`{}`)}); quiet.GetTokens() != nil || quiet.GetFeatures() != nil {
		t.Errorf("not asked for: %v", quiet)
	}
	if hashed := r.score(t, &kvscoutv1.ScoreRequest{BlockHashes: &kvscoutv1.BlockHashes{BlockSize: 4, Packed: make([]byte, 8)}, ReturnTokens: true}); hashed.GetTokens() != nil {
		t.Errorf("of hashes: %v", hashed)
	}
}

// Case43: the prompts of one body are rated each by itself, and the answer tells which it is about.
func TestScore_Case43_PromptIndex(t *testing.T) {
	r, _ := rendered(t, "["+nine+`},{"token_ids":[1,2,3]}]`, scorerpc.Options{})
	req := rendering("/v1/completions", `{"prompt":["a","b"]}`)
	for i, want := range []struct{ held, tokens uint32 }{{4, 9}, {0, 3}} {
		req.PromptIndex = proto.Uint32(uint32(i))
		resp := r.score(t, req)
		if resp.GetWorkers()[0].GetHeldTokens() != want.held || resp.GetPromptTokens() != want.tokens ||
			resp.GetRender().GetPromptIndex() != uint32(i) || resp.GetRender().GetPrompts() != 2 {
			t.Errorf("prompt %d: %v", i, resp)
		}
	}
	for _, req := range []*kvscoutv1.ScoreRequest{
		{Model: "m", PromptIndex: proto.Uint32(2), HttpRequest: req.HttpRequest},
		{Model: "m", PromptIndex: proto.Uint32(0), Tokens: ids(seq(1, 4))},
	} {
		_, err := r.Score(t.Context(), connect.NewRequest(req))
		wantReason(t, err, badArgument, "BAD_PROMPT_INDEX")
	}
}

// fingerprinted is a rig of TensorRT-LLM workers: f0 renders as the renderer does, f1 otherwise, f2 and f3 do not say so.
func fingerprinted(t *testing.T, flag bool) *rig {
	fake := new(fakeVLLM)
	answer := strings.TrimSuffix(nine, "}") + `,"tokens_trusted":true,"fingerprint":{"digest":"d1"}}`
	r := start(t, scorerpc.Options{
		FlagFingerprints: flag,
		Renderer:         fake.renderer(t, answer, func(o *render.Options) { o.Protocol = render.ProtocolTRTLLM }),
	})
	for id, print := range map[string]string{"f0": "d1", "f1": "d2", "f2": "", "f3": "other:d2"} {
		r.worker(t, id, "m", events.EngineTRTLLM, func(w *ingest.Worker) { w.Fingerprint = print })
		r.publish(t, id, []any{"AllBlocksCleared"})
	}
	return r
}

// A worker that renders otherwise than the renderer is refused or flagged, by setting.
func TestScore_Fingerprints(t *testing.T) {
	strict := fingerprinted(t, false)
	_, err := strict.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{HttpRequest: chat(`{}`)}))
	wantReason(t, err, precondition, "FINGERPRINT_MISMATCH")
	strict.score(t, &kvscoutv1.ScoreRequest{HttpRequest: chat(`{}`), Candidates: []string{"f0", "f2", "f3"}})
	strict.score(t, &kvscoutv1.ScoreRequest{Tokens: ids(seq(1, 4))}) // nothing was rendered

	resp := fingerprinted(t, true).score(t, &kvscoutv1.ScoreRequest{HttpRequest: chat(`{}`)})
	if len(resp.GetWarnings()) != 1 || resp.GetRender().GetFingerprint() != "d1" {
		t.Errorf("answer %v", resp)
	}
	for _, w := range resp.GetWorkers() {
		want := bound(exact)
		if w.GetWorkerId() == "f1" {
			want = bound(estimate, kvscoutv1.BoundReason_BOUND_REASON_RENDER_DIFFERS)
		}
		if !proto.Equal(w.GetBound(), want) {
			t.Errorf("%s: bound %v, want %v", w.GetWorkerId(), w.GetBound(), want)
		}
	}
}

// RenderService renders as Score does, every prompt of the body.
func TestRender(t *testing.T) {
	r, _ := rendered(t, "["+nine+`},{"token_ids":[1],"sampling_params":{"skip_reading_prefix_cache":true}}]`, scorerpc.Options{})
	resp, err := r.Render(t.Context(), connect.NewRequest(&kvscoutv1.RenderRequest{Model: "lora", HttpRequest: rendering("/v1/completions", `{"prompt":["a","b"]}`).HttpRequest}))
	if err != nil {
		t.Fatal(err)
	}
	want := []*kvscoutv1.RenderedPrompt{
		{Tokens: &kvscoutv1.Tokens{Packed: []byte(packedNine)}},
		{Tokens: &kvscoutv1.Tokens{Packed: []byte{1, 0, 0, 0}}, SkipsPrefixCache: true},
	}
	if diff := cmp.Diff(want, resp.Msg.GetPrompts(), protocmp.Transform()); diff != "" || resp.Msg.GetRender().GetPrompts() != 2 {
		t.Errorf("prompts (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		req    *kvscoutv1.RenderRequest
		code   connect.Code
		reason string
	}{
		{&kvscoutv1.RenderRequest{}, badArgument, "NO_PROMPT"},
		{&kvscoutv1.RenderRequest{HttpRequest: &kvscoutv1.HttpRequest{}}, badArgument, "BAD_PATH"},
		{&kvscoutv1.RenderRequest{Model: "x", HttpRequest: chat(`{}`)}, connect.CodeNotFound, "UNKNOWN_MODEL"},
		{&kvscoutv1.RenderRequest{HttpRequest: chat(`{"input_ids":[1]}`)}, badArgument, "CALLER_TOKENS"},
		{&kvscoutv1.RenderRequest{HttpRequest: chat(`{}`)}, precondition, "RENDERER_UNUSABLE"}, // a list for a chat
		{&kvscoutv1.RenderRequest{HttpRequest: withHeaders(`{}`, "X-Fault", "500")}, connect.CodeUnavailable, "RENDERER_DOWN"},
	} {
		_, err := r.Render(t.Context(), connect.NewRequest(tt.req))
		wantReason(t, err, tt.code, tt.reason)
	}
}
