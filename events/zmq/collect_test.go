package zmq_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/zmq"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collector is a Handler that keeps everything.
type collector struct {
	mu     sync.Mutex // guards all below
	change *sync.Cond
	frames [][][]byte
	up     map[uint64]string
	downs  []error
	failed []error
}

func newCollector() *collector {
	c := &collector{up: make(map[uint64]string)}
	c.change = sync.NewCond(&c.mu)
	return c
}

func (c *collector) Connected(conn uint64, remote string) {
	c.locked(func() { c.up[conn] = remote })
}

func (c *collector) Message(_ uint64, frames [][]byte) {
	c.locked(func() { c.frames = append(c.frames, frames) })
}

func (c *collector) Disconnected(conn uint64, err error) {
	c.locked(func() {
		if conn == 0 {
			c.failed = append(c.failed, err)
			return
		}
		delete(c.up, conn)
		c.downs = append(c.downs, err)
	})
}

func (c *collector) locked(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	c.change.Broadcast()
}

// wait blocks until done, which is called under the lock, reports true.
func (c *collector) wait(t *testing.T, what string, done func() bool) {
	t.Helper()
	late := false
	timer := time.AfterFunc(20*time.Second, func() { c.locked(func() { late = true }) })
	defer timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !done() {
		if late {
			t.Fatalf("waited in vain for %s: %d messages, up %v, downs %v, failed %v", what, len(c.frames), c.up, c.downs, c.failed)
		}
		c.change.Wait()
	}
}

func (c *collector) messages() int { return len(c.frames) }

// run starts f and stops it at the end of the test.
func run(t *testing.T, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }() // ended by cancel, waited for in the cleanup
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != context.Canceled {
				t.Errorf("ended with %v, want %v", err, context.Canceled)
			}
		case <-time.After(10 * time.Second):
			t.Error("did not end within 10 s")
		}
	})
}

func endpoint(t *testing.T, text string) events.Endpoint {
	t.Helper()
	e, err := events.ParseEndpoint(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// fast are options with short times.
func fast(e events.Endpoint) zmq.Options {
	return zmq.Options{
		Endpoint: e, Idle: 200 * time.Millisecond, Handshake: 500 * time.Millisecond,
		BackoffMin: 5 * time.Millisecond, BackoffMax: 50 * time.Millisecond,
	}
}
