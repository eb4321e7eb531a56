package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvscout/kvscout/events/simulate"
)

// scored is a server with one worker that has served 64 tokens from 100 on in blocks of 16: it holds 64 of them and
// reuses 48, since the last token is always computed (rule 7).
func scored(t *testing.T) (server, ids string) {
	t.Helper()
	e := startEngine(t, simulate.Config{Worker: "w0", Model: "m"})
	server, _ = startServe(t, "--listen", "127.0.0.1:0", "--source", spec(e))
	serveTokens(t, e, simulate.Request{Tokens: tokens(100, 64)})
	listed(t, server, "live #0")
	return server, writeJSON(t, tokens(100, 64))
}

func serveTokens(t *testing.T, e *simulate.Engine, r simulate.Request) simulate.Outcome {
	t.Helper()
	out, err := e.Serve(r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestScore(t *testing.T) {
	server, ids := scored(t)
	for _, protocol := range []string{"connect", "grpc", "grpcweb"} {
		out := ok(t, "score", "--server", server, "--protocol", protocol, "--model", "m", "--tokens", ids, "--candidate", "w0", "--candidate", "w9")
		wants(t, out, "prompt 64 tokens", "WORKER", "device 64", "exact", "live #0", "w9", "lower (unknown_worker)", "not known")
	}
	v := okJSON(t, "score", "--server", server, "--tokens", ids, "--json")
	w := v["workers"].([]any)[0].(map[string]any)
	for field, want := range map[string]any{
		"workerId": "w0", "rank": 0.0, "blockSize": 16.0, "heldTokens": 64.0, "reusableTokens": 48.0, "score": 1.0, "known": true,
	} {
		if w[field] != want {
			t.Errorf("%s is %v, want %v", field, w[field], want)
		}
	}
	if v["promptTokens"] != 64.0 {
		t.Errorf("the prompt has %v tokens", v["promptTokens"])
	}
}

func TestScoreFromStdin(t *testing.T) {
	server, _ := scored(t)
	r := runWith(t, "[100, 101, 102]", "score", "--server", server, "--tokens", "-")
	if r.code != exitOK {
		t.Fatal(r.err)
	}
	wants(t, r.out, "prompt 3 tokens")
}

func TestServerFromEnvironment(t *testing.T) {
	server, ids := scored(t)
	t.Setenv("KVSCOUT_SERVER", server)
	t.Setenv("KVSCOUT_CANDIDATE", "w0;w7")
	wants(t, ok(t, "score", "--tokens", ids), "w0", "w7")
}

// Whoever salts a prompt has a cache of his own (rule 3), and his salt is shown nowhere (case 119).
func TestRule3_Salts(t *testing.T) {
	const salt = "tenant-secret"
	e := startEngine(t, simulate.Config{Worker: "w0", Model: "m"})
	server, log := startServe(t, "--listen", "127.0.0.1:0", "--log-level", "debug", "--source", spec(e))
	serveTokens(t, e, simulate.Request{Tokens: tokens(100, 64), CacheSalt: salt})
	listed(t, server, "live #0")
	ids := writeJSON(t, tokens(100, 64))
	salted := func(args ...string) string {
		v := okJSON(t, append([]string{"score", "--server", server, "--tokens", ids, "--json"}, args...)...)
		return fmt.Sprint(v["workers"].([]any)[0].(map[string]any)["heldTokens"])
	}
	if got := salted(); got != "0" {
		t.Errorf("without the salt %s tokens are held", got)
	}
	if got := salted("--cache-salt", salt); got != "64" {
		t.Errorf("with the salt %s tokens are held", got)
	}
	if got := salted("--cache-salt-file", writeFile(t, "salt", salt+"\n")); got != "64" {
		t.Errorf("with the salt of a file %s tokens are held", got)
	}
	t.Setenv("KVSCOUT_CACHE_SALT", salt)
	if got := salted(); got != "64" {
		t.Errorf("with the salt of the environment %s tokens are held", got)
	}
	shown := ok(t, "inspect", "--server", server, "--worker", "w0")
	wants(t, shown, "true")
	r := run(t, "score", "--server", server, "--tokens", ids, "--model", "none")
	if all := shown + log.String() + r.err + r.out; strings.Contains(all, salt) {
		t.Errorf("the salt is shown:\n%s", all)
	}
}

func TestScoreErrorsTellTheReason(t *testing.T) {
	server, _ := scored(t)
	for text, want := range map[string]string{
		"[]":       "NO_PROMPT",
		"[-1]":     "NEGATIVE_TOKEN",
		"[1, 2.5]": "not a JSON list",
	} {
		r := run(t, "score", "--server", server, "--tokens", writeFile(t, "ids.json", text))
		if r.code != exitFailed || r.out != "" {
			t.Errorf("%s: exits with %d", text, r.code)
		}
		wants(t, r.err, want)
	}
	r := run(t, "score", "--server", server, "--prompt", "x")
	wants(t, r.err, "NO_RENDERER")
}

func TestScoreHashes(t *testing.T) {
	server, _ := scored(t)
	keys := writeFile(t, "keys.json", `["0x1", 18446744073709551615]`)
	v := okJSON(t, "score", "--server", server, "--hashes", keys, "--block-size", "16", "--prompt-tokens", "40", "--json")
	if v["promptTokens"] != 40.0 {
		t.Errorf("got %v", v)
	}
	wants(t, run(t, "score", "--server", server, "--hashes", writeFile(t, "k", `["x"]`), "--block-size", "16").err, "entry 0")
	wants(t, ok(t, "inspect", "--server", server, "--hashes", keys, "--block-size", "16"), "prompt 32 tokens", "nobody holds")
}

func TestWorkers(t *testing.T) {
	server, _ := startServe(t, "--listen", "127.0.0.1:0")
	wants(t, ok(t, "workers", "--server", server), "no workers")
	out := ok(t, "workers", "add", "--server", server, "--source", "id=w0,engine=sglang,model=m,events=tcp://127.0.0.1:2",
		"--ranks", "2", "--role", "prefill", "--alias", "big", "--label", "zone=a")
	wants(t, out, "prefill", "tcp://127.0.0.1:2", "tcp://127.0.0.1:3", "zone=a")
	ok(t, "workers", "add", "--server", server, "--source", "id=w1,engine=vllm,model=other")
	if out := ok(t, "workers", "--server", server, "--model", "big"); strings.Contains(out, "w1") || strings.Count(out, "w0") != 2 {
		t.Errorf("the workers of an alias:\n%s", out)
	}
	if out := ok(t, "workers", "--server", server, "--role", "decode"); strings.Contains(out, "w0") || !strings.Contains(out, "w1") {
		t.Errorf("the workers that decode:\n%s", out)
	}
	r := run(t, "workers", "add", "--server", server, "--source", "id=w1,engine=vllm,model=third")
	wants(t, r.err, `"w1" was replaced`)
	wants(t, ok(t, "workers", "remove", "--server", server, "w0", "--rank", "1"), `removed rank 1 of worker "w0"`)
	if n := strings.Count(ok(t, "workers", "--server", server), "w0"); n != 1 {
		t.Errorf("%d ranks are left", n)
	}
	ok(t, "workers", "remove", "--server", server, "w0")
	for _, form := range [][]string{nil, {"--json"}} {
		r := run(t, append([]string{"workers", "remove", "--server", server, "w0"}, form...)...)
		if r.code != exitFailed {
			t.Errorf("a second removal %q exits with %d", form, r.code)
		}
		wants(t, r.err, `worker "w0" is not known`)
	}
	if v := okJSON(t, "workers", "--server", server, "--json"); len(v["workers"].([]any)) != 1 {
		t.Errorf("got %v", v)
	}
}

// A worker whose engine's cache was emptied by hand holds nothing from then on.
func TestWorkersReset(t *testing.T) {
	server, ids := scored(t)
	wants(t, ok(t, "workers", "reset", "--server", server, "w0"), `reset worker "w0"`)
	wants(t, ok(t, "score", "--server", server, "--tokens", ids), "lower (history_missing)")
	if v := okJSON(t, "workers", "reset", "--server", server, "w0", "--rank", "0", "--json"); v["known"] != true {
		t.Errorf("got %v", v)
	}
	for _, args := range [][]string{{"w9"}, {"w0", "--rank", "7", "--json"}} {
		r := run(t, append([]string{"workers", "reset", "--server", server}, args...)...)
		if r.code != exitFailed || !strings.Contains(r.err, "is not known") {
			t.Errorf("%v: exit %d, %s", args, r.code, r.err)
		}
	}
}

func TestStats(t *testing.T) {
	server, ids := scored(t)
	ok(t, "score", "--server", server, "--tokens", ids)
	wants(t, ok(t, "stats", "--server", server), "index: 4 blocks, 4 held by workers, 1 scopes", "scores: 1 requests", "latency: p50 ", " of 1 answers", "w0", "device 4", "exact")
	v := okJSON(t, "stats", "--server", server, "--json")["stats"].(map[string]any)
	if v["blocks"] != "4" { // 64-bit numbers are texts in proto's JSON
		t.Errorf("blocks: %v", v["blocks"])
	}
	for _, watch := range [][]string{{"--watch=10ms"}, {"--watch", "10ms"}} {
		out := ok(t, append([]string{"stats", "--server", server, "--count", "3", "--json"}, watch...)...)
		if n := strings.Count(out, "\n"); n != 3 {
			t.Errorf("%q: %d lines", watch, n)
		}
		for line := range strings.Lines(out) {
			parseJSON(t, line)
		}
	}
	if n := strings.Count(ok(t, "stats", "--server", server, "--watch=10ms", "--count", "2"), "index version"); n != 2 {
		t.Errorf("%d times", n)
	}
}

func TestInspect(t *testing.T) {
	server, ids := scored(t)
	wants(t, ok(t, "inspect", "--server", server, "--worker", "w0"), "BLOCK SIZE", "device 4", "16")
	wants(t, ok(t, "inspect", "--server", server, "--tokens", ids), "device 0..3", "exact")
	holders := okJSON(t, "inspect", "--server", server, "--tokens", ids, "--json")["prompt"].(map[string]any)["holders"].([]any)
	if len(holders) != 1 {
		t.Errorf("got %v", holders)
	}
	r := run(t, "inspect", "--server", server, "--worker", "w9")
	if r.code != exitFailed {
		t.Errorf("exits with %d", r.code)
	}
	wants(t, r.err, "UNKNOWN_WORKER")
}
