package e2e

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"

	"github.com/kvscout/kvscout/test/testport"
)

// engineConfig says how an engine is started. Ports and flags stay the same when it is started again.
type engineConfig struct {
	id     string // of the worker
	rank   int
	form   string // "vllm" (maps, default), "vllm-array", "sglang"
	model  string // default "m"
	dial   bool   // the engine dials and kvscout binds
	replay bool
	topic  string
	blocks int // capacity; 0 is 4096
	buffer int // batches kept for replay; 0 is 10,000
	port   int // of the events; the replay is at port + replayOffset. 0: chosen
}

// engine is a running testdata/engine.py.
type engine struct {
	engineConfig
	*process
	t     testing.TB
	in    io.WriteCloser
	out   *bufio.Reader
	extra []string // flags of the next start
}

const blockSize = 4

// replayOffset leaves room for the ranks of a worker, whose ports follow each other.
const replayOffset = 4

// startEngine starts an engine for the rest of the test.
func startEngine(t testing.TB, c engineConfig) *engine {
	t.Helper()
	if c.form == "" {
		c.form = "vllm"
	}
	if c.model == "" {
		c.model = "m"
	}
	if c.port == 0 {
		c.port = testport.Free(t, replayOffset+1)
	}
	e := &engine{engineConfig: c, t: t}
	e.start()
	return e
}

func (e *engine) start() {
	e.t.Helper()
	args := []string{filepath.Join("testdata", "engine.py"), "--form", e.form, "--rank", strconv.Itoa(e.rank),
		"--pub", "tcp://127.0.0.1:" + strconv.Itoa(e.port), "--block-size", strconv.Itoa(blockSize)}
	if !e.dial {
		args = append(args, "--bind")
	}
	if e.replay {
		args = append(args, "--replay", e.replayEndpoint())
	}
	if e.topic != "" {
		args = append(args, "--topic", e.topic)
	}
	if e.blocks > 0 {
		args = append(args, "--blocks", strconv.Itoa(e.blocks))
	}
	if e.buffer > 0 {
		args = append(args, "--buffer", strconv.Itoa(e.buffer))
	}
	cmd := exec.Command(python, append(args, e.extra...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		e.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		e.t.Fatal(err)
	}
	e.process = start(e.t, "engine "+e.id, cmd)
	e.in, e.out = in, bufio.NewReaderSize(out, 1<<20)
	e.answer(nil)
}

// restart kills the engine as kill -9 does and starts another with an empty cache on the same ports.
func (e *engine) restart(extra ...string) {
	e.t.Helper()
	e.kill()
	e.extra = extra
	e.start()
}

func (e *engine) replayEndpoint() string {
	return "tcp://127.0.0.1:" + strconv.Itoa(e.port+replayOffset)
}

// endpoint is what kvscout is told.
func (e *engine) endpoint() string {
	host := "127.0.0.1"
	if e.dial {
		host = "*"
	}
	return fmt.Sprintf("tcp://%s:%d", host, e.port)
}

func (e *engine) engineName() string {
	if e.form == "sglang" {
		return "sglang"
	}
	return "vllm"
}

// spec is the engine as --source takes it.
func (e *engine) spec() string {
	s := fmt.Sprintf("id=%s,engine=%s,model=%s,block-size=%d,events=%s,rank=%d", e.id, e.engineName(), e.model, blockSize,
		e.endpoint(), e.rank)
	if e.replay {
		s += ",replay=" + e.replayEndpoint()
	}
	if e.topic != "" {
		s += ",topic=" + e.topic
	}
	return s
}

// worker is the engine as RegisterWorker takes it.
func (e *engine) worker() obj {
	w := obj{"workerId": e.id, "engine": e.engineName(), "model": e.model, "blockSize": blockSize, "eventEndpoint": e.endpoint()}
	if e.replay {
		w["replayEndpoint"] = e.replayEndpoint()
	}
	if e.topic != "" {
		w["topic"] = e.topic
	}
	return obj{"worker": w}
}

// result is an engine's answer to a command.
type result struct {
	Seq    uint64 // number of the last batch published
	Silent bool   // none was ever published
	Cached int    // the engine's own number of cached tokens
}

// do runs one command.
func (e *engine) do(command obj) result {
	e.t.Helper()
	var r result
	e.send(command, &r)
	return r
}

// all runs several commands in one go.
func (e *engine) all(commands []obj) []result {
	e.t.Helper()
	var r struct{ Results []result }
	e.send(obj{"op": "batch", "ops": commands}, &r)
	return r.Results
}

func (e *engine) send(command obj, answer any) {
	e.t.Helper()
	if _, err := e.in.Write(append(asJSON(e.t, command), '\n')); err != nil {
		e.t.Fatalf("engine %s: %v\n%s", e.id, err, e.stderr)
	}
	e.answer(answer)
}

func (e *engine) answer(to any) {
	e.t.Helper()
	line, err := e.out.ReadBytes('\n')
	if err != nil {
		e.t.Fatalf("engine %s: %v\n%s", e.id, err, e.stderr)
	}
	if to == nil {
		return
	}
	if err := json.Unmarshal(line, to); err != nil {
		e.t.Fatalf("engine %s: %v in %s", e.id, err, line)
	}
}

// serve runs one request.
func (e *engine) serve(tokens []uint32) result {
	e.t.Helper()
	return e.do(obj{"op": "serve", "tokens": tokens})
}

// stored is a store of blocks hashed 1, 2, .. from hash on.
func stored(hash uint64, parent any, tokens []uint32) obj {
	var hashes []uint64
	for i := range len(tokens) / blockSize {
		hashes = append(hashes, hash+uint64(i))
	}
	return obj{"type": "stored", "block_hashes": hashes, "parent_block_hash": parent, "token_ids": tokens}
}

func publish(events ...obj) obj { return obj{"op": "publish", "events": events} }

func sent(frames ...[]byte) obj {
	var list []string
	for _, f := range frames {
		list = append(list, base64.StdEncoding.EncodeToString(f))
	}
	return obj{"op": "frames", "frames": list}
}

// hello sends messages that are none until the server has counted one: then it is subscribed, and what is published
// from now on is not lost. It returns the worker's counters.
func (e *engine) hello(s *server) *kvscoutv1.SourceStats {
	e.t.Helper()
	before := s.stats(e.t, e.id, uint32(e.rank)).Rejected["bad_frames"]
	var st *kvscoutv1.SourceStats
	eventually(e.t, "the server hears "+e.id, func() bool {
		e.do(sent([]byte(e.topic)))
		for until := time.Now().Add(100 * time.Millisecond); time.Now().Before(until); time.Sleep(2 * time.Millisecond) {
			if st = s.stats(e.t, e.id, uint32(e.rank)); st.Rejected["bad_frames"] > before {
				return true
			}
		}
		return false
	})
	return st
}

func (e *engine) stop() { e.signal(e.t, syscall.SIGSTOP) }
func (e *engine) cont() { e.signal(e.t, syscall.SIGCONT) }

// serveFleet starts a server that is told of engines by --source.
func serveFleet(t testing.TB, engines []*engine, args ...string) *server {
	t.Helper()
	for _, e := range engines {
		args = append(args, "--source", e.spec())
	}
	return serve(t, args...)
}
