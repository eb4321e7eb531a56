package zmq

import (
	"context"
	"fmt"
	"net"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"
)

// link is one open connection, used by one goroutine.
type link struct {
	g *guard
	z *zmq4.Conn
}

// dial connects to addr, if it may, and opens a link as a client.
func dial(ctx context.Context, network, addr string, typ zmq4.SocketType, lim limits) (*link, error) {
	d := net.Dialer{Timeout: lim.handshake}
	if network != "unix" {
		d.Control = lim.control
	}
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConnect, err)
	}
	return open(ctx, c, typ, false, lim)
}

// open makes the handshake over c and owns c from then on: on failure it is closed. The end of ctx closes a link under
// way, here and later, until close is called.
func open(ctx context.Context, c net.Conn, typ zmq4.SocketType, server bool, lim limits) (l *link, err error) {
	stop := context.AfterFunc(ctx, func() { c.Close() }) // stopped below; the link's user sets its own
	defer stop()
	g := newGuard(c, lim)
	defer func() {
		if r := recover(); r != nil { // zmq4 slices a malformed READY out of bounds
			err = fmt.Errorf("%w: %v", ErrProtocol, r)
		}
		if err != nil {
			c.Close()
			l, err = nil, fmt.Errorf("%w: %w", ErrHandshake, err)
		}
	}()
	z, err := zmq4.Open(g, null.Security(), typ, nil, server, nil)
	if err != nil {
		return nil, err
	}
	g.opened = true
	return &link{g: g, z: z}, nil
}

// send writes one message.
func (l *link) send(frames ...[]byte) error { return l.z.SendMsg(zmq4.NewMsgFrom(frames...)) }

// subscribe asks for topics in the form of ZMTP 3.0, which zmq4 greets with.
func (l *link) subscribe(topics []string) error {
	for _, t := range topics {
		if err := l.send(append([]byte{1}, t...)); err != nil {
			return fmt.Errorf("subscribe to %q: %w", t, err)
		}
	}
	return nil
}

// recv reads one message, whose frames are the caller's.
func (l *link) recv() (frames [][]byte, err error) { return l.g.message() }

// close frees the connection.
func (l *link) close() { l.g.Close() }

// deliver subscribes, tells h of connection id and hands it messages until the connection ends. It reports whether the
// connection was of use.
func (l *link) deliver(ctx context.Context, id uint64, topics []string, h Handler) (useful bool, err error) {
	stop := context.AfterFunc(ctx, l.close) // ends the blocking read; stopped when deliver returns
	defer stop()
	defer l.close()
	if err := l.subscribe(topics); err != nil {
		err = fmt.Errorf("%w: %w", ErrConnect, err)
		h.Disconnected(0, err)
		return false, err
	}
	h.Connected(id, remoteOf(l.g))
	for {
		frames, err := l.recv()
		if err != nil {
			h.Disconnected(id, err)
			return useful, err
		}
		useful = true
		h.Message(id, frames)
	}
}

func remoteOf(c net.Conn) string {
	if a := c.RemoteAddr(); a != nil {
		return a.String()
	}
	return ""
}
