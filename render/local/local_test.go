package local

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/render"
)

// TestRenderer_Goldens: every recorded body becomes the ids that vLLM 0.32 made of it, and what vLLM refused is refused.
// Case16: one begin token in chats and in completions. Case17: tool calls and their results. Case18: tool schemas in
// their order, characters unescaped. Case52, Case70: arguments of tool calls. Case67: content as text and as parts. Case68:
// arguments of the template. Case86: lone surrogates, invalid UTF-8. Case138: special tokens that a user typed.
func TestRenderer_Goldens(t *testing.T) {
	for _, name := range models {
		t.Run(name, func(t *testing.T) {
			r := recorded(t, name)
			rendered := 0
			for _, g := range goldens(t, name) {
				res, err := r.Render(t.Context(), g.request())
				if g.Status != http.StatusOK {
					want := map[int]error{400: render.ErrBadRequest, 404: render.ErrUnknownModel}[g.Status]
					if !errors.Is(err, want) && !errors.Is(err, render.ErrNotExact) {
						t.Errorf("%s: got %v, the engine said %d", g.Name, err, g.Status)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", g.Name, err)
					continue
				}
				rendered++
				var ids [][]uint32
				for _, p := range res.Prompts {
					ids = append(ids, p.Tokens)
				}
				if diff := cmp.Diff(g.TokenIDs, ids); diff != "" {
					t.Errorf("%s (-engine +got):\n%s", g.Name, diff)
				}
			}
			if rendered != 67 {
				t.Errorf("%d bodies rendered, want 67", rendered)
			}
			report := r.Report()
			if !report.Ready || report.Calls != 94 || report.Memory < 10<<20 || !strings.HasPrefix(report.Fingerprint, "kvscout:") {
				t.Errorf("report %+v", report)
			}
		})
	}
}

// TestRenderer_Errors: each fault has its reason, and texts hold nothing of the body.
func TestRenderer_Errors(t *testing.T) {
	r := load(t, files(t, letters(), plain+`{% if messages[0].content == 'raise' %}{{ raise_exception('secret raise') }}{% endif %}`),
		func(o *Options) {
			o.Served, o.MaxModelLen, o.MaxBody, o.MaxTokens, o.MaxPrompts = []string{"m"}, 50, 1000, 20, 2
		})
	for name, c := range map[string]struct {
		req  render.Request
		want error
	}{
		"path":             {render.Request{Path: "/v1/embeddings", Body: []byte(`{}`)}, render.ErrPath},
		"body over":        {saying(strings.Repeat("secret", 200)), render.ErrBodyTooLarge},
		"no json":          {render.Request{Path: render.PathChat, Body: []byte(`{"secret`)}, render.ErrBadRequest},
		"another model":    {render.Request{Path: render.PathChat, Body: []byte(`{"model":"secret","messages":[{"role":"user","content":"a"}]}`)}, render.ErrUnknownModel},
		"image":            {render.Request{Path: render.PathChat, Body: []byte(`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"secret"}}]}]}`)}, render.ErrNotExact},
		"raised":           {saying("raise"), render.ErrBadRequest},
		"no tokens":        {saying("123"), render.ErrBadRequest},
		"over the model":   {saying(strings.Repeat("a", 51)), render.ErrBadRequest},
		"over our limit":   {saying(strings.Repeat("a", 21)), render.ErrTooLarge},
		"too many prompts": {render.Request{Path: render.PathCompletions, Body: []byte(`{"prompt":["a","b","c"]}`)}, render.ErrTooLarge},
	} {
		res, err := r.Render(t.Context(), c.req)
		if !errors.Is(err, c.want) || len(res.Prompts) > 0 {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
			continue
		}
		var e *render.Error
		if !errors.As(err, &e) || r.Report().Errors[e.Reason] == 0 {
			t.Errorf("%s: %v is not counted", name, err)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the body is in %q", name, err)
		}
		if name == "raised" && e.Message != "secret raise" {
			t.Errorf("the template's words are %q", e.Message)
		}
	}
	if _, err := New("", Options{Profile: "vllm"}); !errors.Is(err, ErrOptions) {
		t.Error(err)
	}
	for _, o := range []Options{{}, {Profile: "VLLM"}, {Profile: "vllm", MaxBody: -1}, {Profile: "vllm", ContentFormat: "x"}} {
		if _, err := New("d", o); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestRenderer_Case69_NotLoaded: files that cannot be rendered exactly make a renderer that is not ready and says why.
func TestRenderer_Case69_NotLoaded(t *testing.T) {
	for name, dir := range map[string]string{
		"no directory":   "/nonexistent",
		"no tokenizer":   t.TempDir(),
		"broken":         files(t, `{`, plain),
		"unknown model":  files(t, `{"model":{"type":"Sparkle","vocab":[]}}`, plain),
		"unknown filter": files(t, letters(), `{{ messages|sparkle }}`),
		"unknown tag":    files(t, letters(), `{% include 'x' %}`),
		"no template":    files(t, letters(), `{% for %}`),
	} {
		r, err := New(dir, Options{Profile: "vllm"})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Ready(); !errors.Is(err, render.ErrUnusable) {
			t.Errorf("%s: ready before a load: %v", name, err)
		}
		if err := r.Load(); !errors.Is(err, render.ErrUnusable) {
			t.Errorf("%s: loaded: %v", name, err)
		}
		if _, err := r.Render(t.Context(), saying("a")); !errors.Is(err, render.ErrUnusable) {
			t.Errorf("%s: rendered: %v", name, err)
		}
		if report := r.Report(); report.Ready || report.Fault == nil || r.Version() != 0 {
			t.Errorf("%s: report %+v", name, report)
		}
	}
}

// TestRenderer_Time: a template that does not come to an end ends with the caller's time, or with ours.
func TestRenderer_Time(t *testing.T) {
	endless := `{% for a in range(99999) %}{% for b in range(99999) %}{{ a }}{% endfor %}{% endfor %}`
	dir := files(t, letters(), endless)
	r := load(t, dir, func(o *Options) { o.Timeout = 20 * time.Millisecond })
	if _, err := r.Render(t.Context(), saying("a")); !errors.Is(err, render.ErrTimeout) {
		t.Errorf("our limit: %v", err)
	}
	r = load(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := r.Render(ctx, saying("a")); !errors.Is(err, render.ErrTimeout) {
		t.Errorf("the caller's limit: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if _, err := r.Render(ctx, saying("a")); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller is gone: %v", err)
	}
}

// TestRule17_RendersAtOnce are bounded; who waits too long is told.
func TestRule17_RendersAtOnce(t *testing.T) {
	r := load(t, files(t, letters(), plain), func(o *Options) { o.Concurrency, o.Timeout = 1, 20*time.Millisecond })
	r.slots <- struct{}{} // a render that lasts
	if _, err := r.Render(t.Context(), saying("a")); !errors.Is(err, render.ErrOverloaded) {
		t.Errorf("got %v", err)
	}
	<-r.slots
	if _, err := r.Render(t.Context(), saying("a")); err != nil {
		t.Error(err)
	}
}

// TestRenderer_Clock: a template that prints the time gets the given one, and its results are not to be kept.
func TestRenderer_Clock(t *testing.T) {
	now := time.Date(2026, 3, 7, 9, 5, 3, 0, time.UTC)
	r := load(t, files(t, letters(), `{{ strftime_now('%B')|lower }}`), func(o *Options) { o.Now = func() time.Time { return now } })
	res, err := r.Render(t.Context(), saying("a"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]uint32{12, 0, 17, 2, 7}, res.Prompts[0].Tokens); diff != "" { // m a r c h
		t.Error(diff)
	}
	if r.Version() != 0 {
		t.Error("results may be kept")
	}
	if v := load(t, files(t, letters(), plain)).Version(); v != 1 {
		t.Errorf("version %d without the time", v)
	}
}

// TestRenderer_Case157_CacheNotRead: log probabilities of the prompt keep vLLM from its prefix cache.
func TestRenderer_Case157_CacheNotRead(t *testing.T) {
	r := load(t, files(t, letters(), plain))
	for body, want := range map[string]bool{
		`{"prompt":"a"}`:                                  false,
		`{"prompt":"a","prompt_logprobs":0}`:              true,
		`{"prompt":"a","prompt_logprobs":null}`:           false,
		`{"prompt":"a","logprobs":2}`:                     false,
		`{"prompt":"a","logprobs":2,"echo":true}`:         true,
		`{"prompt":"a","echo":true}`:                      false,
		`{"prompt":"a","logprobs":null,"echo":true}`:      false,
		`{"prompt":"a","logprobs":2,"echo":false}`:        false,
		`{"prompt":"a","prompt_logprobs":1,"echo":false}`: true,
	} {
		res, err := r.Render(t.Context(), render.Request{Path: render.PathCompletions, Body: []byte(body)})
		if err != nil || res.Prompts[0].SkipsPrefixCache != want {
			t.Errorf("%s: %+v, %v, want %v", body, res.Prompts, err, want)
		}
	}
}
