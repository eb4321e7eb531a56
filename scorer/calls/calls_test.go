package calls

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const method = "/kvscout.v1.ScoreService/Score"

// follow has h answer one request, and returns the answer and how the call ended.
func follow(t *testing.T, opts Options, h http.HandlerFunc, edit ...func(*http.Request)) (*httptest.ResponseRecorder, Done) {
	t.Helper()
	var got []Done
	opts.Methods, opts.Observe = []string{method}, func(d Done) { got = append(got, d) }
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, method, nil)
	for _, e := range edit {
		e(req)
	}
	w := httptest.NewRecorder()
	New(opts).Handler(h).ServeHTTP(w, req)
	if len(got) != 1 {
		t.Fatalf("%d calls ended", len(got))
	}
	return w, got[0]
}

func with(name string, values ...string) func(*http.Request) {
	return func(r *http.Request) { r.Header[name] = values }
}

func TestRecorder_RequestID(t *testing.T) {
	for _, id := range []string{"a", "01J-x_y.z:1/2+3=4@5~6", strings.Repeat("x", MaxID)} {
		w, _ := follow(t, Options{}, func(http.ResponseWriter, *http.Request) {}, with(headerRequestID, id))
		if got := w.Header().Get("x-request-id"); got != id {
			t.Errorf("%q became %q", id, got)
		}
	}
	made := make(map[string]bool)
	for _, ids := range [][]string{nil, {""}, {"a b"}, {"a\nb"}, {`a"b`}, {"é"}, {strings.Repeat("x", MaxID+1)}, {"a", "b"}} {
		w, _ := follow(t, Options{}, func(_ http.ResponseWriter, r *http.Request) {
			if got := RequestID(r.Context()); len(got) != 16 {
				t.Errorf("in the handler of %q: %q", ids, got)
			}
		}, with(headerRequestID, ids...))
		got := w.Header()[headerRequestID]
		if len(got) != 1 || len(got[0]) != 16 || strings.Trim(got[0], "0123456789abcdef") != "" || made[got[0]] {
			t.Errorf("%q became %q", ids, got)
		}
		made[got[0]] = true
	}
	if RequestID(t.Context()) != "" {
		t.Error("an id outside of calls")
	}
}

// The code of an answer that no handler gave is read off the answer.
func TestRecorder_CodeWithoutHandler(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"connect":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }, "resource_exhausted"},
		"no method":  {http.NotFound, "unimplemented"},
		"odd status": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }, "unknown"},
		"plain":      {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x")) }, "ok"},
		"nothing":    {func(http.ResponseWriter, *http.Request) {}, "ok"},
		"gRPC": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", "16")
			w.WriteHeader(http.StatusOK)
		}, "unauthenticated"},
		"gRPC ok":  {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Grpc-Status", "0") }, "ok"},
		"continue": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusEarlyHints); w.WriteHeader(403) }, "permission_denied"},
	} {
		if _, d := follow(t, Options{}, c.answer); d.Code != c.want || d.Method != method[1:] {
			t.Errorf("%s: %+v, want %s", name, d, c.want)
		}
	}
}

func TestRecorder_OtherPathsAreOne(t *testing.T) {
	_, d := follow(t, Options{}, http.NotFound, func(r *http.Request) { r.URL.Path = "/whatever/somebody/sends" })
	if d.Method != MethodOther {
		t.Errorf("%+v", d)
	}
}

// A call whose handler panics ends, too, and the panic goes on.
func TestRecorder_Panic(t *testing.T) {
	ended := 0
	h := New(Options{Observe: func(Done) { ended++ }}).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	func() {
		defer func() {
			if recover() != http.ErrAbortHandler {
				t.Error("the panic was kept")
			}
		}()
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, method, nil))
	}()
	if ended != 1 {
		t.Errorf("%d calls ended", ended)
	}
}

// Lines that are written for a call name it once, whoever writes them; error texts stay out.
func TestLogHandler(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(LogHandler(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})))
	const id, traceID = "request-1", "4bf92f3577b34da6a3ce929d0e0e4736"
	_, d := follow(t, Options{Logger: log}, func(_ http.ResponseWriter, r *http.Request) {
		log.With("a", 1).InfoContext(r.Context(), "inside")
		log.WithGroup("g").InfoContext(context.WithoutCancel(r.Context()), "grouped")
		noted(r.Context(), connect.NewError(connect.CodeNotFound, errors.New("secret")))
	}, with(headerRequestID, id), with("Traceparent", "00-"+traceID+"-00f067aa0ba902b7-01"))
	log.Info("outside")
	if d.Trace.TraceID().String() != traceID || !d.Trace.IsSampled() || d.Code != "not_found" {
		t.Errorf("%+v", d)
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	for i, want := range []string{"msg=inside a=1 request_id=" + id + " trace_id=" + traceID, "msg=grouped g.request_id=" + id, "code=not_found", "msg=outside"} {
		names := 1
		if i == 3 {
			names = 0
		}
		if !strings.Contains(lines[i], want) || strings.Count(lines[i], "request_id=") != names || strings.Count(lines[i], "trace_id="+traceID) != names {
			t.Errorf("line %d: %s", i, lines[i])
		}
	}
	if strings.Contains(text.String(), "secret") {
		t.Error(text.String())
	}
}

// BenchmarkHandler has nothing that is traced: what a call costs beside its handler.
func BenchmarkHandler(b *testing.B) {
	h := New(Options{Methods: []string{method}, Observe: func(Done) {}}).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { noted(r.Context(), nil) }))
	w, req := httptest.NewRecorder(), httptest.NewRequestWithContext(b.Context(), http.MethodPost, method, nil)
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, req)
	}
}
