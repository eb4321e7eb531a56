package bench_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/kvscout/kvscout/scorer/bench"
)

// A lean caller reads whatever form of answer net/http gives, and dials again when the server hangs up.
func TestLeanCaller_Forms(t *testing.T) {
	long := strings.Repeat("answer ", 10_000)
	srv := formServer(t, long)
	forms := []string{"chunked", "short", "empty", "closing", "refused", "hangs up", "short"}
	want := map[string]string{"chunked": long, "short": "short", "closing": long}
	checked := 0
	post := &bench.Post{
		Path: "/x", ContentType: "text/plain",
		Dial: func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", srv.Listener.Addr().String())
		},
		Check: func(i int, answer []byte, _ bool) error {
			checked++
			if string(answer) != want[forms[i]] {
				t.Errorf("%s: %d bytes %.20q", forms[i], len(answer), answer)
			}
			return nil
		},
	}
	for _, f := range forms {
		post.Bodies = append(post.Bodies, []byte(f))
	}
	c := bench.NewLean(post, post.Messages(), 0)
	defer c.Close()
	for n := range 2 * len(forms) {
		err := c.Call(t.Context(), n)
		switch f := forms[n%len(forms)]; f {
		case "refused":
			if err != bench.Refusal("HTTP_418") {
				t.Errorf("a refusal is %v", err)
			}
		case "hangs up":
			if err == nil {
				t.Error("a connection that ended is no error")
			}
		default:
			if err != nil {
				t.Errorf("%s: %v", f, err)
			}
		}
	}
	if checked != 10 {
		t.Errorf("%d answers were checked, want 10", checked)
	}
}

// formServer answers in the form that a request names.
func formServer(t *testing.T, long string) *httptest.Server {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch string(body) {
		case "chunked":
			w.Header().Set("Trailer", "X-After")
			fmt.Fprint(w, long[:100])
			w.(http.Flusher).Flush()
			fmt.Fprint(w, long[100:])
			w.Header().Set("X-After", "1")
		case "closing":
			w.Header().Set("Connection", "close")
			fmt.Fprint(w, long)
		case "empty":
			w.WriteHeader(http.StatusOK)
		case "refused":
			http.Error(w, "no", http.StatusTeapot)
		case "hangs up":
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = conn.Close()
			}
		default:
			fmt.Fprint(w, "short")
		}
	}))
	t.Cleanup(srv.Close)
	return srv
}

// Callers on one thread do as one alone does: what is refused and what hangs up is counted so, and nothing is lost. A message
// that no socket takes at once is sent whole.
func TestRun_LeanForms(t *testing.T) {
	long := strings.Repeat("answer ", 10_000)
	srv := formServer(t, long)
	forms := []string{"chunked", "short", "empty", "closing", "refused", "hangs up", strings.Repeat("a large one ", 500_000)}
	want := map[string]string{"chunked": long, "empty": "", "closing": long}
	var checked [7]int
	post := &bench.Post{
		Path: "/x", ContentType: "text/plain",
		Dial: func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", srv.Listener.Addr().String())
		},
		Check: func(i int, answer []byte, _ bool) error {
			checked[i]++
			if w, ok := want[forms[i]]; ok && string(answer) != w || !ok && string(answer) != "short" {
				t.Errorf("%.10s: %d bytes %.20q", forms[i], len(answer), answer)
				return bench.ErrWrong
			}
			return nil
		},
	}
	for _, f := range forms {
		post.Bodies = append(post.Bodies, []byte(f))
	}
	var callers []bench.Caller
	for i := range 3 {
		callers = append(callers, bench.NewLean(post, post.Messages(), i))
	}
	got := bench.Run(t.Context(), callers, bench.Load{During: time.Second, Rate: 200})
	sum := 0
	for i, n := range checked {
		sum += n
		if refused := i == 4 || i == 5; (n == 0) != refused {
			t.Errorf("%.10s was answered %d times", forms[i], n)
		}
	}
	if got.Calls == 0 || int(got.Calls) > sum || got.Reasons["HTTP_418"] == 0 || got.Reasons[bench.ReasonConnection] == 0 || len(got.Reasons) != 2 {
		t.Errorf("%d calls of %d, errors %v: %v", got.Calls, sum, got.Reasons, got.First)
	}
}

// In an open loop on one thread a call counts from when it was due, however late it begins.
func TestRun_LeanOpenLoopTimesFromWhenDue(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(50 * time.Millisecond) }))
	defer srv.Close()
	post := &bench.Post{
		Path: "/x", ContentType: "text/plain", Bodies: [][]byte{nil},
		Dial: func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", srv.Listener.Addr().String())
		},
		Check: func(int, []byte, bool) error { return nil },
	}
	got := bench.Run(t.Context(), []bench.Caller{bench.NewLean(post, post.Messages(), 0)}, bench.Load{During: time.Second, Rate: 100})
	// As in TestRun_OpenLoopTimesFromWhenDue.
	if got.Errors != 0 || got.Max < 300_000 || got.Calls > 20 || got.Calls == 0 {
		t.Errorf("%d calls, the slowest %.0f us, %v", got.Calls, got.Max, got.First)
	}
}
