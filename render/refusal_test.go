package render

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// TestClient_Refusals: what the renderer, or something before it, says with a status. The forms are vLLM's (recorded
// goldens; reference of its error handling), FastAPI's and those of common proxies.
func TestClient_Refusals(t *testing.T) {
	vllm := func(message, kind, param string) string {
		return `{"error":{"message":"` + message + `","type":"` + kind + `","param":` + param + `,"code":1}}`
	}
	const html = `<html><head><title>503</title></head></html>`
	for name, c := range map[string]struct {
		status  int
		body    string
		header  []string
		want    error
		message string
		wait    time.Duration
	}{
		"validation":           {400, vllm("bad", "Bad Request", `"body"`), nil, ErrBadRequest, "bad", 0},
		"framework":            {400, `{"detail":"There was an error parsing the body"}`, nil, ErrBadRequest, "There was an error parsing the body", 0},
		"unprocessable":        {422, vllm("no", "UnprocessableEntityError", "null"), nil, ErrBadRequest, "no", 0},
		"422 with a list":      {422, `{"detail":[{"msg":"x"}]}`, nil, ErrBadRequest, "", 0},
		"400 of a proxy":       {400, html, nil, ErrBadRequest, "", 0},
		"unauthorized":         {401, `{"error":"Unauthorized"}`, nil, ErrUnauthorized, "", 0},
		"scale-out disabled":   {403, vllm("start with --enable-scale-out", "PermissionDeniedError", "null"), nil, ErrScaleOutDisabled, "start with --enable-scale-out", 0},
		"403 of a mesh":        {403, `RBAC: access denied`, nil, ErrUnauthorized, "", 0},
		"unknown model":        {404, vllm("The model `x` does not exist.", "NotFoundError", "null"), nil, ErrUnknownModel, "The model `x` does not exist.", 0},
		"unknown model, param": {404, vllm("no such", "NotFoundError", `"model"`), nil, ErrUnknownModel, "no such", 0},
		"unknown model, flat":  {404, `{"object":"error","message":"The model x does not exist.","type":"NotFoundError","param":null,"code":404}`, nil, ErrUnknownModel, "The model x does not exist.", 0},
		"no route":             {404, `{"detail":"Not Found"}`, nil, ErrNoRoute, "Not Found", 0},
		"no route, html":       {404, html, nil, ErrNoRoute, "", 0},
		"no route, empty":      {404, ``, nil, ErrNoRoute, "", 0},
		"no route, other kind": {404, vllm("Not Found", "Not Found", "null"), nil, ErrNoRoute, "Not Found", 0},
		"method":               {405, `{"detail":"Method Not Allowed"}`, nil, ErrNoRoute, "Method Not Allowed", 0},
		"no handler":           {501, vllm("no", "NotImplementedError", "null"), nil, ErrNoRoute, "no", 0},
		"too large":            {413, html, nil, ErrBodyTooLarge, "", 0},
		"rate limit":           {429, vllm("slow", "RateLimitError", "null"), []string{"Retry-After", "7"}, ErrOverloaded, "slow", 7 * time.Second},
		"rate limit, silent":   {429, ``, nil, ErrOverloaded, "", 0},
		"sheds load":           {503, ``, []string{"Retry-After", "2"}, ErrOverloaded, "", 2 * time.Second},
		"retry much later":     {503, ``, []string{"Retry-After", "4000000000"}, ErrOverloaded, "", time.Hour},
		"retry nonsense":       {503, ``, []string{"Retry-After", "-3"}, ErrOverloaded, "", 0},
		"no endpoints":         {503, html, nil, ErrDown, "", 0},
		"internal":             {500, vllm("boom", "InternalServerError", "null"), nil, ErrDown, "boom", 0},
		"bad gateway":          {502, html, nil, ErrDown, "", 0},
		"teapot":               {418, ``, nil, ErrContract, "", 0},
		"no content":           {204, ``, nil, ErrContract, "", 0},
		"cut message":          {400, `{"error":{"type":"x","message":"half of i`, nil, ErrBadRequest, "half of i", 0},
	} {
		t.Run(name, func(t *testing.T) {
			client := serve(t, answering(c.status, c.body, c.header...))
			_, err := chat(t, client)
			var e *Error
			if !errors.Is(err, c.want) || !errors.As(err, &e) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if e.Status != c.status || e.Message != c.message || e.RetryAfter != c.wait {
				t.Errorf("got %+v, want status %d, message %q, wait %v", e, c.status, c.message, c.wait)
			}
			if n := client.Stats().Errors[e.Reason]; n != 1 {
				t.Errorf("counted %d times under %v", n, e.Reason)
			}
		})
	}
}

// TestError_MessageIsBounded: the renderer's words are cut, stay UTF-8, and are not in the error text.
func TestError_MessageIsBounded(t *testing.T) {
	long := strings.Repeat("ä secret ", 100000)
	_, err := chat(t, serve(t, answering(400, `{"error":{"message":"x`+long+`","type":"BadRequestError"}}`)))
	var e *Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	if len(e.Message) > maxMessage || len(e.Message) < maxMessage-4 || !utf8.ValidString(e.Message) {
		t.Errorf("message of %d bytes, valid %v", len(e.Message), utf8.ValidString(e.Message))
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("error text quotes the renderer: %v", err)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "12": 12 * time.Second, "soon": 0, "1.5": 0,
		now.Add(90 * time.Second).Format(http.TimeFormat): 90 * time.Second,
		now.Add(-time.Minute).Format(http.TimeFormat):     0,
		now.Add(72 * time.Hour).Format(http.TimeFormat):   time.Hour,
	} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("%q: got %v, want %v", value, got, want)
		}
	}
}

func TestReason_Names(t *testing.T) {
	seen := map[string]bool{}
	for r := range ReasonCount {
		name := r.String()
		if name == "" || name == "unknown" || seen[name] || sentinels[r] == nil {
			t.Errorf("reason %d has name %q, sentinel %v", r, name, sentinels[r])
		}
		seen[name] = true
		if err := error(&Error{Reason: r}); !errors.Is(err, sentinels[r]) || errors.Is(err, sentinels[(r+1)%ReasonCount]) {
			t.Errorf("reason %v does not match its sentinel alone", r)
		}
	}
	if ReasonCount.String() != "unknown" {
		t.Error("a number that is no reason has a name")
	}
}
