package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/jetstream/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// trace is a Sink that writes down what it is told.
type trace struct {
	mu    sync.Mutex // guards calls and state
	calls []string   // all but states
	state string
	more  chan struct{} // has room for one
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
	if len(payload) > 20 {
		payload = []byte("...")
	}
	s.add("%d:%s", seq, payload)
}
func (s *trace) Reset()                             { s.add("reset") }
func (s *trace) Joined(first uint64, complete bool) { s.add("joined %d %v", first, complete) }
func (s *trace) Gap(from, to uint64)                { s.add("gap %d..%d", from, to) }
func (s *trace) Reject(r events.Reason)             { s.add("reject %v", r) }
func (s *trace) Replayed(int)                       { s.add("replayed") }
func (s *trace) State(state events.State, why error) {
	text := state.String()
	if why != nil {
		text += ": " + why.Error()
	}
	s.mu.Lock()
	s.state = text
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
			t.Fatalf("told %q and state %q, want %s", got, state, want)
		}
	}
}

// all is every call so far.
func (s *trace) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// target is a Target of traces.
type target struct {
	mu      sync.Mutex // guards the fields below
	members map[string]Member
	sinks   map[place]*trace
	more    chan struct{} // closed and replaced when something changes
}

func newTarget() *target {
	return &target{members: make(map[string]Member), sinks: make(map[place]*trace), more: make(chan struct{})}
}

func (g *target) change(do func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	do()
	close(g.more)
	g.more = make(chan struct{})
}

func (g *target) Describe(m Member) error {
	g.change(func() {
		if have, ok := g.members[m.ID]; ok && have.Model != m.Model {
			for p := range g.sinks {
				delete(g.sinks, p)
			}
		}
		g.members[m.ID] = m
	})
	return nil
}

func (g *target) Forget(worker string) { g.change(func() { delete(g.members, worker) }) }

func (g *target) Sink(worker string, rank int) events.Sink {
	var s *trace
	g.change(func() {
		p := place{worker, rank}
		if s = g.sinks[p]; s == nil {
			s = newTrace()
			g.sinks[p] = s
		}
	})
	return s
}

// until waits for a condition on the target.
func (g *target) until(t *testing.T, what string, done func() bool) {
	t.Helper()
	timeout := time.After(10 * time.Second)
	for {
		g.mu.Lock()
		ok, more := done(), g.more
		g.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-more:
		case <-timeout:
			t.Fatalf("not %s", what)
		}
	}
}

// source waits until worker w's rank 0 is followed.
func (g *target) source(t *testing.T) *trace {
	t.Helper()
	g.until(t, "followed", func() bool { return g.sinks[place{"w", 0}] != nil })
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sinks[place{"w", 0}]
}

var quick = Options{Heartbeat: 40 * time.Millisecond, Lease: 300 * time.Millisecond, StaleAfter: time.Second}

// serve starts a server for the rest of the test.
func serve(t *testing.T, o embedded.Options) *embedded.Server {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s, err := embedded.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// open connects to a server for the rest of the test.
func open(t *testing.T, s *embedded.Server, o Options) *Log {
	t.Helper()
	if o.URL == "" {
		o.Server = s
	}
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// follow runs a replica until stop is called or the test ends.
func follow(t *testing.T, l *Log, start *Cursor) (g *target, f *Follower, stop func()) {
	t.Helper()
	g = newTarget()
	f = l.Follow(g)
	if start != nil {
		if err := f.StartFrom(*start); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }() // ends with ctx; waited for in stop
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return g, f, stop
}

var described = events.Source{Worker: "w", Engine: events.EngineVLLM, Model: "m", Events: "tcp://10.0.0.1:5557"}

// ingest starts an ingester of worker w for the rest of the test, and returns where its stream delivers.
func ingest(t *testing.T, l *Log) (*Publisher, events.Sink) {
	t.Helper()
	p := l.NewPublisher()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		p.Close(ctx)
	})
	sink := p.Sink(described)
	p.Members([]Member{{ID: "w", Model: "m", Sources: []Source{SourceOf(described)}}})
	return p, sink
}

// tell delivers messages as a stream would; their payloads are the texts.
func tell(sink events.Sink, first uint64, texts ...string) {
	for i, text := range texts {
		sink.Apply(first+uint64(i), []byte(text), time.Now())
	}
}
