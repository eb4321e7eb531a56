package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvscout/kvscout/events/simulate"
	"github.com/kvscout/kvscout/test/testport"
)

// A server with an engine shares what it hears; another one, which never dials the engine, answers the same, says so when
// nobody tells it anything any more, and goes on when the first is back.
func TestServeReplica(t *testing.T) {
	e := startEngine(t, simulate.Config{Worker: "w0", Model: "m"})
	token := writeFile(t, "token", "s3cret\n")
	nats := fmt.Sprintf("127.0.0.1:%d", testport.Free(t, 1))
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

// A replica that is killed goes on from its snapshot: it reads of the log what is behind that, and answers as before. With
// another log it begins anew and says so.
func TestServeReplica_Snapshot(t *testing.T) {
	e := startEngine(t, simulate.Config{Worker: "w0", Model: "m"})
	snapshot := filepath.Join(t.TempDir(), "index.snapshot")
	ingest := func() (*process, string) {
		nats := fmt.Sprintf("127.0.0.1:%d", testport.Free(t, 1))
		return startProcess(t, "--source", spec(e), "--nats", "embedded", "--nats-dir", t.TempDir(), "--nats-listen", nats,
			"--nats-token-file", writeFile(t, "token", "s3cret\n"), "--ingest"), nats
	}
	replica := func(nats string) (*process, string) {
		p := startProcess(t, "--nats", "nats://"+nats, "--nats-token-file", writeFile(t, "token", "s3cret\n"), "--replica",
			"--snapshot", snapshot, "--snapshot-every", "50ms")
		return p, "http://" + p.address
	}
	_, nats := ingest()
	r, server := replica(nats)
	serve := func(n int) {
		if _, err := e.Serve(simulate.Request{Tokens: tokens(100, n)}); err != nil {
			t.Fatal(err)
		}
	}
	log := func() (records, sequence int) {
		s := okJSON(t, "stats", "--server", server, "--json")["stats"].(map[string]any)["log"].(map[string]any)["replica"].(map[string]any)
		if _, err := fmt.Sscan(fmt.Sprint(s["records"], " ", s["sequence"]), &records, &sequence); err != nil {
			t.Fatal(err)
		}
		return records, sequence
	}
	serve(40)
	listed(t, server, "live #0")
	_, before := log()
	saves := func() (n int) {
		told := okJSON(t, "stats", "--server", server, "--json")["stats"].(map[string]any)["snapshot"].(map[string]any)
		_, _ = fmt.Sscan(fmt.Sprint(told["saves"]), &n) // left out while it is 0
		return n
	}
	begun := saves()
	// One may have been under way, of what the log had before.
	eventually(t, "a snapshot begun since", func() bool { return saves() >= begun+2 })
	wants(t, run(t, "snapshot", "info", snapshot).out, "w0")
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = r.cmd.Wait() // killed
	serve(60)
	r, server = replica(nats)
	listed(t, server, "live #1")
	wants(t, ok(t, "score", "--server", server, "--model", "m", "--tokens", writeJSON(t, tokens(100, 60))), " 48    48 ", "exact")
	wants(t, ok(t, "stats", "--server", server), "snapshot: restored at the start", "1 sources went on")
	if records, sequence := log(); records > sequence-before {
		t.Errorf("%d of %d records read, and the log was at %d when the snapshot was not yet written", records, sequence, before)
	}
	r.signal(t, os.Interrupt)
	if err := r.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, r.log)
	}

	_, nats = ingest()
	r, server = replica(nats)
	listed(t, server, "live #1")
	wants(t, ok(t, "score", "--server", server, "--model", "m", "--tokens", writeJSON(t, tokens(100, 60))), " 48    48 ", "exact")
	wants(t, ok(t, "stats", "--server", server), "0 sources went on, dropped: log 1")
	wants(t, r.log.String(), "what the snapshot has of the log is dropped")
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
