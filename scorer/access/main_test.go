package access_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/indexer/ingest"
	"github.com/kvscout/kvscout/scorer/access"
	"github.com/kvscout/kvscout/scorer/scorerpc"
	"github.com/kvscout/kvscout/scorer/server"
	"github.com/kvscout/kvscout/test/testlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Tokens of the callers file of most tests.
const (
	scoreToken   = "score-token-0123456789"
	operateToken = "operate-token-0123456789"
	twoCallers   = "score gateway token:" + scoreToken + "\noperate admin token:" + operateToken + "\n"
)

// rig is a running server behind a guard. It serves the model "m" of a worker that holds nothing.
type rig struct {
	t     testing.TB
	addr  string
	url   string
	guard *access.Guard
	log   *testlog.Buffer
}

// start runs a server on a loopback port until the test ends, and reads its files every few milliseconds.
func start(t testing.TB, opts access.Options, origins ...string) *rig {
	t.Helper()
	r := &rig{t: t, log: new(testlog.Buffer)}
	opts.Logger = slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	if r.guard, err = access.New(opts); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr, r.url = l.Addr().String(), "http://"+l.Addr().String()
	if r.guard.TLS() != nil {
		r.url = "https://" + r.addr
	}
	index := indexer.New(indexer.Options{})
	fleet := ingest.New(index, ingest.Options{})
	t.Cleanup(fleet.Close)
	scores := scorerpc.New(index, fleet, scorerpc.Options{})
	srv := server.New(server.Options{
		Score: scores, Render: scores, Guard: r.guard, Origins: origins, Logger: opts.Logger,
		Index: indexrpc.New(index, fleet, indexrpc.Options{AccessStats: r.guard.Stats}),
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.guard.Run(ctx, 2*time.Millisecond) }) // ended by cancel, waited for in the cleanup, as the next
	running.Go(func() {
		if err := srv.Serve(ctx, l); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if log := r.log.String(); strings.Contains(log, "panic") {
			t.Errorf("the server wrote of a panic:\n%s", log)
		}
	})
	if r.guard.TLS() == nil { // else tests do it, with the certificates that they have
		r.calls(client(t, nil, true), operateToken).register()
	}
	return r
}

// client speaks HTTP/2, or HTTP/1.1, with TLS if there is a configuration for it.
func client(t testing.TB, conf *tls.Config, http2 bool) *http.Client {
	t.Helper()
	p := new(http.Protocols)
	p.SetHTTP1(!http2)
	p.SetHTTP2(http2 && conf != nil)
	p.SetUnencryptedHTTP2(http2 && conf == nil)
	// A transport writes into its configuration, and Clone of nil is nil.
	transport := &http.Transport{Protocols: p, TLSClientConfig: conf.Clone()}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// calls are calls of one caller.
type calls struct {
	r     *rig
	index kvscoutv1connect.IndexServiceClient
	score kvscoutv1connect.ScoreServiceClient
}

// withToken sends a token with every unary call; an empty one sends none.
func withToken(token string) connect.ClientOption {
	return connect.WithInterceptors(connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			if token != "" {
				req.Header().Set("Authorization", "Bearer "+token)
			}
			return next(ctx, req)
		}
	}))
}

func (r *rig) calls(c *http.Client, token string, opts ...connect.ClientOption) *calls {
	opts = append(opts, withToken(token))
	return &calls{r,
		kvscoutv1connect.NewIndexServiceClient(c, r.url, opts...), kvscoutv1connect.NewScoreServiceClient(c, r.url, opts...)}
}

// register gives the server its worker.
func (c *calls) register() {
	c.r.t.Helper()
	_, err := c.index.RegisterWorker(c.r.t.Context(), connect.NewRequest(&kvscoutv1.RegisterWorkerRequest{
		Worker: &kvscoutv1.WorkerSpec{WorkerId: "w0", Model: "m", Engine: "vllm"},
	}))
	if err != nil {
		c.r.t.Fatal(err)
	}
}

// scores is what Score answers: "" or the reason.
func (c *calls) scores() string {
	c.r.t.Helper()
	_, err := c.score.Score(c.r.t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{Model: "m", Tokens: &kvscoutv1.Tokens{Ids: []int64{1, 2}}}))
	return reason(c.r.t, err)
}

// clears is what Clear answers.
func (c *calls) clears() string {
	c.r.t.Helper()
	_, err := c.index.Clear(c.r.t.Context(), connect.NewRequest(&kvscoutv1.ClearRequest{Worker: &kvscoutv1.WorkerTarget{WorkerId: "w0"}}))
	return reason(c.r.t, err)
}

// reason is that of the ErrorInfo of an error, its text without one.
func reason(t testing.TB, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	if info := detail[*errdetails.ErrorInfo](err); info != nil {
		if info.GetDomain() != "kvscout" {
			t.Errorf("domain %q", info.GetDomain())
		}
		return info.GetReason()
	}
	return err.Error()
}

// detail is that of one type, nil without one.
func detail[T any](err error) (out T) {
	var e *connect.Error
	if !asConnect(err, &e) {
		return out
	}
	for _, d := range e.Details() {
		v, err := d.Value()
		if found, ok := any(v).(T); err == nil && ok {
			return found
		}
	}
	return out
}

// write writes a file for the test, or again if it has a path already.
func write(t testing.TB, path, text string) string {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "callers")
	}
	// By rename, so that no reader sees half of it.
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	return path
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, string(text))
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not in time", what)
		}
	}
}

// answer is a response over HTTP/1.1, by hand.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) reason() string {
	var e struct {
		Details []struct{ Debug struct{ Reason string } }
	}
	if json.Unmarshal([]byte(a.body), &e) != nil {
		return ""
	}
	for _, d := range e.Details {
		if d.Debug.Reason != "" {
			return d.Debug.Reason
		}
	}
	return ""
}

func read(t testing.TB, resp *http.Response) answer {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, strings.TrimSpace(string(body))}
}
