package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/kvscout/kvscout/events/simulate"
)

// A server with an engine shares what it hears; another one, which never dials the engine, answers the same, says so when
// nobody tells it anything any more, and goes on when the first is back.
func TestServeReplica(t *testing.T) {
	e := startEngine(t, simulate.Config{Worker: "w0", Model: "m"})
	token := writeFile(t, "token", "s3cret\n")
	nats := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	dir := t.TempDir()
	ingest := []string{"--source", spec(e), "--nats", "embedded", "--nats-dir", dir, "--nats-listen", nats, "--nats-token-file", token, "--ingest"}
	first := startProcess(t, ingest...)
	replica := startProcess(t, "--nats", "nats://"+nats, "--nats-token-file", token, "--replica", "--stale-after", "1s")
	one, two := "http://"+first.address, "http://"+replica.address
	if _, err := e.Serve(simulate.Request{Tokens: tokens(100, 40)}); err != nil {
		t.Fatal(err)
	}
	listed(t, two, "live #0")
	ids := writeJSON(t, tokens(100, 40))
	want := ok(t, "score", "--server", one, "--model", "m", "--tokens", ids)
	wants(t, want, "w0", " 32    32 ")
	wants(t, ok(t, "score", "--server", two, "--model", "m", "--tokens", ids), "w0", " 32    32 ")
	wants(t, ok(t, "stats", "--server", one), "ingest: ", "records stored")
	wants(t, ok(t, "stats", "--server", two), "replica: at record", "0 trimmed")
	r := okJSON(t, "stats", "--server", two, "--json")
	if log, _ := r["stats"].(map[string]any)["log"].(map[string]any); log["replica"] == nil || log["ingest"] != nil {
		t.Errorf("stats of the log: %v", log)
	}

	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.cmd.Wait() // killed
	listed(t, two, "stale")
	first = startProcess(t, ingest...)
	if _, err := e.Serve(simulate.Request{Tokens: tokens(100, 60)}); err != nil {
		t.Fatal(err)
	}
	listed(t, two, "live #1")
	wants(t, ok(t, "score", "--server", two, "--model", "m", "--tokens", writeJSON(t, tokens(100, 60))), " 48    48 ")

	for _, p := range []*process{replica, first} {
		p.signal(t, os.Interrupt)
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("%v\n%s", err, p.log)
		}
		if strings.Contains(p.log.String(), "s3cret") {
			t.Errorf("the log tells the token:\n%s", p.log)
		}
	}
}

func TestScaleOutFlags(t *testing.T) {
	for text, args := range map[string][]string{
		"need nats":              {"--ingest"},
		"nats needs ingest":      {"--nats", "nats://h"},
		"needs nats-dir":         {"--nats", "embedded", "--replica"},
		"are of nats embedded":   {"--nats", "nats://h", "--replica", "--nats-dir", "/tmp"},
		"must be positive":       {"--nats-max-bytes", "0"},
		"must not hold":          {"--nats", "nats://u:p@h", "--replica"},
		"is not 1 to 64 letters": {"--nats", "nats://h", "--replica", "--nats-stream", "a.b"},
		"needs a token":          {"--nats", "embedded", "--ingest", "--nats-dir", t.TempDir(), "--nats-listen", "0.0.0.0:0"},
	} {
		r := run(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
		if r.code != exitUsage {
			t.Errorf("%v exits with %d", args, r.code)
		}
		wants(t, r.err, text)
	}
}
