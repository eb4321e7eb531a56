package client_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
	"go.uber.org/goleak"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/indexer/ingest"
	"github.com/kvscout/kvscout/scorer/client"
	"github.com/kvscout/kvscout/scorer/scorerpc"
	"github.com/kvscout/kvscout/scorer/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what takes milliseconds on an idle machine.
const patience = 30 * time.Second

// handler is the real service. Its worker "w0" of model "m" holds the tokens 0 to 63 in blocks of 16.
func handler(t testing.TB) http.Handler {
	t.Helper()
	index := indexer.New(indexer.Options{})
	fleet := ingest.New(index, ingest.Options{})
	t.Cleanup(fleet.Close)
	if _, err := fleet.Register(ingest.Worker{ID: "w0", Model: "m", Sources: []events.Source{{Engine: events.EngineVLLM}}}); err != nil {
		t.Fatal(err)
	}
	hold(t, fleet)
	service := scorerpc.New(index, fleet, scorerpc.Options{})
	return server.New(server.Options{
		Score: service, Render: service, Index: indexrpc.New(index, fleet, indexrpc.Options{}),
	}).Handler()
}

func hold(t testing.TB, fleet *ingest.Fleet) {
	t.Helper()
	if _, err := fleet.Publish("w0", 0, []events.Message{{Payload: stored(prompt(64))}}); err != nil {
		t.Fatal(err)
	}
}

func prompt(n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(i)
	}
	return out
}

// listen serves h at addr in every protocol until the function it returns is called, which cuts all connections.
func listen(t testing.TB, network, addr string, h http.Handler) (at string, kill func()) {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	hs := &http.Server{Handler: h, Protocols: protocols, ConnContext: func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, c)
	}}
	done := make(chan struct{})
	go func() { defer close(done); _ = hs.Serve(l) }() // ended by kill, which waits for it
	kill = func() { _ = hs.Close(); <-done }
	t.Cleanup(kill)
	return l.Addr().String(), kill
}

type connKey struct{}

// cut ends the connection that a request came by.
func cut(r *http.Request) { _ = r.Context().Value(connKey{}).(net.Conn).Close() }

// serve is listen on a free loopback port.
func serve(t testing.TB, h http.Handler) (url string, kill func()) {
	t.Helper()
	addr, kill := listen(t, "tcp", "127.0.0.1:0", h)
	return "http://" + addr, kill
}

func serveUnix(t testing.TB, h http.Handler) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listen(t, "unix", path, h)
	return "unix://" + path
}

func serveTLS(t testing.TB, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func dial(t testing.TB, opts client.Options, urls ...string) *client.Client {
	t.Helper()
	c, err := client.New(urls, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// counted counts requests; before may answer one itself, by returning true.
type counted struct {
	next   http.Handler
	before func(n int64, w http.ResponseWriter, r *http.Request) bool
	calls  atomic.Int64
}

func (c *counted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := c.calls.Add(1)
	if c.before != nil && c.before(n, w, r) {
		return
	}
	c.next.ServeHTTP(w, r)
}

func scoreRequest() *kvscoutv1.ScoreRequest {
	return &kvscoutv1.ScoreRequest{Model: "m", Tokens: client.Tokens(prompt(64))}
}

// scored asks once and wants the answer: 64 tokens held.
func scored(t testing.TB, ctx context.Context, c *client.Client) {
	t.Helper()
	res, err := c.Score(ctx, scoreRequest())
	if err != nil || len(res.GetWorkers()) != 1 || res.GetWorkers()[0].GetHeldTokens() != 64 {
		t.Errorf("got %v, %v", res, err)
	}
}

// stored is a payload as vLLM sends it, of one store in blocks of 16.
func stored(tokens []uint32) []byte {
	var hashes []int
	for i := range len(tokens) / 16 {
		hashes = append(hashes, i+1)
	}
	payload, err := msgpack.Marshal([]any{1.5, []any{[]any{"BlockStored", hashes, nil, tokens, 16, nil, "GPU"}}})
	if err != nil {
		panic(err)
	}
	return payload
}
