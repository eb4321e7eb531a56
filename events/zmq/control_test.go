package zmq_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/zmq"
)

// Invariant 6: an address that Control refuses is not dialled, by the live stream and by a replay, though a name leads there.
func TestControl(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan error, 1)
	go func() { // ends when l is closed, waited for below
		c, err := l.Accept()
		if err == nil {
			c.Close()
		}
		accepted <- err
	}()
	refused := errors.New("refused")
	control := func(_, address string, _ syscall.RawConn) error {
		if _, _, err := net.SplitHostPort(address); err != nil {
			t.Error(err)
		}
		return refused
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	o := fast(endpoint(t, "tcp://localhost:"+port))
	o.Control = control
	c := newCollector()
	run(t, func(ctx context.Context) error { return zmq.Dial(ctx, o, c) })
	c.wait(t, "two refusals", func() bool { return len(c.failed) >= 2 })
	c.locked(func() {
		if !errors.Is(c.failed[0], refused) || !errors.Is(c.failed[0], zmq.ErrConnect) {
			t.Error(c.failed[0])
		}
	})
	_, err = zmq.Replay(t.Context(), zmq.ReplayOptions{Endpoint: o.Endpoint, Control: control}, func(events.Message) error { return nil })
	if !errors.Is(err, refused) {
		t.Error(err)
	}
	l.Close()
	if err := <-accepted; err == nil {
		t.Error("a connection was made")
	}
}
