package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// maxAnswer bounds the answer that a lean caller reads.
const maxAnswer = 64 << 20

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
	r        *bufio.Reader
	body     []byte // of the last answer
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
	if c.conn == nil {
		conn, err := c.post.Dial(ctx)
		if err != nil {
			return err
		}
		c.conn, c.r = conn, bufio.NewReaderSize(conn, 64<<10)
	}
	i := (c.first + n) % len(c.messages)
	status, keep, err := c.exchange(c.messages[i])
	if err != nil || !keep {
		c.Close()
	}
	switch {
	case err != nil:
		return err
	case status != "200":
		return refusalOfBody(c.body, status)
	}
	return c.post.Check(i, c.body, wholly(n, len(c.messages)))
}

// callTimeout is how long a call may take before it counts as an error.
const callTimeout = 20 * time.Second

// exchange sends a message and reads the answer. keep says whether the connection may be used again.
func (c *LeanCaller) exchange(message []byte) (status string, keep bool, err error) {
	if err := c.conn.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		return "", false, err
	}
	_, writeErr := c.conn.Write(message)
	// A server that refuses before it has read the body answers all the same.
	status, keep, err = c.read()
	if err != nil && writeErr != nil {
		err = writeErr
	}
	return status, keep && writeErr == nil, err
}

// read reads one answer into body.
func (c *LeanCaller) read() (status string, keep bool, err error) {
	line, err := c.line()
	if err != nil {
		return "", false, err
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return "", false, fmt.Errorf("no HTTP/1.1 answer: %.40q", line)
	}
	status, keep = "200", true
	if string(line[9:12]) != "200" {
		status = string(line[9:12])
	}
	length, chunked := -1, false
	for {
		line, err := c.line()
		if err != nil {
			return "", false, err
		}
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil || length < 0 || length > maxAnswer {
				return "", false, fmt.Errorf("bad length %q", value)
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = bytes.EqualFold(value, []byte("chunked"))
		case bytes.EqualFold(name, []byte("Connection")) && bytes.EqualFold(value, []byte("close")):
			keep = false
		}
	}
	c.body = c.body[:0]
	if chunked {
		return status, keep, c.chunks()
	}
	if length < 0 {
		return "", false, fmt.Errorf("an answer without a length")
	}
	return status, keep, c.more(length)
}

// line is the next line without its end.
func (c *LeanCaller) line() ([]byte, error) {
	line, err := c.r.ReadSlice('\n')
	return bytes.TrimRight(line, "\r\n"), err
}

// more adds n bytes to body.
func (c *LeanCaller) more(n int) error {
	at := len(c.body)
	if at+n > maxAnswer {
		return fmt.Errorf("an answer of over %d bytes", maxAnswer)
	}
	if cap(c.body) < at+n {
		c.body = append(make([]byte, 0, 2*(at+n)), c.body...)
	}
	c.body = c.body[:at+n]
	_, err := io.ReadFull(c.r, c.body[at:])
	return err
}

// chunks reads a chunked body; trailers are skipped.
func (c *LeanCaller) chunks() error {
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(string(line), 16, 31)
		if err != nil {
			return fmt.Errorf("bad chunk %.40q", line)
		}
		if n == 0 {
			for {
				if line, err := c.line(); err != nil || len(line) == 0 {
					return err
				}
			}
		}
		if err := c.more(int(n)); err != nil {
			return err
		}
		if _, err := c.r.Discard(2); err != nil {
			return err
		}
	}
}
