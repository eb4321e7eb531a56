package stream_test

import (
	"flag"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/zmq/zmqtest"
)

// edge is a change of a source's state.
type edge struct{ from, to events.State }

// lifeCycle is every edge of the source's life, with what causes it.
var lifeCycle = map[edge]string{
	{events.StateUnknown, events.StateConnecting}:   "it starts, or loses a connection over which nothing was heard",
	{events.StateUnknown, events.StateReplaying}:    "a replay that failed is tried again before anything was heard",
	{events.StateUnknown, events.StateLive}:         "the first batch",
	{events.StateUnknown, events.StateGap}:          "resumed from a cursor, with a loss behind it, and nobody to ask",
	{events.StateUnknown, events.StateStale}:        "resumed from a cursor, and nothing heard for StaleAfter",
	{events.StateConnecting, events.StateUnknown}:   "connected, nothing to replay, nothing heard",
	{events.StateConnecting, events.StateReplaying}: "connected, and there is whom to ask",
	{events.StateConnecting, events.StateLive}:      "connected again soon, and there is nobody to ask",
	{events.StateConnecting, events.StateGap}:       "the same, with a loss behind it",
	{events.StateConnecting, events.StateStale}:     "unreached for StaleAfter",
	{events.StateReplaying, events.StateUnknown}:    "the replay failed and nothing was heard",
	{events.StateReplaying, events.StateConnecting}: "the connection is lost meanwhile",
	{events.StateReplaying, events.StateLive}:       "the replay brought what was missing",
	{events.StateReplaying, events.StateGap}:        "it did not",
	{events.StateReplaying, events.StateStale}:      "it failed after a long outage: nothing is known of the publisher",
	{events.StateLive, events.StateConnecting}:      "the connection is lost",
	{events.StateLive, events.StateReplaying}:       "a hole, a new life, or a new session",
	{events.StateLive, events.StateGap}:             "a hole, and nobody to ask",
	{events.StateGap, events.StateConnecting}:       "the connection is lost",
	{events.StateGap, events.StateReplaying}:        "another hole, or a rebuild that is due",
	{events.StateGap, events.StateLive}:             "a new life, and nobody to ask",
	{events.StateStale, events.StateConnecting}:     "a connection that says nothing new is lost again",
	{events.StateStale, events.StateReplaying}:      "connected again, and there is whom to ask",
	{events.StateStale, events.StateLive}:           "the publisher speaks again",
	{events.StateStale, events.StateGap}:            "the same, with a loss behind it",
	{events.StateStale, events.StateUnknown}:        "reached for the first time",
}

// seenEdges collects the edges that the tests of this package go through.
type seenEdges struct {
	mu   sync.Mutex // guards seen
	seen map[edge]int
}

var edges = seenEdges{seen: make(map[edge]int)}

func (e *seenEdges) note(from, to events.State) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if from != to { // the same again: another reason
		e.seen[edge{from, to}]++
	}
}

// TestMain fails if the tests went through an edge that is none, or, when all of them ran, missed one.
func TestMain(m *testing.M) {
	flag.Parse()
	all := true // tests are run, and none is left out
	for _, name := range []string{"test.run", "test.bench", "test.list", "test.fuzz", "test.skip"} {
		all = all && flag.Lookup(name).Value.String() == ""
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.Exit(edges.check(code, all))
	}))
}

// check returns the exit code of the tests.
func (e *seenEdges) check(code int, all bool) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	byName := func(a, b edge) int { return int(a.from)*10 + int(a.to) - int(b.from)*10 - int(b.to) }
	for _, x := range slices.SortedFunc(maps.Keys(e.seen), byName) {
		if lifeCycle[x] == "" {
			fmt.Printf("%v -> %v is no edge of a source's life\n", x.from, x.to)
			code = max(code, 1)
		}
	}
	if !all || code != 0 {
		return code
	}
	for _, x := range slices.SortedFunc(maps.Keys(lifeCycle), byName) {
		if e.seen[x] == 0 {
			fmt.Printf("no test goes from %v to %v: %s\n", x.from, x.to, lifeCycle[x])
			code = 1
		}
	}
	return code
}

// The edges to and from a gap when there is nobody to ask: a short outage, a long one, a new life.
func TestEdges_GapWithoutReplay(t *testing.T) {
	p := zmqtest.Start(t)
	at := p.Do("open", nil)
	px := newProxy(t, at.Pub)
	o := quick()
	o.Idle, o.StaleAfter = 50*time.Millisecond, 300*time.Millisecond
	d, _ := follow(t, source(px.endpoint(), ""), o)
	p.Do("wait", nil)
	p.Do("publish", nil)
	p.Do("publish", zmqtest.Args{"live": false})
	p.Do("publish", nil)
	d.seen(t, "2=0:2", events.StateGap)
	px.cut()
	d.wait(t, "gap after connecting", func() bool {
		n := len(d.states)
		return n > 2 && d.states[n-2] == events.StateConnecting && d.now() == events.StateGap
	})
	p.Freeze()
	d.state(t, events.StateStale)
	p.Thaw()
	for again := true; again; { // until the new connection has subscribed
		p.Do("publish", nil)
		time.Sleep(20 * time.Millisecond)
		d.locked(func() { again = d.now() == events.StateStale })
	}
	d.state(t, events.StateGap)
	p.Do("rewind", nil)
	p.Do("publish", nil)
	d.seen(t, "0=1:0", events.StateLive)
}

// A source that is first reached after StaleAfter is unknown; a replay that fails before anything was heard is tried again.
func TestEdges_Unknown(t *testing.T) {
	port := freePort(t)
	o := quick()
	o.StaleAfter, o.ReplayCooldown = 50*time.Millisecond, 20*time.Millisecond
	d, _ := follow(t, source("tcp://127.0.0.1:"+port, ""), o)
	d.state(t, events.StateStale)
	p := zmqtest.Start(t)
	p.Do("open", zmqtest.Args{"pub": "tcp://127.0.0.1:" + port})
	d.state(t, events.StateUnknown)

	asked, _ := follow(t, source("tcp://127.0.0.1:"+port, "tcp://127.0.0.1:"+freePort(t)), o)
	asked.wait(t, "another try", func() bool {
		n := len(asked.states)
		return n > 1 && asked.states[n-2] == events.StateUnknown && asked.now() == events.StateReplaying
	})
}

// The connection is lost while a replay hangs.
func TestEdges_LostWhileReplaying(t *testing.T) {
	cut := make(chan struct{})
	pub := serve(t, "PUB", func(n int, c net.Conn) bool {
		if n == 0 {
			<-cut
		}
		return n > 0
	})
	router := serve(t, "ROUTER", func(int, net.Conn) bool { return true }) // mute
	o := quick()
	o.ReplayIdle = time.Hour
	d, _ := follow(t, source(pub, router), o)
	d.state(t, events.StateReplaying)
	close(cut)
	d.wait(t, "connecting after replaying", func() bool {
		i := slices.Index(d.states, events.StateReplaying)
		return slices.Contains(d.states[i:], events.StateConnecting)
	})
}
