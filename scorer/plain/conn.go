package plain

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// idleRoom is what a connection keeps that has been without a request for a while.
	idleRoom = 4 << 10
	// warmRoom is the most that it keeps until then, and that a body is given for its length alone.
	warmRoom = 128 << 10
	// warmMost bounds what all connections keep so.
	warmMost = 32 << 20
	// warmTime is that while, at least half of it.
	warmTime = 2 * time.Second
)

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// conn is one connection. But for mu it belongs to its goroutine.
type conn struct {
	net.Conn
	server *Server
	remote string

	in       *[]byte // of Options.Buffers; nil if there is nothing in it
	from, to int     // what was read and is used by nobody yet is (*in)[from:to]

	// until is the deadline of reads; zero if it is not known.
	until time.Time

	scratch [Reserve]byte // for heads of answers

	mu   sync.Mutex // guards idle, and deadlines of reads while it is set
	idle bool       // it waits for a request, of which nothing has come
}

// serve answers one request after the other.
func (c *conn) serve() {
	defer c.drop()
	for {
		call := &Call{conn: c}
		switch c.head(&call.Head) {
		case isPlain:
			if !call.answer() {
				_ = c.Conn.Close() // what could be told is told
				return
			}
		case isOther:
			if !c.handOver() {
				_ = c.Conn.Close()
			}
			return
		default:
			_ = c.Conn.Close()
			return
		}
	}
}

// handOver leaves the connection to whoever knows more.
func (c *conn) handOver() bool {
	rest := append([]byte(nil), (*c.in)[c.from:c.to]...)
	return c.SetDeadline(time.Time{}) == nil && c.server.opts.Else(c.Conn, rest)
}

// head reads the head of the next request. It is unfinished if none comes.
func (c *conn) head(h *Head) verdict {
	var until time.Time // of this head
	for {
		if c.from == c.to {
			if !c.wait() {
				return unfinished
			}
		}
		n, v := c.server.forms.parse((*c.in)[c.from:c.to], h)
		if v != unfinished {
			c.from += n
			return v
		}
		if until.IsZero() {
			until = time.Now().Add(c.server.opts.HeadTime)
		}
		c.room(maxHead)
		if c.read(until) != nil {
			return unfinished
		}
	}
}

// wait waits for a request of which nothing was read yet.
func (c *conn) wait() bool {
	c.from, c.to = 0, 0
	if c.in != nil && cap(*c.in) > idleRoom {
		if err := c.warm(); !errors.Is(err, os.ErrDeadlineExceeded) {
			return err == nil
		}
		c.drop()
	}
	c.room(idleRoom)
	return c.first(c.server.opts.IdleTime) == nil
}

// warm is first for a short while, in the memory of the request before; for none if that is more than may be kept.
func (c *conn) warm() error {
	room := int64(cap(*c.in))
	if room > warmRoom {
		return os.ErrDeadlineExceeded
	}
	defer c.server.warm.Add(-room)
	if c.server.warm.Add(room) > warmMost {
		return os.ErrDeadlineExceeded
	}
	return c.first(warmTime)
}

var errDraining = errors.New("server shuts down")

// first reads the first bytes of a request, which may come within this time, and must within half of it at least.
func (c *conn) first(within time.Duration) error {
	if err := c.rest(within); err != nil {
		return err
	}
	n, err := c.Conn.Read((*c.in)[:cap(*c.in)])
	c.mu.Lock()
	c.idle = false
	c.mu.Unlock()
	if c.server.draining.Load() {
		c.until = time.Time{} // wake may have changed it
	}
	if c.to = n; n > 0 {
		return nil // an error comes again
	}
	return err
}

// rest makes the connection idle. A deadline that leaves enough of the time stays as it is.
func (c *conn) rest(within time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server.draining.Load() {
		return errDraining
	}
	c.idle = true
	now := time.Now()
	if left := c.until.Sub(now); left >= within/2 && left <= within {
		return nil
	}
	c.until = now.Add(within)
	return c.SetReadDeadline(c.until)
}

// wake ends the wait of an idle connection, once the server drains.
func (c *conn) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle {
		_ = c.SetReadDeadline(past) // fails only for a connection that is closed
	}
}

// read reads more, until a time. There must be room. A deadline that is sooner stays until it has passed.
func (c *conn) read(until time.Time) error {
	for {
		if c.until.IsZero() || c.until.After(until) {
			if err := c.SetReadDeadline(until); err != nil {
				return err
			}
			c.until = until
		}
		n, err := c.Conn.Read((*c.in)[c.to:cap(*c.in)])
		c.to += n
		switch {
		case n > 0:
			return nil // an error comes again
		case !errors.Is(err, os.ErrDeadlineExceeded) || !c.until.Before(until):
			return err
		}
		c.until = time.Time{}
	}
}

// unread takes what was read before.
func (c *conn) unread(b []byte) {
	if len(b) > 0 {
		c.move(len(b))
		c.to = copy(*c.in, b)
	}
}

// room makes room for at least one byte more of something that is n bytes from c.from on, and for all of it if it is not
// large or much of it has come.
func (c *conn) room(n int) {
	if c.in != nil && c.from+n <= cap(*c.in) {
		return
	}
	have := c.to - c.from
	if c.in != nil && c.to < cap(*c.in) && n > max(warmRoom, cap(*c.in)) {
		return // first what fits
	}
	size := min(n, max(warmRoom, 2*have))
	if c.in != nil && size <= cap(*c.in) && c.from > 0 {
		copy(*c.in, (*c.in)[c.from:c.to])
		c.from, c.to = 0, have
		return
	}
	c.move(size)
}

// move takes a buffer of this size at least for what was read.
func (c *conn) move(size int) {
	made := c.server.opts.Buffers.Get(size)
	*made = (*made)[:cap(*made)]
	have := 0
	if c.in != nil {
		have = copy(*made, (*c.in)[c.from:c.to])
		c.server.opts.Buffers.Put(c.in)
	}
	c.in, c.from, c.to = made, 0, have
}

// drop gives the memory back.
func (c *conn) drop() {
	if c.in != nil {
		c.server.opts.Buffers.Put(c.in)
		c.in, c.from, c.to = nil, 0, 0
	}
}
