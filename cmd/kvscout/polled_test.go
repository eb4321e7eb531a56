package main

import (
	"bufio"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/recording"
	"github.com/kvscout/kvscout/test/testpython"
)

// drainOf serves events as trtllm-serve's /kv_cache_events does, and returns its URL.
func drainOf(t *testing.T, list ...string) string {
	t.Helper()
	cmd := exec.Command(testpython.Path(t), "../../events/poll/testdata/server.py")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	out := bufio.NewScanner(pipe)
	out.Scan()
	url := "http://127.0.0.1:" + out.Text() + "/kv_cache_events"
	for _, event := range list {
		fmt.Fprintln(in, "push "+event)
		out.Scan()
	}
	return url
}

// chain is a store of full blocks of 4 tokens, which count from first.
func chain(id, first, blocks int) string {
	var list []string
	for b := range blocks {
		var tokens []string
		for i := range 4 {
			tokens = append(tokens, fmt.Sprintf(`{"type": "unique_token", "token_id": %d, "token_extra_id": 0}`, first+4*b+i))
		}
		list = append(list, fmt.Sprintf(`{"type": "stored_block", "block_hash": %d, "tokens": [%s], "cache_level": 0, "priority": 35}`, 101+b, strings.Join(tokens, ", ")))
	}
	return fmt.Sprintf(`{"event_id": %d, "data": {"type": "stored", "parent_hash": null, "blocks": [%s]}, "window_size": 4096}`, id, strings.Join(list, ", "))
}

const createdEvent = `{"event_id": 0, "data": {"type": "created", "num_blocks_per_cache_level": [2231, 0]}, "window_size": 4096}`

// An engine that is polled is scored like the others. Rule 15: requests with a salt are refused, since not every version
// publishes salts.
func TestRule15_ServePolled(t *testing.T) {
	url := drainOf(t, createdEvent, chain(1, 100, 3))
	server, _ := startServe(t, "--listen", "127.0.0.1:0", "--source", "id=w0,engine=trtllm,model=m,block-size=4,events="+url)
	listed(t, server, "live #1")
	ids := writeJSON(t, tokens(100, 14))
	wants(t, ok(t, "score", "--server", server, "--model", "m", "--tokens", ids), "w0", " 12    12 ", "exact")
	r := run(t, "score", "--server", server, "--model", "m", "--tokens", ids, "--cache-salt", "tenant")
	if r.code != exitFailed {
		t.Errorf("exits with %d", r.code)
	}
	wants(t, r.err, "SALT_NOT_SUPPORTED_BY_ENGINE")
}

// A polled source is recorded like the others.
func TestRecordPolled(t *testing.T) {
	url := drainOf(t, createdEvent, chain(1, 100, 3))
	path := filepath.Join(t.TempDir(), "w0.kvrec")
	r := run(t, "record", "--source", "id=w0,engine=trtllm,block-size=4,events="+url, "-o", path, "--for", "1s")
	if r.code != exitOK {
		t.Fatalf("exits with %d: %s", r.code, r.err)
	}
	wants(t, r.err, "recorded 2 batches")
	var stored events.Batch
	for _, rec := range records(t, path) {
		if rec.Kind != recording.KindMessage {
			continue
		}
		if err := events.NewDecoder(events.Limits{}).Decode(rec.Frames[2], &stored); err != nil {
			t.Fatal(err)
		}
	}
	if len(stored.Events) != 1 || len(stored.Events[0].Hashes) != 3 {
		t.Errorf("the last event is %+v", stored.Events)
	}
	wants(t, ok(t, "replay", path, "--model", "m"), "replayed: 2 batches applied", "device 3")
}
