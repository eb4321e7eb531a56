package bench_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/indexer/ingest"
	"github.com/kvscout/kvscout/scorer/bench"
	"github.com/kvscout/kvscout/scorer/scorerpc"
	"github.com/kvscout/kvscout/scorer/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a running server.
type rig struct {
	target bench.Target
	api    api
}

// api is both services.
type api struct {
	kvscoutv1connect.IndexServiceClient
	kvscoutv1connect.ScoreServiceClient
}

// start runs a server on a loopback port until the test ends.
func start(t *testing.T) *rig {
	t.Helper()
	l, err := server.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	index := indexer.New(indexer.Options{})
	fleet := ingest.New(index, ingest.Options{})
	t.Cleanup(fleet.Close)
	srv := server.New(server.Options{
		Score:  scorerpc.New(index, fleet, scorerpc.Options{}),
		Index:  indexrpc.New(index, fleet, indexrpc.Options{}),
		Grace:  time.Second,
		Logger: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { // ended by cancel, waited for on done
		defer close(done)
		_ = srv.Serve(ctx, l)
	}()
	t.Cleanup(func() { cancel(); <-done })
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	addr := l.Addr().String()
	return &rig{
		target: bench.Target{Network: "tcp", Address: addr},
		api: api{
			kvscoutv1connect.NewIndexServiceClient(&http.Client{Transport: transport}, "http://"+addr),
			kvscoutv1connect.NewScoreServiceClient(&http.Client{Transport: transport}, "http://"+addr),
		},
	}
}

// filled is a workload that the server holds.
func (r *rig) filled(t *testing.T, tokens, workers, prompts int) *bench.Workload {
	t.Helper()
	w, err := bench.New(tokens, workers, prompts, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Fill(t.Context(), r.api, nil); err != nil {
		t.Fatal(err)
	}
	return w
}

// run puts a short load on the server.
func (r *rig) run(t *testing.T, w *bench.Workload, c bench.Client, l bench.Load) bench.Report {
	t.Helper()
	callers, end, err := w.Callers(r.target, c)
	if err != nil {
		t.Fatal(err)
	}
	report := bench.Run(t.Context(), callers, l)
	if err := end(); err != nil {
		t.Error(err)
	}
	return report
}

// calls lets each caller make as many calls as there are prompts, and some more, and returns their errors, nil ones too.
func (r *rig) calls(t *testing.T, w *bench.Workload, c bench.Client) (out []error) {
	t.Helper()
	callers, end, err := w.Callers(r.target, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range callers {
		for n := range len(w.Prompts) + 3 {
			out = append(out, c.Call(t.Context(), n))
		}
		c.Close()
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	return out
}

// clients are all ways to call.
func clients() map[string]bench.Client {
	out := make(map[string]bench.Client)
	for _, p := range []bench.Protocol{bench.ProtocolConnect, bench.ProtocolJSON, bench.ProtocolGRPC} {
		for name, form := range map[string]bench.Form{"tokens": {}, "hashes": {Hashes: true}, "batch": {Batch: 3}} {
			c := bench.Client{Protocol: p, Stock: true, Form: form, Callers: 3, Connections: 2}
			out[string(p)+" stock "+name] = c
			if p != bench.ProtocolGRPC {
				c.Stock = false
				out[string(p)+" lean "+name] = c
			}
		}
	}
	return out
}
