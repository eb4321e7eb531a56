package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A recording is played into a server that is then stopped; what it wrote is shown, and the next one goes on from it.
func TestSnapshotInfo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "index.snapshot")
	p := startProcess(t, "--snapshot", file)
	wants(t, ok(t, "stats", "--server", "http://"+p.address), "snapshot: none at the start; 0 written; failures: -")
	ok(t, "replay", "--server", "http://"+p.address, "--model", "m", filepath.Join(recordings, "vllm-0.32-base.kvrec"))
	blocks := parseJSON(t, ok(t, "stats", "--server", "http://"+p.address, "--json"))["stats"].(map[string]any)["handles"]
	p.signal(t, syscall.SIGTERM)
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, p.log)
	}

	wants(t, ok(t, "snapshot", "info", file), "snapshot version 1, whole, written ", "WORKER", "SEQUENCE", "vllm", "exact")
	info := okJSON(t, "snapshot", "info", file, "--json")
	source := info["sources"].([]any)[0].(map[string]any)
	if source["blocks"] == 0.0 || source["model"] != "m" || source["sequence"] == 0.0 {
		t.Errorf("%v", info)
	}
	p = startProcess(t, "--snapshot", file)
	wants(t, ok(t, "stats", "--server", "http://"+p.address), "snapshot: restored at the start, ", "1 sources went on, dropped: -; ")
	if got := parseJSON(t, ok(t, "stats", "--server", "http://"+p.address, "--json"))["stats"].(map[string]any)["handles"]; got != blocks {
		t.Errorf("%v engine hashes, there were %v", got, blocks)
	}

	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, whole[:100], 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, "snapshot", "info", bad); r.code != exitFailed || !strings.Contains(r.err, "snapshot is damaged") {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
	if r := run(t, "snapshot", "info"); r.code != exitUsage {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
	p = startProcess(t, "--snapshot", bad)
	wants(t, ok(t, "stats", "--server", "http://"+p.address), "snapshot: damaged at the start and refused (snapshot is damaged: ", "so the index began empty")
	if r := run(t, "serve", "--snapshot", file, "--snapshot-every", "0s"); r.code != exitUsage || !strings.Contains(r.err, "snapshot-every is not positive") {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
}
