package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/test/tokenizers"
)

// recordedRender is a body with what vLLM 0.32's renderer answered to it.
type recordedRender struct {
	Name     string
	Path     string
	Body     *string
	Base64   []byte `json:"body_base64"`
	Status   int
	TokenIDs [][]uint32      `json:"token_ids"`
	Salt     *string         `json:"cache_salt"`
	Response json.RawMessage // of all refusals and some answers; of the others only the ids were kept
}

func (r *recordedRender) body() string {
	if r.Body != nil {
		return *r.Body
	}
	return string(r.Base64)
}

// forRenderer is the body as the renderer gets it: without what only gateways know, and not asking for media tensors.
func (r *recordedRender) forRenderer() string {
	body := strings.Replace(r.body(), `"nvext": {"use_raw_prompt": true}, `, "", 1)
	if strings.Contains(body, `"image_url"`) {
		body = `{"return_mm_kwargs":false,` + body[1:]
	}
	return body
}

// answer is the recorded answer, or one around the recorded ids.
func (r *recordedRender) answer(t testing.TB) []byte {
	if r.Response != nil {
		return r.Response
	}
	var list []obj
	for _, ids := range r.TokenIDs {
		list = append(list, obj{"request_id": "r", "token_ids": ids, "features": nil, "cache_salt": r.Salt})
	}
	if r.Path == "/v1/chat/completions" {
		return asJSON(t, list[0])
	}
	return asJSON(t, list)
}

func recordedRenders(t testing.TB) []*recordedRender {
	t.Helper()
	f, err := os.Open(filepath.Join(root, "test", "testdata", "render", "render-vllm-0.32-qwen3.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []*recordedRender
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		r := new(recordedRender)
		if err := json.Unmarshal(lines.Bytes(), r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	if err := lines.Err(); err != nil || len(out) != 94 {
		t.Fatalf("%d recorded renders, want 94: %v", len(out), err)
	}
	return out
}

// renderer is a server that answers as vllm-render did, or as it is told.
type renderer struct {
	*httptest.Server
	t       testing.TB
	mu      sync.Mutex // guards answers and fault
	answers map[string]*recordedRender
	fault   http.HandlerFunc // instead of answers, if set
}

func startRenderer(t testing.TB) *renderer {
	r := &renderer{t: t, answers: make(map[string]*recordedRender)}
	for _, rec := range recordedRenders(t) {
		r.answers[rec.Path+"/render "+rec.forRenderer()] = rec
	}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *renderer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	fault, rec := r.fault, r.answers[req.URL.Path+" "+string(body)]
	r.mu.Unlock()
	switch {
	case req.URL.Path == "/health" && fault == nil:
	case fault != nil:
		fault(w, req)
	case rec == nil:
		r.t.Errorf("the renderer got %s %q, which nobody sent", req.URL.Path, body)
		w.WriteHeader(http.StatusTeapot)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(rec.Status)
		_, _ = w.Write(rec.answer(r.t))
	}
}

func (r *renderer) fail(h http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = h
}

func httpRequest(r *recordedRender) obj {
	return obj{"model": renderedModel, "httpRequest": obj{"path": r.Path, "body": []byte(r.body())}}
}

const renderedModel = "tiny-qwen3"

// Bodies are rendered by the renderer and scored by the ids that it gives, in the namespace that the body names; what
// it refuses is refused.
func TestRender_RecordedBodies(t *testing.T) {
	t.Parallel()
	scoreRecorded(t, nil, "--renderer", startRenderer(t).URL)
}

// The same in process, from the files of the model.
func TestRender_RecordedBodiesInProcess(t *testing.T) {
	t.Parallel()
	inexact := failure{400, "failed_precondition", "RENDER_NOT_EXACT"}
	scoreRecorded(t, map[string]failure{"image part on a text model": inexact, "completion prompt_embeds": inexact}, "--render-model", "model="+renderedModel+",served="+renderedModel+",max-model-len=2048,profile=vllm,tokenizer="+tokenizers.Dir(t, "qwen3"))
}

// scoreRecorded scores every recorded body. What the engine refused is refused by the same reason, or by that in others.
func scoreRecorded(t *testing.T, others map[string]failure, flags ...string) {
	t.Helper()
	e := startEngine(t, engineConfig{id: "w0", model: renderedModel, replay: true})
	s := serveFleet(t, []*engine{e}, flags...)
	s.inState(t, "w0", 0, stateLive)
	e.hello(s)
	refused := map[int]failure{
		400: {400, "invalid_argument", "BAD_BODY"},
		404: {404, "not_found", "UNKNOWN_MODEL"},
	}
	hits := 0
	for _, rec := range recordedRenders(t) {
		other, has := others[rec.Name]
		switch {
		case has:
			s.fails(t, scoreMethod, httpRequest(rec), other)
		case rec.Status != http.StatusOK:
			s.fails(t, scoreMethod, httpRequest(rec), refused[rec.Status])
		case len(rec.TokenIDs) > 1:
			s.fails(t, scoreMethod, httpRequest(rec), failure{400, "invalid_argument", "SEVERAL_PROMPTS"})
		default:
			hits += renderAndServe(t, s, e, rec)
		}
	}
	if hits == 0 {
		t.Error("nothing was hit: the bodies prove nothing")
	}
}

// renderAndServe scores a body and has the engine serve its ids; it returns the engine's number of cached tokens.
func renderAndServe(t *testing.T, s *server, e *engine, rec *recordedRender) int {
	t.Helper()
	out := new(kvscoutv1.ScoreResponse)
	s.call(t, scoreMethod, httpRequest(rec), out)
	r := e.do(obj{"op": "serve", "tokens": rec.TokenIDs[0], "salt": rec.Salt})
	if len(out.Workers) != 1 || out.PromptTokens != uint32(len(rec.TokenIDs[0])) || out.Render.GetRenderer() == "" {
		t.Fatalf("%s: one worker, %d tokens and a renderer wanted: %v", rec.Name, len(rec.TokenIDs[0]), out)
	}
	if w := out.Workers[0]; w.ReusableTokens != uint32(r.Cached) || w.Bound.Kind != exact {
		t.Errorf("%s: predicted %d, %v; the engine took %d", rec.Name, w.ReusableTokens, w.Bound, r.Cached)
	}
	if !r.Silent {
		s.reached(t, "w0", 0, r.Seq)
	}
	return r.Cached
}

// A renderer that cannot or will not answer is told from a bad request, and never scored as an empty prompt (rule 14).
func TestRule14_RendererFaults(t *testing.T) {
	t.Parallel()
	r := startRenderer(t)
	e := startEngine(t, engineConfig{id: "w0", model: renderedModel, replay: true})
	s := serveFleet(t, []*engine{e}, "--renderer", r.URL, "--renderer-timeout", "2s", "--renderer-health-interval", "20ms")
	s.inState(t, "w0", 0, stateLive)
	rec, other := recordedRenders(t)[0], recordedRenders(t)[1]

	says := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	typed := func(status int, name string) http.HandlerFunc {
		return says(status, fmt.Sprintf(`{"error":{"message":"no","type":%q,"param":null,"code":%d}}`, name, status))
	}
	unusable, down := failure{400, "failed_precondition", "RENDERER_UNUSABLE"}, failure{503, "unavailable", "RENDERER_DOWN"}
	tests := []struct {
		name  string
		fault http.HandlerFunc
		want  failure
	}{
		{"403 without scale-out", typed(403, "PermissionDeniedError"), unusable},
		{"404 without the route", says(404, `{"detail":"Not Found"}`), unusable},
		{"404 that names no model", typed(404, "NotFoundError"), unusable},
		{"200 with an error body", says(200, `{"error":{"message":"no","type":"InternalServerError","code":500}}`), unusable},
		{"ids out of range", says(200, `{"token_ids":[1,2147483648],"features":null}`), unusable},
		{"redirect", func(w http.ResponseWriter, req *http.Request) {
			http.Redirect(w, req, "/elsewhere", http.StatusTemporaryRedirect)
		}, unusable},
		{"400", typed(400, "BadRequestError"), failure{400, "invalid_argument", "BAD_BODY"}},
		{"401", says(401, `{"error":"Unauthorized"}`), unusable},
		{"429", typed(429, "RateLimitError"), failure{429, "resource_exhausted", "OVERLOADED"}},
		{"500", typed(500, "InternalServerError"), down},
		{"502 of a proxy", says(502, "<html>bad gateway</html>"), down},
		{"no JSON", says(200, "<html>welcome</html>"), unusable},
		{"no ids", says(200, `{"request_id":"r"}`), unusable},
		{"empty ids", says(200, `{"token_ids":[],"features":null}`), unusable},
		{"negative ids", says(200, `{"token_ids":[1,-2],"features":null}`), unusable},
		{"endless", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"token_ids":[1`)
			for {
				if _, err := io.WriteString(w, strings.Repeat(",1", 4096)); err != nil {
					return
				}
			}
		}, failure{429, "resource_exhausted", "PROMPT_TOO_LONG"}},
		{"hangs", func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }, failure{504, "deadline_exceeded", "DEADLINE_EXCEEDED"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r.fail(tt.fault)
			s.fails(t, scoreMethod, httpRequest(rec), tt.want)
		})
	}
	r.fail(nil)
	s.fails(t, scoreMethod, obj{"model": renderedModel, "httpRequest": obj{"path": "/v1/embeddings", "body": []byte(rec.body())}},
		failure{400, "invalid_argument", "BAD_PATH"})
	renderAndServe(t, s, e, rec)
	eventually(t, "rendering is ready", func() bool { return s.renders(t) })
	r.Close()
	s.fails(t, scoreMethod, httpRequest(other), down)
	eventually(t, "rendering is not ready", func() bool { return !s.renders(t) })
	renderAndServe(t, s, e, rec) // at hand
	same(t, "tokens need no renderer", s.score(t, "w0", span(1, 9)), answer{0, 0, exact, ""})
}

// renders says whether the health of rendering is good.
func (s *server) renders(t testing.TB) bool {
	t.Helper()
	status, b, err := s.post("grpc.health.v1.Health/Check", asJSON(t, obj{"service": "kvscout.v1.RenderService"}))
	var said struct{ Status string }
	if err != nil || status != http.StatusOK || json.Unmarshal(b, &said) != nil {
		t.Fatalf("health: status %d, %v: %s", status, err, b)
	}
	return said.Status == "SERVING_STATUS_SERVING"
}
