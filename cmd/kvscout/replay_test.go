package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/recording"
	"github.com/kvscout/kvscout/events/simulate"
)

// message is a record of batch seq at second at.
func message(source string, at int, seq uint64) *recording.Record {
	return &recording.Record{
		Kind: recording.KindMessage, Time: int64(at) * int64(time.Second), Source: source,
		Frames: [][]byte{nil, binary.BigEndian.AppendUint64(nil, seq), {0x92, 0, 0x90}}, // [0, []]: no events
	}
}

// described is a record that describes worker w.
func described(w string, at int) *recording.Record {
	info := events.Source{Worker: w, Engine: events.EngineVLLM, BlockSize: 16}
	return &recording.Record{Kind: recording.KindSource, Time: int64(at) * int64(time.Second), Source: info.ID(), Info: &info}
}

// Two parts of one recording, with equal times where they meet, and the newer cut in half: the order is that of the
// source, and the cut is told once with its line.
func TestCase121_Order(t *testing.T) {
	older := record(t, "older.kvrec", []*recording.Record{
		described("w", 0), message("w/0", 1, 0), message("w/0", 2, 1), message("w/0", 2, 2), message("w/0", 5, 3),
	})
	// The JSON form, whose lines have numbers.
	line := func(seq int) string {
		return fmt.Sprintf(`{"kind":"message","t":5000000000,"source":"w/0","frames":["","AAAAAAAAAA%c=","kgCQ"]}`, "AEIMQUYc"[seq])
	}
	newer := writeFile(t, "newer.jsonl", line(4)+"\n"+line(5)+"\n"+line(6)[:40])
	for _, paths := range [][]string{{older, newer}, {newer, older}} {
		var faults []string
		m, err := openAll(paths, func(err error) { faults = append(faults, err.Error()) })
		if err != nil {
			t.Fatal(err)
		}
		var got []uint64
		for {
			rec, err := m.next()
			if err != nil {
				t.Fatal(err)
			}
			if rec == nil {
				break
			}
			if rec.Kind == recording.KindMessage {
				got = append(got, binary.BigEndian.Uint64(rec.Frames[1]))
			}
		}
		if diff := cmp.Diff([]uint64{0, 1, 2, 3, 4, 5}, got); diff != "" {
			t.Errorf("%q: %s", paths, diff)
		}
		if len(faults) != 1 || !strings.Contains(faults[0], "line 3") {
			t.Errorf("%q: faults %q", paths, faults)
		}
		if err := m.close(); err != nil {
			t.Error(err)
		}
		r := run(t, append([]string{"replay"}, paths...)...)
		if r.code != exitFailed {
			t.Errorf("replay exits with %d", r.code)
		}
		wants(t, r.err, "incomplete", "line 3")
		wants(t, r.out, "6 batches applied, 0 duplicates, 0 gaps, 0 resets")
	}
}

func TestReplayInProcess(t *testing.T) {
	path := filepath.Join(recordings, "sglang-0.5.23-dp2_unified_rust_p16.kvrec")
	messages := 0
	for _, rec := range records(t, path) {
		if rec.Kind == recording.KindMessage {
			messages++
		}
	}
	out := ok(t, "replay", path)
	wants(t, out, fmt.Sprintf("replayed: %d batches applied, 0 duplicates, 0 gaps, 0 resets, rejected: -", messages), "RANK", "1")
}

// What is told of a play is how many of its batches were played: a share of the file's bytes would say nothing, since
// they are read ahead.
func TestReplayTellsHowFar(t *testing.T) {
	path := record(t, "r.kvrec", []*recording.Record{described("w", 0), message("w/0", 0, 0), message("w/0", 0, 1), message("w/0", 0, 2)})
	specs, total, err := survey([]string{path}, "", nil)
	if err != nil || total != 3 {
		t.Fatalf("%d messages, %v", total, err)
	}
	var o replayOptions
	api, done, err := o.target()
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if err := enrol(t.Context(), api, specs); err != nil {
		t.Fatal(err)
	}
	m, err := openAll([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	var told []int64
	if err := play(t.Context(), m, &pusher{api: api}, 0, func(n int64) { told = append(told, n) }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{0, 1, 2}, told); diff != "" {
		t.Error(diff)
	}
}

// What was played before an interrupt is told.
func TestReplayInterrupted(t *testing.T) {
	path := record(t, "slow.kvrec", []*recording.Record{described("w", 0), message("w/0", 0, 0), message("w/0", 3600, 1)})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server, _ := startServe(t, "--listen", "127.0.0.1:0")
	var out, errs bytes.Buffer
	code := make(chan int, 1)
	// Ended by cancel; waited for below.
	go func() {
		args := []string{"replay", "--server", server, "--model", "m", "--speed", "1", path}
		code <- execute(ctx, args, strings.NewReader(""), &out, &errs)
	}()
	listed(t, server, "live #0")
	cancel()
	if c := <-code; c != exitFailed {
		t.Errorf("exits with %d", c)
	}
	wants(t, out.String(), "1 batches applied")
	wants(t, errs.String(), "interrupted")
}

func TestReplayOfUnlikeRecordings(t *testing.T) {
	other := described("w", 1)
	other.Info.Engine = events.EngineSGLang
	r := run(t, "replay", record(t, "a.kvrec", []*recording.Record{described("w", 0), message("w/0", 0, 0)}),
		record(t, "b.kvrec", []*recording.Record{other, message("w/0", 1, 1)}))
	if r.code != exitOK {
		t.Errorf("exits with %d", r.code)
	}
	wants(t, r.err, `worker "w" is described differently`)
}

func TestReplaySpeed(t *testing.T) {
	path := record(t, "slow.kvrec", []*recording.Record{described("w", 0), message("w/0", 0, 0), message("w/0", 2, 1)})
	began := time.Now()
	wants(t, ok(t, "replay", "--speed", "10", path), "2 batches applied")
	if took := time.Since(began); took < 200*time.Millisecond || took > 2*time.Second {
		t.Errorf("2 s at speed 10 took %v", took)
	}
}

// The worker of a recording is registered without an endpoint; what it holds is scored by what its engine reported.
func TestReplayIntoServer(t *testing.T) {
	server, _ := startServe(t, "--listen", "127.0.0.1:0")
	path := filepath.Join(recordings, "vllm-0.20-arrays.kvrec")
	r := run(t, "replay", "--server", server, path)
	if r.code != exitUsage {
		t.Errorf("without a model: exits with %d", r.code)
	}
	wants(t, r.err, "--model")
	wants(t, ok(t, "replay", "--server", server, "--model", "m", path), "0 gaps", "0 resets, rejected: -")
	wants(t, ok(t, "workers", "--server", server), "pushed", "live")
	again := ok(t, "replay", "--server", server, "--model", "m", path)
	wants(t, again, "replayed: 0 batches applied")

	// The last request of the recording ran when everything before it was held.
	list := records(t, path)
	last := -1
	for i, rec := range list {
		if rec.Kind == recording.KindRequest {
			last = i
		}
	}
	var before []*recording.Record
	for i, rec := range list {
		seq, ok := list[last].Request.After[rec.Source]
		if i >= last || rec.Kind == recording.KindMessage && (!ok || binary.BigEndian.Uint64(rec.Frames[1]) > seq) {
			continue
		}
		before = append(before, rec)
	}
	fresh, _ := startServe(t, "--listen", "127.0.0.1:0")
	ok(t, "replay", "--server", fresh, "--model", "m", record(t, "before.kvrec", before))
	q := list[last].Request
	args := []string{"score", "--server", fresh, "--model", "m", "--tokens", writeJSON(t, q.Tokens), "--json"}
	if q.CacheSalt != "" {
		args = append(args, "--cache-salt", q.CacheSalt)
	}
	if q.Adapter != "" {
		args = append(args, "--adapter", q.Adapter)
	}
	w := okJSON(t, args...)["workers"].([]any)[0].(map[string]any)
	if w["reusableTokens"] != float64(q.CachedTokens) || q.CachedTokens == 0 {
		t.Errorf("%v tokens are reusable, the engine reported %d", w["reusableTokens"], q.CachedTokens)
	}
}

func TestReplayRefusesAWorkerThatIsListenedTo(t *testing.T) {
	e := startEngine(t, simulate.Config{Worker: "w", Model: "m"})
	server, _ := startServe(t, "--listen", "127.0.0.1:0", "--source", spec(e))
	path := record(t, "r.kvrec", []*recording.Record{described("w", 0), message("w/0", 0, 0)})
	r := run(t, "replay", "--server", server, "--model", "m", path)
	if r.code != exitFailed || r.out != "" {
		t.Errorf("exits with %d", r.code)
	}
	wants(t, r.err, `listens to worker "w"`, "remove the worker first")
}

// What TensorRT-LLM's get_kv_cache_events returned is played as it was kept. Rule 11: a second life is one, though it begins
// like the first, byte by byte.
func TestRule11_ReplayBufferedEvents(t *testing.T) {
	stored := `{"event_id": 1, "data": {"type": "stored", "parent_hash": null, "blocks": [{"type": "stored_block", "block_hash": 924206229973855, ` +
		`"tokens": [{"type": "unique_token", "token_id": 1, "token_extra_id": 0}, {"type": "unique_token", "token_id": 2, "token_extra_id": 0}], "cache_level": 0, "priority": 35}]}, "window_size": 4096}`
	created := `{"event_id": 0, "data": {"type": "created", "num_blocks_per_cache_level": [9, 0]}, "window_size": 4096}`
	path := writeFile(t, "events.json", "["+created+", "+stored+"]\n["+created+", "+stored+"]\n")
	wants(t, ok(t, "replay", path), "replayed: 4 batches applied, 0 duplicates, 0 gaps, 1 resets, rejected: -", "trtllm", "device 1")
	server, _ := startServe(t, "--listen", "127.0.0.1:0")
	wants(t, ok(t, "replay", path, "--server", server, "--model", "m"), "replayed: 4 batches applied, 0 duplicates, 0 gaps, 1 resets, rejected: -")
}
