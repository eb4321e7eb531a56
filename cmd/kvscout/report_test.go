package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// The whole of a router's day, by commands: score, send, be told; then look into the index and empty it.
func TestReport(t *testing.T) {
	server, _ := scored(t)
	ids := writeJSON(t, tokens(100, 80))
	at := func(args ...string) []string { return append(args, "--server", server) }
	v := okJSON(t, at("score", "--tokens", ids, "--remember", "--json")...)
	id := v["scoreId"].(string)
	wants(t, ok(t, at("report", "routed", "--worker", "w0", "--score-id", id, "--ttl", "1m")...), "credited 80 tokens")
	wants(t, ok(t, at("score", "--tokens", ids)...), "device 64, predicted 16", "1.000")
	wants(t, ok(t, at("report", "outcome", "--worker", "w0", "--score-id", id, "--prompt-tokens", "80", "--cached-tokens", "64")...),
		"predicted 64, cached 64; 1 outcomes: 1 equal, 0 over, 0 under, 0 wrong; of the recent ones 100% equal")
	if r := run(t, at("report", "outcome", "--worker", "w0", "--score-id", id, "--prompt-tokens", "80")...); r.code != exitFailed || !strings.Contains(r.err, "reported before") {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
	wants(t, ok(t, at("stats")...), "state: ready", "routed: 1 credited, 1 waiting", "accuracy: w0 rank 0, 1 outcomes")

	dumped := 0
	for _, line := range strings.Split(strings.TrimSpace(ok(t, at("dump", "--worker", "w0")...)), "\n") {
		var part struct{ Blocks []map[string]any }
		if err := json.Unmarshal([]byte(line), &part); err != nil {
			t.Fatal(err)
		}
		dumped += len(part.Blocks)
	}
	if dumped != 4 {
		t.Errorf("%d blocks are dumped", dumped)
	}
	wants(t, ok(t, at("clear", "--namespace", "--cache-salt", "nobody's")...), "forgot 0 blocks of 0 sources")
	wants(t, ok(t, at("clear", "--worker", "w0")...), "forgot 4 blocks of 1 sources")
	wants(t, ok(t, at("score", "--tokens", ids)...), "history_missing", "predicted 80")
}

func TestScoreOptions(t *testing.T) {
	server, ids := scored(t)
	out := ok(t, "score", "--server", server, "--tokens", ids, "--explain", "--weights", "device=0.5,host=0", "--max-workers", "1")
	wants(t, out, "0.500", "explained: w0 rank 0, group", "blocks of 16: device 0..3; 4 leading, ended by prompt")
	out = ok(t, "score", "--server", server, "--tokens", ids, "--candidate", "w7", "--candidate", "w8", "--max-workers", "1")
	wants(t, out, "and 1 more workers", "best outside: w0 rank 0, held 64")
	for _, bad := range []string{"device", "device=x", "gpu=1", "host=1,host=1", "device=2"} {
		r := run(t, "score", "--server", server, "--tokens", ids, "--weights", bad)
		if r.code == exitOK || !strings.Contains(r.err, "weight") {
			t.Errorf("%s: exit %d, %s", bad, r.code, r.err)
		}
	}
}

func TestTargetsAreChecked(t *testing.T) {
	for _, args := range []string{"dump --rank 1", "clear", "clear --worker w0 --namespace", "clear --rank 1", "report routed now"} {
		if r := run(t, strings.Fields(args)...); r.code != exitUsage {
			t.Errorf("%s: exit %d, %s", args, r.code, fmt.Sprint(r.err))
		}
	}
}
