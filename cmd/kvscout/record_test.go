package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvscout/kvscout/events/recording"
	"github.com/kvscout/kvscout/events/simulate"
)

// tapeOf runs `kvscout record` and returns how to stop it, with what it told.
func tapeOf(t *testing.T, args ...string) (stop func() result) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan result, 1)
	// Ended by cancel; stop waits for it.
	go func() {
		var out, errs bytes.Buffer
		code := execute(ctx, append([]string{"record"}, args...), strings.NewReader(""), &out, &errs)
		done <- result{code, out.String(), errs.String()}
	}()
	t.Cleanup(cancel)
	return func() result {
		cancel()
		return <-done
	}
}

// messages counts the batches in a recording that may still be growing.
func messages(path string) (n int) {
	r, err := recording.Open(path)
	if err != nil {
		return 0
	}
	defer r.Close()
	for {
		rec, err := r.Next()
		if err != nil {
			return n
		}
		if rec.Kind == recording.KindMessage {
			n++
		}
	}
}

// ran is a request with what its engine reported, and the last batch that its client had seen; nil before the first.
type ran struct {
	simulate.Request
	simulate.Outcome
	after *uint64
}

// serveTraffic runs n requests.
func serveTraffic(t *testing.T, e *simulate.Engine, n int) (log []ran) {
	t.Helper()
	cfg := simulate.DefaultTraffic()
	cfg.MaxTokens = 1024
	if e.Form() == simulate.FormSGLangArray {
		cfg.Adapters = nil
	}
	traffic := simulate.NewTraffic(3, cfg)
	var after *uint64
	for range n {
		r := ran{Request: traffic.Next(), after: after}
		r.Outcome = serveTokens(t, e, r.Request)
		if r.Published {
			after = &r.Sequence
		}
		log = append(log, r)
	}
	return log
}

// interleave puts each request of source behind the last batch that its client had seen.
func interleave(tape []*recording.Record, source string, log []ran) (out []*recording.Record) {
	place := func(seen func(uint64) bool) {
		for len(log) > 0 && (log[0].after == nil || seen(*log[0].after)) {
			r := log[0]
			log = log[1:]
			q := &recording.Request{
				After: map[string]uint64{}, Tokens: r.Tokens, Adapter: r.Adapter, CacheSalt: r.CacheSalt,
				PromptTokens: r.PromptTokens, CachedTokens: r.CachedTokens,
			}
			if r.after != nil {
				q.After[source] = *r.after
			}
			out = append(out, &recording.Record{Kind: recording.KindRequest, Source: source, Request: q})
		}
	}
	for _, rec := range tape {
		out = append(out, rec)
		switch rec.Kind {
		case recording.KindSource:
			place(func(uint64) bool { return false })
		case recording.KindMessage:
			seq := binary.BigEndian.Uint64(rec.Frames[1])
			place(func(after uint64) bool { return after <= seq })
		}
	}
	return out
}

// What a recorder heard, with what the engine reported in between, is verified without a wrong answer: also what was
// published before it came.
func TestRecordThenVerify(t *testing.T) {
	for _, form := range simulate.Forms() {
		t.Run(string(form), func(t *testing.T) {
			e := startEngine(t, simulate.Config{Worker: "w0", Model: "m", Form: form, Blocks: 256, Topic: "kv"})
			log := serveTraffic(t, e, 60)
			path := filepath.Join(t.TempDir(), "w0.kvrec")
			stop := tapeOf(t, "--source", spec(e), "-o", path)
			published := int(e.Stats().Published)
			eventually(t, "the replay on the tape", func() bool { return messages(path) == published })
			if r := stop(); r.code != exitOK {
				t.Fatalf("exits with %d: %s", r.code, r.err)
			}
			list := interleave(records(t, path), "w0/0", log)
			v := okJSON(t, "verify", "--json", record(t, "all.kvrec", list))
			if v["requests"] != 60.0 || v["wrong"] != 0.0 || v["files"].([]any)[0].(map[string]any)["equal"] != 60.0 {
				t.Errorf("got %v", v)
			}
		})
	}
}

func TestRecordEnds(t *testing.T) {
	e := startEngine(t, simulate.Config{Worker: "w0", Model: "m"})
	serveTokens(t, e, simulate.Request{Tokens: tokens(0, 4096)})
	path := filepath.Join(t.TempDir(), "w0.kvrec")
	r := run(t, "record", "--source", spec(e), "-o", path, "--for", "1s")
	if r.code != exitOK {
		t.Fatalf("exits with %d: %s", r.code, r.err)
	}
	wants(t, r.err, "recording 1 sources", "recorded 1 batches")
	list := records(t, path)
	if info := list[0].Info; info == nil || info.ID() != "w0/0" || info.BlockSize != 16 {
		t.Errorf("it begins with %v", list[0])
	}
	r = run(t, "record", "--source", spec(e), "-o", path, "--for", "1m", "--max-bytes", "100")
	if r.code != exitOK {
		t.Fatalf("exits with %d: %s", r.code, r.err)
	}
	wants(t, r.err, "recorded 1 batches")
}

// A dump holds prompts, so only its owner may read it, whatever the file was before.
func TestCase119_OwnerOnly(t *testing.T) {
	e := startEngine(t, simulate.Config{Worker: "w0", Model: "m"})
	path := writeFile(t, "w0.kvrec", "old")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	ok(t, "record", "--source", spec(e), "-o", path, "--for", "50ms")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// A recorder that is killed loses at most what it heard in the last second.
func TestRecorderIsKilled(t *testing.T) {
	e := startEngine(t, simulate.Config{Worker: "w0", Model: "m"})
	serveTokens(t, e, simulate.Request{Tokens: tokens(0, 640), Output: 8})
	path := filepath.Join(t.TempDir(), "w0.kvrec")
	p := kvscoutProcess(t, "record", "--source", spec(e), "-o", path)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	published := int(e.Stats().Published)
	eventually(t, "the tape", func() bool { return messages(path) == published })
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait() // killed
	wants(t, ok(t, "replay", path), "0 gaps")
}

func TestConvert(t *testing.T) {
	list := records(t, filepath.Join(recordings, "vllm-0.32-eagle.kvrec"))
	in := record(t, "in.kvrec", list)
	out := filepath.Join(t.TempDir(), "out.kvrec")
	r := run(t, "record", "convert", in, "-o", out)
	if r.code != exitOK {
		t.Fatal(r.err)
	}
	if got := len(records(t, out)); got != len(list) {
		t.Errorf("%d records, want %d", got, len(list))
	}
	r = run(t, "record", "convert", in, "-o", in)
	if r.code != exitUsage || len(records(t, in)) != len(list) {
		t.Errorf("onto itself: exits with %d", r.code)
	}
	if r := run(t, "record", "convert", in); r.code != exitUsage {
		t.Errorf("to nowhere: exits with %d", r.code)
	}
}
