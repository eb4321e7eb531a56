package zmq_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/zmq"
	"github.com/kvscout/kvscout/events/zmq/zmqtest"
	"github.com/kvscout/kvscout/test/testport"
)

// freePort names a port of the loopback that nobody uses.
func freePort(t *testing.T) string {
	t.Helper()
	return strconv.Itoa(testport.Free(t, 1))
}

func TestDialReceivesFrames(t *testing.T) {
	p := zmqtest.Start(t)
	at := p.Do("open", zmqtest.Args{"topic": "kv@w0"})
	c := newCollector()
	o := fast(endpoint(t, at.Pub))
	o.Topics = []string{"kv@w0", "other"}
	run(t, func(ctx context.Context) error { return zmq.Dial(ctx, o, c) })
	p.Do("wait", zmqtest.Args{"subs": 2})
	p.Do("publish", zmqtest.Args{"n": 2})
	p.Do("raw", zmqtest.Args{"frames": []string{"6b764077312e", ""}}) // topic kv@w1. is not subscribed
	p.Do("raw", zmqtest.Args{"frames": []string{"6f74686572"}})
	c.wait(t, "3 messages", func() bool { return c.messages() == 3 })
	want := [][][]byte{
		{[]byte("kv@w0"), make([]byte, 8), []byte("0:0")},
		{[]byte("kv@w0"), {0, 0, 0, 0, 0, 0, 0, 1}, []byte("0:1")},
		{[]byte("other")},
	}
	if d := cmp.Diff(want, c.frames); d != "" {
		t.Error(d)
	}
}

func TestLargeMessagesAndUnixSockets(t *testing.T) {
	p := zmqtest.Start(t)
	at := p.Do("open", zmqtest.Args{"pub": "ipc://" + t.TempDir() + "/s"})
	c := newCollector()
	run(t, func(ctx context.Context) error { return zmq.Dial(ctx, fast(endpoint(t, at.Pub)), c) })
	p.Do("wait", nil)
	for _, size := range []int{255, 256, 65535, 65536, 3 << 20} {
		p.Do("publish", zmqtest.Args{"size": size})
	}
	c.wait(t, "5 messages", func() bool { return c.messages() == 5 })
	for i, size := range []int{255, 256, 65535, 65536, 3 << 20} {
		if got := len(c.frames[i][2]); got != size {
			t.Errorf("message %d has %d bytes, want %d", i, got, size)
		}
	}
}

// TestCase20_Restarts lets a publisher come back again and again on its port: every life is heard, within 2 s, over one
// connection. Goroutines are checked by goleak.
func TestCase20_Restarts(t *testing.T) {
	p := zmqtest.Start(t)
	at := p.Do("open", nil)
	c := newCollector()
	o := fast(endpoint(t, at.Pub))
	run(t, func(ctx context.Context) error { return zmq.Dial(ctx, o, c) })
	const lives = 100
	for life := range lives {
		if life > 0 {
			p.Do("open", zmqtest.Args{"pub": at.Pub})
		}
		opened := time.Now()
		p.Do("wait", nil)
		p.Do("publish", nil)
		c.wait(t, fmt.Sprint("life ", life), func() bool { return c.messages() == life+1 })
		if d := time.Since(opened); d > 2*time.Second {
			t.Errorf("life %d was heard after %v", life, d)
		}
		if a := p.Do("state", nil); a.Subs != 1 {
			t.Errorf("life %d has %d connections", life, a.Subs)
		}
	}
	if len(c.up) != 1 {
		t.Errorf("%d connections are up", len(c.up))
	}
}

// TestDefaultBackoffIsUnderTwoSeconds: case 20 wants a publisher heard within 2 s of its port being open.
func TestDefaultBackoffIsUnderTwoSeconds(t *testing.T) {
	if zmq.DefaultBackoffMax >= 2*time.Second {
		t.Errorf("%v", zmq.DefaultBackoffMax)
	}
}

// TestHeartbeats: a publisher that sends PINGs and drops who does not answer keeps us.
func TestHeartbeats(t *testing.T) {
	p := zmqtest.Start(t)
	at := p.Do("open", zmqtest.Args{"heartbeat": 400})
	c := newCollector()
	o := fast(endpoint(t, at.Pub))
	o.Idle = time.Minute // only the publisher's heartbeats
	run(t, func(ctx context.Context) error { return zmq.Dial(ctx, o, c) })
	p.Do("wait", nil)
	for range 5 { // 2 s in all: an unanswered heartbeat would be noticed after 0.8 s
		p.Do("publish", nil)
		time.Sleep(400 * time.Millisecond) // the passing of time is what is tested
	}
	c.wait(t, "5 messages", func() bool { return c.messages() == 5 })
	if len(c.downs) > 0 {
		t.Errorf("connection was lost: %v", c.downs)
	}
}

// TestQuietPublisherIsKept: we keep a publisher that has nothing to say and answers our heartbeats.
func TestQuietPublisherIsKept(t *testing.T) {
	p := zmqtest.Start(t)
	at := p.Do("open", zmqtest.Args{"plain": true})
	c := newCollector()
	o := fast(endpoint(t, at.Pub))
	o.Idle = 150 * time.Millisecond
	run(t, func(ctx context.Context) error { return zmq.Dial(ctx, o, c) })
	c.wait(t, "connection", func() bool { return len(c.up) == 1 })
	time.Sleep(1500 * time.Millisecond) // ten idle times: the passing of time is what is tested
	c.locked(func() {
		if len(c.downs) > 0 || len(c.up) != 1 {
			t.Errorf("up %v, downs %v", c.up, c.downs)
		}
	})
}

// TestCase116_SilentDeath: a publisher that vanishes without closing is noticed and dialled again.
func TestCase116_SilentDeath(t *testing.T) {
	p := zmqtest.Start(t)
	at := p.Do("open", nil)
	c := newCollector()
	run(t, func(ctx context.Context) error { return zmq.Dial(ctx, fast(endpoint(t, at.Pub)), c) })
	p.Do("wait", nil)
	p.Freeze()
	c.wait(t, "loss", func() bool { return len(c.downs) == 1 })
	if !errors.Is(c.downs[0], zmq.ErrSilent) {
		t.Errorf("lost by %v, want %v", c.downs[0], zmq.ErrSilent)
	}
	p.Thaw()
	c.wait(t, "connection", func() bool { return len(c.up) == 1 })
	p.Do("wait", nil)
	p.Do("publish", nil)
	c.wait(t, "message", func() bool { return c.messages() == 1 })
}

// TestListenMany lets several publishers dial in, also where a port is free only after a while.
func TestListenMany(t *testing.T) {
	port := freePort(t)
	taken, err := net.Listen("tcp", ":"+port)
	if err != nil {
		t.Fatal(err)
	}
	c := newCollector()
	run(t, func(ctx context.Context) error { return zmq.Listen(ctx, fast(endpoint(t, "tcp://*:"+port)), c) })
	c.wait(t, "failure to bind", func() bool { return len(c.failed) > 0 })
	taken.Close()
	var ps []*zmqtest.Publisher
	for i := range 3 {
		p := zmqtest.Start(t)
		p.Do("open", zmqtest.Args{"pub": "tcp://127.0.0.1:" + port, "connect": true, "topic": fmt.Sprint("t", i)})
		ps = append(ps, p)
	}
	for _, p := range ps {
		p.Do("wait", nil)
		p.Do("publish", zmqtest.Args{"n": 100})
	}
	c.wait(t, "300 messages", func() bool { return c.messages() == 300 })
	ps[0].Kill()
	c.wait(t, "loss", func() bool { return len(c.up) == 2 })
	ps[1].Do("publish", nil)
	c.wait(t, "301 messages", func() bool { return c.messages() == 301 })
}

func TestListenRefusesOneTooMany(t *testing.T) {
	port := freePort(t)
	c := newCollector()
	o := fast(endpoint(t, "tcp://*:"+port))
	o.MaxConns = 1
	run(t, func(ctx context.Context) error { return zmq.Listen(ctx, o, c) })
	p := zmqtest.Start(t)
	p.Do("open", zmqtest.Args{"pub": "tcp://127.0.0.1:" + port, "connect": true})
	p.Do("wait", nil)
	if !zmqtest.Strike(t, "tcp", "127.0.0.1:"+port, zmqtest.Attack{}, 5*time.Second) {
		t.Error("second connection stays open")
	}
	c.wait(t, "refusal", func() bool {
		return slices.ContainsFunc(c.failed, func(err error) bool { return errors.Is(err, zmq.ErrFull) })
	})
	p.Do("publish", nil)
	c.wait(t, "message", func() bool { return c.messages() == 1 })
}

func TestOptionsAreValidated(t *testing.T) {
	o := zmq.Options{MaxFrame: -1, Idle: -1, MaxConns: -1, BackoffMin: time.Second, BackoffMax: time.Millisecond}
	err := zmq.Dial(t.Context(), o, newCollector())
	if !errors.Is(err, zmq.ErrOptions) {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{"endpoint", "limits", "idle", "connections", "backoff"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %s", err, part)
		}
	}
	bound := zmq.Options{Endpoint: events.Endpoint{Network: "tcp", Address: ":1", Bind: true}}
	if err := zmq.Dial(t.Context(), bound, newCollector()); !errors.Is(err, zmq.ErrOptions) {
		t.Errorf("got %v", err)
	}
}
