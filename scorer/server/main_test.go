package server_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
	"go.uber.org/goleak"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/indexer/ingest"
	"github.com/kvscout/kvscout/scorer/scorerpc"
	"github.com/kvscout/kvscout/scorer/server"
	"github.com/kvscout/kvscout/test/testlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a running server. Its worker w0 of model "m" holds the tokens 1..64 (1..65536 after startLarge) in blocks of 16.
type rig struct {
	addr string
	log  *testlog.Buffer
	stop context.CancelFunc
	done chan error // what Serve returned
}

func (r *rig) url(path string) string { return "http://" + r.addr + path }

// start runs a server on a loopback port until the test ends. edit may change its options.
func start(t testing.TB, edit ...func(*server.Options)) *rig {
	t.Helper()
	l, err := server.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, l, 64, edit...)
}

func startLarge(t testing.TB) *rig {
	t.Helper()
	l, err := server.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, l, 65536)
}

func serve(t testing.TB, l net.Listener, tokens int, edit ...func(*server.Options)) *rig {
	t.Helper()
	index := indexer.New(indexer.Options{})
	fleet := ingest.New(index, ingest.Options{})
	t.Cleanup(fleet.Close)
	feed(t, fleet, tokens)
	r := &rig{addr: l.Addr().String(), log: new(testlog.Buffer), done: make(chan error, 1)}
	opts := server.Options{
		Score:  scorerpc.New(index, fleet, scorerpc.Options{}),
		Index:  indexrpc.New(index, fleet, indexrpc.Options{}),
		Logger: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, e := range edit {
		e(&opts)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	finished := make(chan struct{})
	go func() { // ended by stop, waited for below
		defer close(finished)
		r.done <- server.New(opts).Serve(ctx, l)
	}()
	t.Cleanup(func() { cancel(); <-finished })
	return r
}

func feed(t testing.TB, fleet *ingest.Fleet, n int) {
	t.Helper()
	if _, err := fleet.Register(ingest.Worker{ID: "w0", Model: "m", Sources: []events.Source{{Engine: events.EngineVLLM}}}); err != nil {
		t.Fatal(err)
	}
	var tokens, hashes []int
	for i := range n {
		tokens = append(tokens, i+1)
		if i%16 == 0 {
			hashes = append(hashes, i)
		}
	}
	payload, err := msgpack.Marshal([]any{1.5, []any{[]any{"BlockStored", hashes, nil, tokens, 16, nil, "GPU"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fleet.Publish("w0", 0, []events.Message{{Payload: payload}}); err != nil {
		t.Fatal(err)
	}
}

// client speaks HTTP/1.1, or HTTP/2 without TLS.
func client(t testing.TB, http2 bool) *http.Client {
	t.Helper()
	p := new(http.Protocols)
	p.SetHTTP1(!http2)
	p.SetUnencryptedHTTP2(http2)
	transport := &http.Transport{Protocols: p}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t testing.TB, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	limit := time.After(10 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("the condition did not come about")
		}
	}
}
