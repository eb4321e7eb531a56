package bench

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"time"
)

// Post is requests of one kind over HTTP/1.1: ready-made bodies for one path, and what tells a right answer.
type Post struct {
	// Dial opens a connection.
	Dial func(context.Context) (net.Conn, error)
	// Path and ContentType of every request. Header is further lines, each ended with CR LF.
	Path, ContentType, Header string
	// Bodies are sent in turn.
	Bodies [][]byte
	// Check looks at the answer to body i, wholly or in short. It must not keep it.
	Check func(i int, answer []byte, wholly bool) error
}

// Messages are the whole requests, head and body, for callers to share.
func (p *Post) Messages() [][]byte {
	var out [][]byte
	for _, body := range p.Bodies {
		head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: kvscout\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n",
			p.Path, p.ContentType, p.Header, len(body))
		out = append(out, append([]byte(head), body...))
	}
	return out
}

// LeanCaller sends requests on a connection of its own, and keeps it.
type LeanCaller struct {
	post     *Post
	messages [][]byte
	first    int      // message of call 0
	conn     net.Conn // nil: none is open
	answer   answer   // the last one
}

// NewLean makes a caller; messages are those of post, of which it sends number first first.
func NewLean(post *Post, messages [][]byte, first int) *LeanCaller {
	return &LeanCaller{post: post, messages: messages, first: first}
}

// Close closes the connection.
func (c *LeanCaller) Close() error {
	if c.conn == nil {
		return nil
	}
	err := c.conn.Close()
	c.conn = nil
	return err
}

// Call makes the n-th call. After an error of the connection the next call opens another.
func (c *LeanCaller) Call(ctx context.Context, n int) error {
	if err := c.dial(ctx); err != nil {
		return err
	}
	i := c.message(n)
	err := c.exchange(c.messages[i])
	if err != nil || !c.answer.keep {
		c.Close()
	}
	if err != nil {
		return err
	}
	return c.check(i, wholly(n, len(c.messages)))
}

// dial opens a connection if none is open.
func (c *LeanCaller) dial(ctx context.Context) (err error) {
	if c.conn == nil {
		c.conn, err = c.post.Dial(ctx)
	}
	return err
}

// message is which one call n sends.
func (c *LeanCaller) message(n int) int { return (c.first + n) % len(c.messages) }

// check looks at the answer to message i.
func (c *LeanCaller) check(i int, wholly bool) error {
	if c.answer.status != "200" {
		return refusalOfBody(c.answer.body, c.answer.status)
	}
	return c.post.Check(i, c.answer.body, wholly)
}

// callTimeout is how long a call may take before it counts as an error.
const callTimeout = 20 * time.Second

// exchange sends a message and reads the answer.
func (c *LeanCaller) exchange(message []byte) error {
	if err := c.conn.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		return err
	}
	_, writeErr := c.conn.Write(message)
	// A server that refuses before it has read the body answers all the same.
	c.answer.begin()
	for done := false; !done; {
		n, err := c.conn.Read(c.answer.room())
		if n > 0 { // what failed then fails again
			done, err = c.answer.took(n)
		}
		if err != nil {
			return cmp.Or(writeErr, err)
		}
	}
	c.answer.keep = c.answer.keep && writeErr == nil
	return nil
}
