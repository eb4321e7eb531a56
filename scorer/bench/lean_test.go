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

	"github.com/kvscout/kvscout/scorer/bench"
)

// A lean caller reads whatever form of answer net/http gives, and dials again when the server hangs up.
func TestLeanCaller_Forms(t *testing.T) {
	long := strings.Repeat("answer ", 10_000)
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
	defer srv.Close()
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
