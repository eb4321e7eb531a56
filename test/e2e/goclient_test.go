package e2e

import (
	"context"
	"crypto/tls"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/client"
	"github.com/kvscout/kvscout/test/pki"
	"github.com/kvscout/kvscout/test/testport"
)

func goClient(t *testing.T, opts client.Options, urls ...string) *client.Client {
	t.Helper()
	c, err := client.New(urls, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Two servers listen to one engine. While the Go client's callers score, one is killed by SIGKILL and started again, and
// then the other: each call is answered, and answered right.
func TestGoClient_ReplicasAreKilled(t *testing.T) {
	t.Parallel()
	e := startEngine(t, engineConfig{id: "w0", replay: true})
	a, b := serveFleet(t, []*engine{e}), serveFleet(t, []*engine{e})
	e.hello(a)
	e.hello(b)
	seq := e.serve(span(1, 8)).Seq
	a.reached(t, "w0", 0, seq)
	b.reached(t, "w0", 0, seq)
	c := goClient(t, client.Options{Timeout: patience, Retries: 1000}, a.url, b.url)
	var wg sync.WaitGroup
	var answered atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	for range 4 {
		wg.Go(func() { // ended by cancel, waited for below
			for ctx.Err() == nil {
				res, err := c.Score(context.Background(), &kvscoutv1.ScoreRequest{Model: "m", Tokens: client.Tokens(span(1, 9))})
				if err != nil || len(res.GetWorkers()) != 1 || res.GetWorkers()[0].GetHeldTokens() != 8 {
					t.Errorf("got %v, %v", res, err)
				}
				answered.Add(1)
			}
		})
	}
	more := func() {
		n := answered.Load()
		eventually(t, "calls are answered", func() bool { return answered.Load() > n+50 })
	}
	more()
	a.kill()
	more()
	cmd := exec.Command(program, "serve", "--listen", a.addr, "--source", e.spec())
	cmd.Env = clearedEnv()
	again := &server{process: start(t, "kvscout serve", cmd), addr: a.addr, url: a.url}
	eventually(t, "it serves again", func() bool {
		_, _, err := again.post(statsMethod, []byte("{}"))
		return err == nil
	})
	again.reached(t, "w0", 0, seq)
	b.kill()
	more()
	cancel()
	wg.Wait()
}

// Over TLS with a bearer token of a file: without one, or with one that may only score, a call is refused and not repeated.
func TestGoClient_TLSAndToken(t *testing.T) {
	t.Parallel()
	authority := pki.New(t, "test")
	cert, key := authority.Sign(pki.Leaf{CommonName: "kvscout"})
	dir := t.TempDir()
	const token = "0123456789abcdef-score"
	for name, text := range map[string]string{"callers": "score picker token:" + token + "\n", "token": token + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	addr := "127.0.0.1:" + strconv.Itoa(testport.Free(t, 1))
	cmd := exec.Command(program, "serve", "--listen", addr, "--admin-listen", "off", "--tls-cert", cert, "--tls-key", key, "--callers", filepath.Join(dir, "callers"))
	cmd.Env = clearedEnv()
	start(t, "kvscout serve", cmd)
	opts := client.Options{TLS: &tls.Config{RootCAs: authority.Pool()}, Timeout: patience}
	request := &kvscoutv1.ScoreRequest{Tokens: client.Tokens(span(1, 9))}
	stranger := goClient(t, opts, "https://"+addr)
	eventually(t, "the server answers a stranger", func() bool {
		_, err := stranger.Score(t.Context(), request)
		return connect.CodeOf(err) == connect.CodeUnauthenticated && client.Reason(err) != ""
	})
	for _, protocol := range []client.Protocol{client.Connect, client.GRPC, client.GRPCWeb} {
		opts.Protocol, opts.Token = protocol, client.TokenFile(filepath.Join(dir, "token"))
		c := goClient(t, opts, "https://"+addr)
		if _, err := c.Score(t.Context(), request); client.Reason(err) != "MODEL_REQUIRED" { // nobody is registered
			t.Errorf("%s: a score with the token: %v", protocol, err)
		}
		_, err := c.DeregisterWorker(t.Context(), &kvscoutv1.DeregisterWorkerRequest{WorkerId: "w0"})
		if connect.CodeOf(err) != connect.CodePermissionDenied || client.Reason(err) == "" || strings.Contains(err.Error(), token) {
			t.Errorf("%s: an operation with a token to score: %v", protocol, err)
		}
	}
}
