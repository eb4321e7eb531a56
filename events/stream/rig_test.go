package stream_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/stream"
	"github.com/kvscout/kvscout/events/zmq/zmqtest"
	"github.com/kvscout/kvscout/test/testport"
)

// diary is a Sink that writes everything down: an entry per call of Apply, Reset, Joined and Gap, in order.
type diary struct {
	mu       sync.Mutex // guards all below
	change   *sync.Cond
	entries  []string
	last     events.State // told
	states   []events.State
	whys     []error
	rejects  [events.ReasonCount]int
	replayed int
}

func newDiary() *diary {
	d := &diary{}
	d.change = sync.NewCond(&d.mu)
	return d
}

func (d *diary) Apply(seq uint64, payload []byte, received time.Time) {
	late := ""
	if age := time.Since(received); age < 0 || age > time.Minute {
		late = fmt.Sprint(" received ", received)
	}
	d.note("%d=%s%s", seq, payload, late)
}

func (d *diary) Reset()                 { d.note("reset") }
func (d *diary) Gap(from, to uint64)    { d.note("gap %d-%d", from, to) }
func (d *diary) Replayed(n int)         { d.locked(func() { d.replayed += n }) }
func (d *diary) Reject(r events.Reason) { d.locked(func() { d.rejects[r]++ }) }

func (d *diary) Joined(first uint64, complete bool) {
	word := "partial"
	if complete {
		word = "complete"
	}
	d.note("joined %d %s", first, word)
}

func (d *diary) State(s events.State, why error) {
	d.locked(func() {
		edges.note(d.last, s)
		d.last = s
		d.states, d.whys = append(d.states, s), append(d.whys, why)
	})
}

func (d *diary) note(format string, args ...any) {
	d.locked(func() { d.entries = append(d.entries, fmt.Sprintf(format, args...)) })
}

func (d *diary) locked(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
	d.change.Broadcast()
}

// wait blocks until done, which is called under the lock, reports true.
func (d *diary) wait(t *testing.T, what string, done func() bool) {
	t.Helper()
	late := false
	timer := time.AfterFunc(20*time.Second, func() { d.locked(func() { late = true }) })
	defer timer.Stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	for !done() {
		if late {
			t.Fatalf("waited in vain for %s: %q, states %v, %v, rejects %v", what, d.tail(), d.states, d.whys, d.rejects)
		}
		d.change.Wait()
	}
}

func (d *diary) tail() []string { return d.entries[max(0, len(d.entries)-50):] }

// seen waits for an entry and for the given state after it.
func (d *diary) seen(t *testing.T, entry string, state events.State) {
	t.Helper()
	d.wait(t, entry+" and "+state.String(), func() bool {
		for _, e := range d.entries {
			if e == entry {
				return d.now() == state
			}
		}
		return false
	})
}

// now is the last state told. The caller holds the lock.
func (d *diary) now() events.State {
	if len(d.states) == 0 {
		return events.StateUnknown
	}
	return d.states[len(d.states)-1]
}

// liveOnce checks that the source was not called live again after it had been something else.
func (d *diary) liveOnce(t *testing.T) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.states, events.StateLive); slices.Contains(d.states[i+1:], events.StateLive) {
		t.Errorf("states %v: called live after its death", d.states)
	}
}

// state waits for a state.
func (d *diary) state(t *testing.T, s events.State) {
	t.Helper()
	d.wait(t, "state "+s.String(), func() bool { return d.now() == s })
}

// reads compares the whole diary. In want "a..b of k" stands for batches a to b of life k.
func (d *diary) reads(t *testing.T, want ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if diff := cmp.Diff(spelt(want), d.entries); diff != "" {
		t.Error(diff)
	}
}

// spelt is want with its batches one by one.
func spelt(want []string) (all []string) {
	for _, w := range want {
		var a, b, k int
		if n, _ := fmt.Sscanf(w, "%d..%d of %d", &a, &b, &k); n < 3 {
			all = append(all, w)
			continue
		}
		for ; a <= b; a++ {
			all = append(all, fmt.Sprintf("%d=%d:%d", a, k, a))
		}
	}
	return all
}

func (d *diary) rejected(t *testing.T, r events.Reason, n int) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rejects[r] != n {
		t.Errorf("%d rejected as %v, want %d", d.rejects[r], r, n)
	}
}

// source describes a publisher at these endpoints.
func source(live, replay string) events.Source {
	return events.Source{Worker: "w0", Engine: events.EngineVLLM, Events: live, Replay: replay}
}

// quick are options with short times, but for the cool-down.
func quick() stream.Options {
	return stream.Options{
		Idle: 2 * time.Second, ReplayIdle: 400 * time.Millisecond,
		BackoffMin: 5 * time.Millisecond, BackoffMax: 50 * time.Millisecond,
	}
}

// follow runs a stream until the test ends, or until the function that it returns is called.
func follow(t *testing.T, src events.Source, o stream.Options) (d *diary, stop func()) {
	t.Helper()
	d = newDiary()
	return d, feed(t, src, d, o)
}

// feed is follow into a sink of the test's.
func feed(t *testing.T, src events.Source, sink events.Sink, o stream.Options) (stop func()) {
	t.Helper()
	s, err := stream.New(src, sink, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }() // ended by cancel, waited for in stop
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-done:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("ended with %v, want %v", err, context.Canceled)
				}
			case <-time.After(10 * time.Second):
				t.Error("did not end in time")
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// engine starts a publisher with a replay endpoint.
func engine(t *testing.T, args zmqtest.Args) (p *zmqtest.Publisher, at zmqtest.Answer) {
	t.Helper()
	p = zmqtest.Start(t)
	all := zmqtest.Args{"replay": "tcp://127.0.0.1:*"}
	for k, v := range args {
		all[k] = v
	}
	return p, p.Do("open", all)
}

// again starts the publisher's next life on the same ports.
func again(p *zmqtest.Publisher, at zmqtest.Answer) {
	p.Do("open", zmqtest.Args{"pub": at.Pub, "replay": at.Replay})
}

func freePort(t *testing.T) string {
	t.Helper()
	return strconv.Itoa(testport.Free(t, 1))
}

// proxy forwards connections to a publisher, and can cut them all.
type proxy struct {
	l      net.Listener
	target string
	wg     sync.WaitGroup

	mu    sync.Mutex // guards conns
	conns []net.Conn
}

func newProxy(t *testing.T, endpoint string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, target: strings.TrimPrefix(endpoint, "tcp://")}
	p.wg.Go(p.accept) // ended by closing l, waited for in the cleanup
	t.Cleanup(func() {
		l.Close()
		p.cut()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) endpoint() string { return "tcp://" + p.l.Addr().String() }

func (p *proxy) accept() {
	for {
		near, err := p.l.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.target)
		if err != nil {
			near.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, near, far)
		p.mu.Unlock()
		p.wg.Go(func() { pipe(near, far) }) // both end when either side or cut closes
		p.wg.Go(func() { pipe(far, near) })
	}
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

func pipe(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
