package zmq_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events/zmq"
	"github.com/kvscout/kvscout/events/zmq/zmqtest"
)

// unfinished are handshakes that no deadline but that of the whole handshake ends.
func unfinished() []zmqtest.Attack {
	hello := zmqtest.Hello("PUB")
	return []zmqtest.Attack{
		{Name: "silent"},
		{Name: "half a greeting", Bytes: hello[:20]},
		{Name: "greeting without READY", Bytes: hello[:64]},
		zmqtest.Trickle(),
	}
}

// late checks that all these errors tell of handshakes cut at their deadline.
func late(t *testing.T, failed []error) {
	t.Helper()
	for _, err := range failed {
		if !errors.Is(err, zmq.ErrHandshake) || !errors.Is(err, zmq.ErrSilent) {
			t.Errorf("got %v, want %v: %v", err, zmq.ErrHandshake, zmq.ErrSilent)
		}
	}
}

// TestRule17_HandshakeDeadline_PeersThatDialUs: whoever dials a bound port and does not finish its handshake, also one that
// goes on sending, is cut at the deadline and told of, once each; a publisher beside them is heard before, during and after.
func TestRule17_HandshakeDeadline_PeersThatDialUs(t *testing.T) {
	port := freePort(t)
	c := newCollector()
	o := fast(endpoint(t, "tcp://*:"+port))
	o.Idle = time.Minute // not what ends them
	run(t, func(ctx context.Context) error { return zmq.Listen(ctx, o, c) })
	p := zmqtest.Start(t)
	p.Do("open", zmqtest.Args{"pub": "tcp://127.0.0.1:" + port, "connect": true})
	p.Do("wait", nil)
	p.Do("publish", zmqtest.Args{"n": 100})
	var wg sync.WaitGroup
	for _, a := range unfinished() {
		wg.Go(func() { // ends with its connection, or after 20 s
			began := time.Now()
			if !zmqtest.Strike(t, "tcp", "127.0.0.1:"+port, a, 20*time.Second) {
				t.Errorf("%s: connection stays open", a.Name)
			}
			if d := time.Since(began); d < o.Handshake {
				t.Errorf("%s: cut after %v, before the deadline of %v", a.Name, d, o.Handshake)
			}
		})
	}
	p.Do("publish", zmqtest.Args{"n": 100})
	c.wait(t, "200 messages", func() bool { return c.messages() == 200 })
	wg.Wait()
	c.wait(t, "failures", func() bool { return len(c.failed) >= len(unfinished()) })
	p.Do("publish", nil)
	c.wait(t, "201 messages", func() bool { return c.messages() == 201 })
	c.locked(func() {
		if len(c.failed) != len(unfinished()) || len(c.up) != 1 || len(c.downs) != 0 {
			t.Errorf("failed %v, up %v, downs %v", c.failed, c.up, c.downs)
		}
		late(t, c.failed)
	})
}

// TestRule17_HandshakeDeadline_PeersThatWeDial: the same of one that we dial. It is dialled again, and another publisher is
// heard meanwhile.
func TestRule17_HandshakeDeadline_PeersThatWeDial(t *testing.T) {
	for _, a := range unfinished() {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			p := zmqtest.Start(t)
			at := p.Do("open", nil)
			well, c := newCollector(), newCollector()
			run(t, func(ctx context.Context) error { return zmq.Dial(ctx, fast(endpoint(t, at.Pub)), well) })
			p.Do("wait", nil)
			o := fast(stage(t, a))
			o.Idle = time.Minute
			began := time.Now()
			run(t, func(ctx context.Context) error { return zmq.Dial(ctx, o, c) })
			p.Do("publish", nil)
			c.wait(t, "two failures", func() bool { return len(c.failed) >= 2 })
			if d := time.Since(began); d < 2*o.Handshake {
				t.Errorf("two were cut after %v, the deadline is %v", d, o.Handshake)
			}
			p.Do("publish", nil)
			well.wait(t, "2 messages", func() bool { return well.messages() == 2 })
			c.locked(func() {
				late(t, c.failed)
				if len(c.up)+len(c.downs) > 0 {
					t.Errorf("up %v, downs %v", c.up, c.downs)
				}
			})
		})
	}
}
