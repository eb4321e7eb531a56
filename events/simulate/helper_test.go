package simulate

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
	"go.uber.org/goleak"

	"github.com/kvscout/kvscout/test/testpython"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer starts testdata/peer.py with args and returns what it prints, line by line, to its end.
func peerProcess(t *testing.T, args ...string) *bufio.Scanner {
	t.Helper()
	cmd := exec.Command(testpython.Path(t), append([]string{filepath.Join("testdata", "peer.py")}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended by itself unless the test failed
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	return lines
}

func newEngine(t *testing.T, c Config) *Engine {
	t.Helper()
	if c.Worker == "" {
		c.Worker = "w0"
	}
	if c.Replay == "" {
		c.Replay = "tcp://127.0.0.1:0"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	e, err := New(c)
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

func serve(t *testing.T, e *Engine, r Request) Outcome {
	t.Helper()
	out, err := e.Serve(r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// until waits for a condition that other goroutines or processes bring about.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// payloads returns what the engine keeps for replay.
func payloads(e *Engine) [][]byte {
	var out [][]byte
	for _, b := range e.stream.since(0) {
		out = append(out, b.payload)
	}
	return out
}

// wireEvent is an event read back from msgpack by a library, in either form.
type wireEvent struct {
	kind            string
	hashes          []uint64
	parent          any // uint64 or nil
	tokens          []uint32
	salt, lora      string
	extras          []any
	group, loraID   any
	fields          int
	blockSize, rank int
}

func decode(t *testing.T, payload []byte) []wireEvent {
	t.Helper()
	var batch []any
	if err := msgpack.Unmarshal(payload, &batch); err != nil {
		t.Fatal(err)
	}
	if len(batch) != 3 {
		t.Fatalf("batch of %d", len(batch))
	}
	var out []wireEvent
	for _, raw := range batch[1].([]any) {
		e := named(raw)
		w := wireEvent{kind: e["type"].(string), fields: len(e), rank: int(number(batch[2]))}
		for _, h := range items(e["block_hashes"]) {
			w.hashes = append(w.hashes, number(h))
		}
		if p := e["parent_block_hash"]; p != nil {
			w.parent = number(p)
		}
		for _, tok := range items(e["token_ids"]) {
			w.tokens = append(w.tokens, uint32(number(tok)))
		}
		if n := e["block_size"]; n != nil {
			w.blockSize = int(number(n))
		}
		w.salt, _ = e["cache_salt"].(string)
		w.lora, _ = e["lora_name"].(string)
		w.extras, w.group, w.loraID = items(e["extra_keys"]), e["group_idx"], e["lora_id"]
		out = append(out, w)
	}
	return out
}

// named gives an array event the keys of the map form (wire.md 1.1 and 3.1).
func named(raw any) map[string]any {
	if m, ok := raw.(map[string]any); ok {
		return m
	}
	a := raw.([]any)
	keys := []string{"type", "block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name", "extra_keys", "group_idx"}
	if a[0] == "BlockRemoved" {
		keys = []string{"type", "block_hashes", "medium", "group_idx"}
	}
	m := make(map[string]any)
	for i, v := range a {
		if meta, ok := v.(map[string]any); ok {
			m["cache_salt"] = meta["cache_salt"]
			continue
		}
		m[keys[i]] = v
	}
	return m
}

func items(v any) []any {
	l, _ := v.([]any)
	return l
}

func number(v any) uint64 {
	if r := reflect.ValueOf(v); r.CanInt() {
		return uint64(r.Int())
	} else if r.CanUint() {
		return r.Uint()
	}
	panic(v)
}

// recorded is a message of a real engine: see testdata/README.md.
type recorded struct {
	Recording, Form string
	Frames          []string
	LoraIDs         map[string]string `json:"lora_ids"`
}

func (r recorded) payload(t *testing.T) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(r.Frames[2])
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func recordings(t *testing.T) []recorded {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "recorded.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var out []recorded
	for line := range strings.Lines(string(text)) {
		var r recorded
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// span is the tokens from..to-1.
func span(from, to uint32) []uint32 {
	var out []uint32
	for n := from; n < to; n++ {
		out = append(out, n)
	}
	return out
}
