package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
)

// A bearer token goes in clear text to no other machine unless that is asked for. 0.0.0.0 leads to this machine and is no
// address of loopback's.
func TestAccess_TokenNeedsTLS(t *testing.T) {
	const secret = "operate-token-0123456789"
	callers, token := writeFile(t, "callers", "operate admin token:"+secret+"\n"), writeFile(t, "token", secret)
	server, _ := startServe(t, "--listen", "127.0.0.1:0", "--callers", callers)
	beyond := strings.Replace(server, "127.0.0.1", "0.0.0.0", 1)
	for _, args := range [][]string{
		{"stats"}, {"stats", "--watch"}, {"top", "--once"}, {"workers", "add", "--source", "id=w0,engine=vllm,model=m"},
		{"dump"}, {"clear", "--worker", "w0"}, {"replay", "../../test/testdata/recordings"}, {"bench", "score"},
	} {
		r := run(t, append(args, "--server", beyond, "--token-file", token)...)
		if r.code != exitUsage || r.out != "" || strings.Contains(r.err, secret) {
			t.Errorf("%v: exit %d, %s%s", args, r.code, r.out, r.err)
		}
		wants(t, r.err, "a token would go without TLS to "+beyond, "--insecure-token")
	}
	for _, args := range [][]string{
		{"--server", beyond, "--token-file", token, "--insecure-token"},
		{"--server", server, "--token-file", token},
		{"--server", strings.Replace(server, "127.0.0.1", "localhost", 1), "--token-file", token},
	} {
		wants(t, ok(t, append([]string{"stats"}, args...)...), "index version")
	}
	r := run(t, "stats", "--server", beyond) // without a token there is nothing to keep
	if r.code != exitFailed || !strings.Contains(r.err, "NO_CREDENTIAL") {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
}

// A token may come from a pipe, which can be read once only.
func TestAccess_TokenFromPipe(t *testing.T) {
	callers := writeFile(t, "callers", "score gateway token:score-token-0123456789\n")
	server, _ := startServe(t, "--listen", "127.0.0.1:0", "--callers", callers)
	for text, want := range map[string]int{"score-token-0123456789\n": exitOK, "": exitUsage, "two words": exitUsage} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.WriteString(text); err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		got := run(t, "stats", "--server", server, "--token-file", fmt.Sprintf("/dev/fd/%d", r.Fd()))
		_ = r.Close()
		if got.code != want {
			t.Errorf("%q: exit %d, %s", text, got.code, got.err)
		}
	}
}

// What changes nothing is asked again when a server is not there for a moment; what changes something is not.
func TestCommands_TryAgainWhereSafe(t *testing.T) {
	server, ids := scored(t)
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int64
	next := httputil.NewSingleHostReverseProxy(target)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			_ = connect.NewErrorWriter().Write(w, r, connect.NewError(connect.CodeUnavailable, fmt.Errorf("restarting")))
			return
		}
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	wants(t, ok(t, "score", "--server", front.URL, "--tokens", ids), "device 64")
	if calls.Load() != 2 {
		t.Errorf("%d calls", calls.Load())
	}
	calls.Store(0)
	r := run(t, "clear", "--server", front.URL, "--worker", "w0")
	if r.code != exitFailed || !strings.Contains(r.err, "restarting") || calls.Load() != 1 {
		t.Errorf("exit %d after %d calls: %s", r.code, calls.Load(), r.err)
	}
}
