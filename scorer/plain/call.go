package plain

import (
	"net"
	"net/http"
	"strconv"
	"time"
)

const (
	// Reserve is how many bytes an answer has before its body, for its head.
	Reserve = 512
	// answerRoom is room for the usual answer.
	answerRoom = 16 << 10
	// Of a call that was answered without its body so much of that is thrown away, in so long a time, to keep the connection.
	discardMax  = 16 << 20
	discardTime = 5 * time.Second
)

// Call is a request under way. It is the context of whatever is done for it.
type Call struct {
	Head
	waiting
	conn *conn

	cut    time.Time // when its answer must have been read
	rest   int       // of the body, that is not read yet
	broken bool      // the connection is
	sent   bool      // an answer was written
	keep   bool      // the connection goes on
	out    *[]byte   // of Options.Buffers; nil before Room
}

// Field is a header of an answer.
type Field struct{ Name, Value string }

// Conn is the connection that the call came by, for what is known of it.
func (c *Call) Conn() net.Conn { return c.conn.Conn }

// Remote is the caller's address.
func (c *Call) Remote() string { return c.conn.remote }

// answer has the call answered. It says whether the connection goes on.
func (c *Call) answer() bool {
	opts := &c.conn.server.opts
	now := time.Now()
	c.cut = now.Add(opts.CallTime)
	c.deadline = c.cut
	if c.Timeout > 0 && c.Timeout < opts.CallTime {
		c.deadline = now.Add(c.Timeout)
	}
	c.rest = c.Length
	opts.Answer(c)
	c.end()
	if c.watched != nil {
		c.conn.until, c.conn.from, c.conn.to = time.Time{}, 0, 0
		c.conn.to = copy(*c.conn.in, c.early)
	}
	if c.out != nil {
		opts.Buffers.Put(c.out)
	}
	return c.sent && c.keep && c.discard()
}

// Body reads the body. It is valid until the call is answered. It errs with the context's error if the call has ended before
// all of it came, or with what broke the connection.
func (c *Call) Body() ([]byte, error) {
	for c.conn.to-c.conn.from < c.Length {
		c.conn.room(c.Length)
		if err := c.conn.read(c.deadline); err != nil {
			if ended := c.Err(); ended != nil {
				return nil, ended
			}
			c.broken = true
			return nil, err
		}
	}
	from := c.conn.from
	c.conn.from += c.Length
	c.rest = 0
	if c.conn.from == c.conn.to {
		c.watch(c.conn)
	}
	return (*c.conn.in)[from:c.conn.from], nil
}

// Room is where an answer is to be appended: its body begins behind Reserve bytes.
func (c *Call) Room() []byte {
	if c.out == nil {
		c.out = c.conn.server.opts.Buffers.Get(answerRoom)
	}
	return (*c.out)[:Reserve]
}

// Send answers with what Room returned, or what became of it. It errs if the answer did not go out.
func (c *Call) Send(status int, answer []byte, fields ...Field) error {
	c.sent, c.keep = true, !c.broken && !c.conn.server.draining.Load()
	if c.out != nil {
		*c.out = answer
	}
	head := c.head(c.conn.scratch[:0], status, len(answer)-Reserve, fields)
	until := c.cut
	if status != http.StatusOK {
		until = time.Now().Add(discardTime) // one that is too late is told so
	}
	err := c.conn.SetWriteDeadline(until)
	if at := Reserve - len(head); err == nil && at >= 0 {
		copy(answer[at:], head)
		_, err = c.conn.Write(answer[at:])
	} else if err == nil {
		_, err = c.conn.Write(append(head, answer[Reserve:]...))
	}
	if err != nil {
		c.keep = false
	}
	return err
}

// head appends the head of an answer.
func (c *Call) head(b []byte, status, length int, fields []Field) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = append(b, http.StatusText(status)...)
	for _, f := range fields {
		b = append(append(append(append(b, "\r\n"...), f.Name...), ": "...), f.Value...)
	}
	b = append(b, "\r\nDate: "...)
	b = time.Now().UTC().AppendFormat(b, http.TimeFormat)
	if !c.keep {
		b = append(b, "\r\nConnection: close"...)
	}
	b = append(b, "\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(length), 10)
	return append(b, "\r\n\r\n"...)
}

// discard throws away what was not read of the body. It is false where that is too much.
func (c *Call) discard() bool {
	if c.rest == 0 {
		return true
	}
	if c.rest > discardMax {
		return false
	}
	until := time.Now().Add(discardTime)
	for c.rest > 0 {
		n := min(c.rest, c.conn.to-c.conn.from)
		c.conn.from, c.rest = c.conn.from+n, c.rest-n
		if c.rest == 0 {
			break
		}
		c.conn.from, c.conn.to = 0, 0
		if c.conn.read(until) != nil {
			return false
		}
	}
	return true
}
