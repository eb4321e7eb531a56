package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/simulate"
	"github.com/kvscout/kvscout/test/testlog"
)

// servingPort is a vLLM's HTTP port: it tells where the engine's events are, by a wildcard, as engines do.
func servingPort(t *testing.T, e *simulate.Engine, well *atomic.Bool) (url string) {
	t.Helper()
	wild := func(endpoint string) string {
		_, port, err := net.SplitHostPort(strings.TrimPrefix(endpoint, "tcp://"))
		if err != nil {
			t.Fatal(err)
		}
		return "tcp://*:" + port
	}
	answer := func(v any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(v) }
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/kv_event_sources", answer([]any{map[string]any{
		"data_parallel_rank": 0, "endpoint": wild(e.Source().Events), "replay_endpoint": wild(e.Source().Replay), "topic": e.Source().Topic,
	}}))
	mux.HandleFunc("/v1/models", answer(map[string]any{"data": []any{map[string]any{"id": "m", "parent": nil}}}))
	mux.HandleFunc("/version", answer(map[string]any{"version": "0.32.0"}))
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) {
		if !well.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// discovering is a server whose workers come from a file.
type discovering struct {
	*testing.T
	address, file, tokens string
	log                   *testlog.Buffer
}

func (d *discovering) await(what string, done func() bool) {
	d.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			d.Fatalf("waited in vain for %s; log:\n%s\n%s", what, d.log, d.stats())
		}
	}
}

// score is the last worker's, -1 while the model is not known.
func (d *discovering) score() (s float64) {
	r := run(d.T, "score", "--server", d.address, "--model", "m", "--tokens", d.tokens, "--json")
	if r.code != exitOK {
		return -1
	}
	for _, w := range parseJSON(d.T, r.out)["workers"].([]any) {
		s, _ = w.(map[string]any)["score"].(float64)
	}
	return s
}

func (d *discovering) workers() string { return ok(d.T, "workers", "--server", d.address) }

func (d *discovering) stats() string { return ok(d.T, "stats", "--server", d.address) }

// rewrite changes the file in one step.
func (d *discovering) rewrite(text string) {
	d.Helper()
	if err := os.WriteFile(d.file+".new", []byte(text), 0o600); err != nil {
		d.Fatal(err)
	}
	if err := os.Rename(d.file+".new", d.file); err != nil {
		d.Fatal(err)
	}
}

// discoverEngine starts an engine that has served a prompt, and a server that knows its address alone.
func discoverEngine(t *testing.T) (d *discovering, url string, well *atomic.Bool) {
	t.Helper()
	engine, err := simulate.New(simulate.Config{Worker: "any", Model: "m", Events: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	prompt := make([]uint32, 33)
	for i := range prompt {
		prompt[i] = uint32(i + 1)
	}
	if _, err := engine.Serve(simulate.Request{Tokens: prompt}); err != nil {
		t.Fatal(err)
	}
	well = new(atomic.Bool)
	well.Store(true)
	url = servingPort(t, engine, well)
	ids, err := json.Marshal(prompt)
	if err != nil {
		t.Fatal(err)
	}
	d = &discovering{T: t, tokens: writeFile(t, "ids.json", string(ids))}
	d.file = writeFile(t, "c.yaml", "workers:\n  - {id: w0, url: "+url+", role: decode}\n")
	d.address, d.log = startServe(t, "--listen", "127.0.0.1:0", "--config", d.file, "--config-poll", "10ms",
		"--worker-refresh", "50ms", "--health-every", "20ms", "--stale-after", "300ms")
	d.await("credit", func() bool { return d.score() > 0.9 })
	return d, url, well
}

// A worker listed by its address alone is found, listened to and scored; its health withdraws credit and gives it back.
func TestServe_DiscoversByAddress(t *testing.T) {
	d, _, well := discoverEngine(t)
	wants(t, d.workers(), "w0", "decode", string(events.EngineVLLM), "live", "complete", "tcp://127.0.0.1:")
	well.Store(false)
	d.await("no credit of an ill worker", func() bool { return d.score() == 0 })
	wants(t, d.workers(), "stale", "status 503")
	well.Store(true)
	d.await("credit again", func() bool { return d.score() > 0.9 })
}

// A worker that a call names by its address alone is asked, listened to and scored as one of the file is, and asked again:
// when another engine is there, that is listened to.
func TestWorkersAdd_ByURL(t *testing.T) {
	d, first, well := discoverEngine(t)
	empty, err := simulate.New(simulate.Config{Worker: "any", Model: "m", Events: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = empty.Close() })
	second := servingPort(t, empty, well)
	var moved atomic.Bool
	front := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		to := first
		if moved.Load() {
			to = second
		}
		r.Out.URL.Scheme, r.Out.URL.Host = "http", strings.TrimPrefix(to, "http://")
	}})
	t.Cleanup(front.Close)
	url := front.URL
	d.rewrite("workers: []\n")
	d.await("no worker", func() bool { return strings.Contains(d.workers(), "no workers") })
	wants(t, ok(t, "workers", "add", "--server", d.address, "--url", "called="+url, "--role", "decode"), "called", "decode", "vllm")
	d.await("credit", func() bool { return d.score() > 0.9 })
	wants(t, d.workers(), "called", "live", "complete", "tcp://127.0.0.1:")
	moved.Store(true)
	d.await("no credit for what the first engine holds", func() bool { return d.score() == 0 && strings.Contains(d.workers(), empty.Source().Events) })
	moved.Store(false)
	d.await("credit again", func() bool { return d.score() > 0.9 })
	wants(t, ok(t, "workers", "remove", "--server", d.address, "called"), "removed")
	wants(t, d.stats(), "calls")
}

// The file is read again while the server runs; a wrong one changes nothing and is shown.
func TestServe_ReloadsWorkers(t *testing.T) {
	d, url, _ := discoverEngine(t)
	d.rewrite("workers:\n  - {id: w0, urll: x}\n")
	d.await("the fault of the file", func() bool { return strings.Contains(d.stats(), "urll") })
	if s := d.score(); s < 0.9 {
		t.Errorf("a wrong file changed the score to %v", s)
	}
	d.rewrite(fmt.Sprintf("workers:\n  - {id: w0, url: %s, labels: {zone: z9}}\n  - {id: w1, url: 'http://127.0.0.1:1'}\n", url))
	d.await("the label", func() bool { return strings.Contains(d.workers(), "zone=z9") })
	if s := d.score(); s < 0.9 {
		t.Errorf("a label changed the score to %v", s)
	}
	d.await("the worker that cannot be asked", func() bool {
		text := d.stats()
		return strings.Contains(text, "w1") && strings.Contains(text, "refused")
	})
	d.rewrite("workers: []\n")
	d.await("no worker", func() bool { return strings.Contains(d.workers(), "no workers") })
}
