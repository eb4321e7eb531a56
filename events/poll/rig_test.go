package poll

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/test/testpython"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// engine is a running testdata/server.py.
type engine struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	port string
}

// serve starts an engine; port "0" takes a free one.
func serve(t *testing.T, port string) *engine {
	t.Helper()
	e := &engine{t: t, cmd: exec.Command(testpython.Path(t), "testdata/server.py", port)}
	e.cmd.Stderr = os.Stderr
	var err error
	if e.in, err = e.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.kill)
	e.out = bufio.NewReader(out)
	e.port = e.line()
	return e
}

func (e *engine) line() string {
	e.t.Helper()
	text, err := e.out.ReadString('\n')
	if err != nil {
		e.t.Fatal(err)
	}
	return strings.TrimSpace(text)
}

// do sends a command and waits until it is done.
func (e *engine) do(format string, args ...any) string {
	e.t.Helper()
	if _, err := fmt.Fprintf(e.in, format+"\n", args...); err != nil {
		e.t.Fatal(err)
	}
	return e.line()
}

// push queues events, removals of one block each, under these numbers.
func (e *engine) push(ids ...int) {
	e.t.Helper()
	for _, id := range ids {
		e.do(`push {"event_id": %d, "data": {"type": "removed", "block_hashes": [%d]}, "window_size": 4096}`, id, id)
	}
}

func (e *engine) kill() {
	_ = e.cmd.Process.Kill()
	_ = e.cmd.Wait()
}

func (e *engine) url() string { return "http://127.0.0.1:" + e.port + "/kv_cache_events" }

// trace is a Sink that writes down what it is told.
type trace struct {
	mu    sync.Mutex // guards calls, state and why
	calls []string   // all but states
	state string
	why   string        // of the state
	more  chan struct{} // has room for one: something was added
}

func newTrace() *trace { return &trace{more: make(chan struct{}, 1)} }

func (s *trace) add(format string, args ...any) {
	s.mu.Lock()
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
	s.mu.Unlock()
	s.wake()
}

func (s *trace) wake() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

func (s *trace) Apply(seq uint64, payload []byte, _ time.Time) {
	id, _, err := events.ParseBufferedID(payload)
	if err != nil || !id.HasRank && id.ID != seq {
		s.add("payload %s under %d", payload, seq)
		return
	}
	if id.HasRank {
		s.add("apply %d: %d of %d", seq, id.ID, id.Rank)
	} else {
		s.add("apply %d", seq)
	}
}
func (s *trace) Reset()                             { s.add("reset") }
func (s *trace) Joined(first uint64, complete bool) { s.add("joined %d %v", first, complete) }
func (s *trace) Gap(from, to uint64)                { s.add("gap %d..%d", from, to) }
func (s *trace) Reject(r events.Reason)             { s.add("reject %v", r) }
func (s *trace) Replayed(int)                       { s.add("replayed") }
func (s *trace) State(state events.State, why error) {
	s.mu.Lock()
	s.state, s.why = state.String(), fmt.Sprint(why)
	if errors.Is(why, ErrUnsure) {
		s.state = "unsure"
	}
	s.mu.Unlock()
	s.wake()
}

// has waits until the calls end with want.
func (s *trace) has(t *testing.T, want ...string) {
	t.Helper()
	s.wait(t, func() bool {
		return len(s.calls) >= len(want) && slices.Equal(s.calls[len(s.calls)-len(want):], want)
	}, fmt.Sprintf("calls that end with %q", want))
}

// is waits until the state is want.
func (s *trace) is(t *testing.T, want string) {
	t.Helper()
	s.wait(t, func() bool { return s.state == want }, "state "+want)
}

func (s *trace) wait(t *testing.T, done func() bool, want string) {
	t.Helper()
	timeout := time.After(10 * time.Second)
	for {
		s.mu.Lock()
		ok, got, state := done(), slices.Clone(s.calls), s.state
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-s.more:
		case <-timeout:
			t.Fatalf("told %q and state %s, want %s", got, state, want)
		}
	}
}

// start polls e for the rest of the test.
func start(t *testing.T, e *engine, o Options) *trace {
	t.Helper()
	return startAt(t, e.url(), o)
}

// startAt polls a URL for the rest of the test.
func startAt(t *testing.T, url string, o Options) *trace {
	t.Helper()
	sink := newTrace()
	p, err := New(events.Source{Worker: "w", Engine: events.EngineTRTLLM, Events: url}, sink, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }() // ends with ctx; waited for below
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	})
	return sink
}
