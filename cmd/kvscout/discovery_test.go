package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/simulate"
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

// A worker listed by its address alone is found, listened to and scored; its health withdraws credit and gives it back; the
// file is read again while the server runs, and a wrong one changes nothing.
func TestServe_DiscoversByAddress(t *testing.T) {
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
	var well atomic.Bool
	well.Store(true)
	url := servingPort(t, engine, &well)
	file := writeFile(t, "c.yaml", "workers:\n  - {id: w0, url: "+url+", role: decode}\n")
	address, log := startServe(t, "--listen", "127.0.0.1:0", "--config", file, "--config-poll", "10ms", "--worker-refresh", "50ms",
		"--health-every", "20ms", "--stale-after", "300ms")
	ids, _ := json.Marshal(prompt)
	tokens := writeFile(t, "ids.json", string(ids))
	await := func(what string, done func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("waited in vain for %s; log:\n%s\n%s", what, log, ok(t, "stats", "--server", address, "--json"))
			}
		}
	}
	score := func() (s float64) {
		r := run(t, "score", "--server", address, "--model", "m", "--tokens", tokens, "--json")
		if r.code != exitOK {
			return -1 // the model is not known yet, or no longer
		}
		for _, w := range parseJSON(t, r.out)["workers"].([]any) {
			s, _ = w.(map[string]any)["score"].(float64)
		}
		return s
	}
	workers := func() string { return ok(t, "workers", "--server", address) }
	await("credit", func() bool { return score() > 0.9 })
	wants(t, workers(), "w0", "decode", string(events.EngineVLLM), "live", "complete", "tcp://127.0.0.1:")

	well.Store(false)
	await("no credit of an ill worker", func() bool { return score() == 0 })
	wants(t, workers(), "stale", "status 503")
	well.Store(true)
	await("credit again", func() bool { return score() > 0.9 })

	rewrite := func(text string) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	rewrite("workers:\n  - {id: w0, urll: x}\n")
	await("the fault of the file", func() bool { return strings.Contains(ok(t, "stats", "--server", address), "urll") })
	if s := score(); s < 0.9 {
		t.Errorf("a wrong file changed the score to %v", s)
	}
	rewrite(fmt.Sprintf("workers:\n  - {id: w0, url: %s, labels: {zone: z9}}\n  - {id: w1, url: 'http://127.0.0.1:1'}\n", url))
	await("the label", func() bool { return strings.Contains(workers(), "zone=z9") })
	if s := score(); s < 0.9 {
		t.Errorf("a label changed the score to %v", s)
	}
	await("the worker that cannot be asked", func() bool {
		text := ok(t, "stats", "--server", address)
		return strings.Contains(text, "w1") && strings.Contains(text, "refused")
	})
	rewrite("workers: []\n")
	await("no worker", func() bool { return strings.Contains(workers(), "no workers") })
}
