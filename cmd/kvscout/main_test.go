package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvscout/kvscout/events/simulate"
	"github.com/kvscout/kvscout/test/testlog"
)

// runMain makes the test binary be kvscout.
const runMain = "KVSCOUT_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" {
		os.Exit(start())
	}
	goleak.VerifyTestMain(m)
}

// recordings are those of the real engines.
const recordings = "../../test/testdata/recordings"

// result is what a command left behind.
type result struct {
	code     int
	out, err string
}

// run runs one command line.
func run(t *testing.T, args ...string) result { return runWith(t, "", args...) }

func runWith(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context()) // without a deadline, as that of a real one
	defer cancel()
	defer time.AfterFunc(time.Minute, cancel).Stop()
	var out, errs bytes.Buffer
	code := execute(ctx, args, strings.NewReader(stdin), &out, &errs)
	return result{code, out.String(), errs.String()}
}

// ok runs a command that must succeed and returns its output.
func ok(t *testing.T, args ...string) string {
	t.Helper()
	r := run(t, args...)
	if r.code != exitOK {
		t.Fatalf("kvscout %q exits with %d:\n%s%s", args, r.code, r.out, r.err)
	}
	return r.out
}

// okJSON runs a command that must print one JSON object and nothing else.
func okJSON(t *testing.T, args ...string) map[string]any {
	t.Helper()
	return parseJSON(t, ok(t, args...))
}

func parseJSON(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("not one JSON object: %v in %q", err, text)
	}
	return v
}

// wants checks that text holds all parts.
func wants(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in:\n%s", p, text)
		}
	}
}

// startServe runs `kvscout serve` until the test ends and returns its address and its log.
func startServe(t *testing.T, args ...string) (address string, log *testlog.Buffer) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	log = new(testlog.Buffer)
	code := make(chan int, 1)
	// Ended by cancel in the cleanup, which waits on code.
	go func() {
		code <- execute(ctx, append([]string{"serve"}, args...), strings.NewReader(""), w, log)
		w.Close()
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	t.Cleanup(func() {
		cancel()
		r.Close()
		if c := <-code; c != exitOK {
			t.Errorf("serve exits with %d:\n%s", c, log)
		}
	})
	if err != nil {
		t.Fatalf("serve tells no address: %v\n%s", err, log)
	}
	return strings.TrimPrefix(strings.TrimSpace(line), "kvscout serves on "), log
}

// startEngine runs a simulated engine until the test ends.
func startEngine(t *testing.T, cfg simulate.Config) *simulate.Engine {
	t.Helper()
	if cfg.Replay == "" {
		cfg.Replay = "tcp://127.0.0.1:0"
	}
	e, err := simulate.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// eventually waits until cond holds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not in time", what)
		}
	}
}

// listed waits until the server shows what, in the output of `kvscout workers`.
func listed(t *testing.T, server, what string) {
	t.Helper()
	eventually(t, what, func() bool { return strings.Contains(ok(t, "workers", "--server", server), what) })
}

// tokens are n ids from first on.
func tokens(first uint32, n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = first + uint32(i)
	}
	return out
}

// writeJSON writes v to a file and returns its path.
func writeJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "v.json", string(data))
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// spec is a --source for a simulated engine.
func spec(e *simulate.Engine) string { return sourceSpec(e.Source()) }
