package access

import (
	"net"
	"sync"
)

// Listener counts the connections of l, and closes those over the bound before anything is read of them.
func (g *Guard) Listener(l net.Listener) net.Listener { return &listener{l, g} }

type listener struct {
	net.Listener
	guard *Guard
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	open, most := &l.guard.crowd.connections, int64(l.guard.opts.Limits.Connections)
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if n := open.Add(1); most <= 0 || n <= most {
			return &counted{Conn: c, left: sync.OnceFunc(func() { open.Add(-1) })}, nil
		}
		open.Add(-1)
		l.guard.connectionsRefused.Add(1)
		_ = c.Close() // there is nothing that it could be told before it has said what it speaks
	}
}

// counted is a connection that counts until it is closed.
type counted struct {
	net.Conn
	left func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	defer c.left()
	return c.Conn.Close()
}
