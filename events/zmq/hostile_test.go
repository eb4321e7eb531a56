package zmq_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/zmq"
	"github.com/kvscout/kvscout/events/zmq/zmqtest"
)

// TestRule17_HostilePublishersThatDialUs: every attack ends its own connection, quickly and without memory, and a real
// publisher behind them all is heard in full.
func TestRule17_HostilePublishersThatDialUs(t *testing.T) {
	port := freePort(t)
	c := newCollector()
	run(t, func(ctx context.Context) error { return zmq.Listen(ctx, fast(endpoint(t, "tcp://*:"+port)), c) })
	p := zmqtest.Start(t)
	p.Do("open", zmqtest.Args{"pub": "tcp://127.0.0.1:" + port, "connect": true})
	p.Do("wait", nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var wg sync.WaitGroup
	for _, a := range zmqtest.Attacks("PUB") {
		wg.Go(func() { // ends with the connection, waited for below
			if !zmqtest.Strike(t, "tcp", "127.0.0.1:"+port, a, 5*time.Second) {
				t.Errorf("%s: connection stays open", a.Name)
			}
		})
	}
	p.Do("publish", zmqtest.Args{"n": 1000})
	wg.Wait()
	c.wait(t, "messages", func() bool { return c.messages() == 1000 })
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
		t.Errorf("%d bytes were allocated", grown)
	}
	c.locked(func() {
		if len(c.up) != 1 {
			t.Errorf("%d connections are up, want the publisher's", len(c.up))
		}
	})
}

// TestRule17_HostilePublishersThatWeDial plays the attacks from the other side.
func TestRule17_HostilePublishersThatWeDial(t *testing.T) {
	for _, a := range zmqtest.Attacks("PUB") {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			c := newCollector()
			e := stage(t, a)
			run(t, func(ctx context.Context) error { return zmq.Dial(ctx, fast(e), c) })
			c.wait(t, "two ends", func() bool { return len(c.failed)+len(c.downs) >= 2 })
			for _, m := range c.frames {
				t.Errorf("delivered %q", m)
			}
		})
	}
}

// TestRule17_HostileReplay: a replay from a hostile peer ends with an error.
func TestRule17_HostileReplay(t *testing.T) {
	for _, a := range zmqtest.Attacks("ROUTER") {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			o := zmq.ReplayOptions{Endpoint: stage(t, a), Handshake: 300 * time.Millisecond, IdleTimeout: 300 * time.Millisecond}
			r, err := zmq.Replay(t.Context(), o, func(m events.Message) error {
				t.Errorf("got %v", m)
				return nil
			})
			if err == nil || r.Ended {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
}

// stage is the endpoint of zmqtest.Stage.
func stage(t *testing.T, a zmqtest.Attack) events.Endpoint {
	t.Helper()
	return events.Endpoint{Network: "tcp", Address: zmqtest.Stage(t, a)}
}

// peer is a publisher made of bytes: it greets, waits for the subscription and writes b.
func peer(t *testing.T, b []byte) events.Endpoint {
	return stage(t, zmqtest.Attack{Name: t.Name(), Bytes: append(zmqtest.Hello("PUB"), b...)})
}

// TestCommandsBetweenFrames: libzmq may put a heartbeat between the frames of a message. It is answered with its
// context (ZMTP 3.1, RFC 37) and the message arrives whole.
func TestCommandsBetweenFrames(t *testing.T) {
	var b []byte
	b = append(b, 1, 1, 'a')
	b = append(b, "\x04\x0a\x04PING\x00\x00ctx"...)
	b = append(b, "\x04\x07\x07UNKNOWN"[:2]...)
	b = append(b, "\x06UNKNOW"...)
	b = append(b, 1, 0, 0, 1, 'b')
	c := newCollector()
	e := peer(t, b)
	run(t, func(ctx context.Context) error { return zmq.Dial(ctx, fast(e), c) })
	c.wait(t, "message", func() bool { return c.messages() >= 1 })
	got := c.frames[0]
	if len(got) != 3 || string(got[0]) != "a" || len(got[1]) != 0 || string(got[2]) != "b" {
		t.Errorf("got %q", got)
	}
}

// TestPongEchoesContext reads the answer to a PING from the wire.
func TestPongEchoesContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := newCollector()
	e := events.Endpoint{Network: "tcp", Address: l.Addr().String()}
	run(t, func(ctx context.Context) error { return zmq.Dial(ctx, fast(e), c) })
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(append(zmqtest.Hello("PUB"), "\x04\x0a\x04PING\x00\x00ctx"...)); err != nil {
		t.Fatal(err)
	}
	want := "\x04\x08\x04PONGctx"
	var got []byte
	buf := make([]byte, 256)
	for len(got) < len(want) || string(got[len(got)-len(want):]) != want {
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatalf("%v after %q", err, got)
		}
		got = append(got, buf[:n]...)
	}
}

func TestLimits(t *testing.T) {
	two := []byte{1, 4, 'a', 'b', 'c', 'd', 0, 4, 'e', 'f', 'g', 'h'}
	for _, tc := range []struct {
		name  string
		set   func(*zmq.Options)
		bytes []byte
		want  error // nil: the message arrives
	}{
		{"all at their limit", func(o *zmq.Options) { o.MaxFrame, o.MaxFrames, o.MaxMessage = 4, 2, 8 }, two, nil},
		{"frame", func(o *zmq.Options) { o.MaxFrame = 3 }, two, zmq.ErrFrameTooLarge},
		{"frames", func(o *zmq.Options) { o.MaxFrames = 1 }, two, zmq.ErrMessageTooLarge},
		{"bytes", func(o *zmq.Options) { o.MaxMessage = 7 }, two, zmq.ErrMessageTooLarge},
		{"flags", func(*zmq.Options) {}, []byte{8, 0}, zmq.ErrProtocol},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCollector()
			o := fast(peer(t, tc.bytes))
			tc.set(&o)
			run(t, func(ctx context.Context) error { return zmq.Dial(ctx, o, c) })
			if tc.want == nil {
				c.wait(t, "message", func() bool { return c.messages() >= 1 })
				return
			}
			c.wait(t, "end", func() bool { return len(c.downs) >= 1 })
			if !errors.Is(c.downs[0], tc.want) {
				t.Errorf("ended by %v, want %v", c.downs[0], tc.want)
			}
		})
	}
}
