package events

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// ErrBuffered is text that is no list of buffered events, or breaks off.
var ErrBuffered = errors.New("not a list of events")

// BufferedReader cuts buffered events out of JSON text as it arrives: a list of them, as one poll returns. Behind Lines
// also lists and bare events one after another, as a file that was appended to holds them. It holds one event at a time.
type BufferedReader struct {
	in *bufio.Reader
	// maxEvent bounds an event, left what may still be read, in bytes.
	maxEvent, left int
	many           bool
	open, done     bool // within a list; behind the only one
	element        []byte
	truncated      bool // the element is over maxEvent
	read           int64
}

// NewBufferedReader reads from in. An event is at most maxEvent bytes, everything together maxAll.
func NewBufferedReader(in io.Reader, maxEvent, maxAll int) *BufferedReader {
	return &BufferedReader{in: bufio.NewReaderSize(in, 64<<10), maxEvent: maxEvent, left: maxAll}
}

// Lines lets several lists and bare events follow each other.
func (r *BufferedReader) Lines() *BufferedReader {
	r.many = true
	return r
}

// Offset is the number of bytes read.
func (r *BufferedReader) Offset() int64 { return r.read }

// Next returns the next event, valid until the next call, or io.EOF behind the last one. An error that wraps ErrTooLarge
// tells of one event that was passed over. Any other one wraps ErrBuffered, or is in's, and nothing can be read after it.
func (r *BufferedReader) Next() ([]byte, error) {
	for {
		c, err := r.solid()
		switch {
		case err == io.EOF && !r.open && (r.done || r.many):
			return nil, io.EOF
		case err == io.EOF:
			return nil, fmt.Errorf("%w: %w", ErrBuffered, io.ErrUnexpectedEOF)
		case err != nil:
			return nil, err
		case !r.open && r.done:
			return nil, fmt.Errorf("%w: %q follows it", ErrBuffered, c)
		case !r.open && c == '[':
			r.open = true
		case !r.open && (c != '{' || !r.many):
			return nil, fmt.Errorf("%w: %q where it begins", ErrBuffered, c)
		case r.open && c == ']':
			r.open, r.done = false, !r.many
		case r.open && c == ',':
		default:
			return r.event(c)
		}
	}
}

func (r *BufferedReader) event(c byte) ([]byte, error) {
	r.element, r.truncated = r.element[:0], false
	if cap(r.element) > keepTokens { // one large event does not hold memory for ever
		r.element = nil
	}
	if err := r.gather(c); err != nil {
		if err == io.EOF {
			err = fmt.Errorf("%w: %w", ErrBuffered, io.ErrUnexpectedEOF)
		}
		return nil, err
	}
	if r.truncated {
		return nil, fmt.Errorf("%w: event over %d bytes", ErrTooLarge, r.maxEvent)
	}
	return r.element, nil
}

// gather reads the element that begins with c: up to where its brackets close, or up to what ends a bare value.
func (r *BufferedReader) gather(c byte) error {
	for depth, quoted := 0, false; ; {
		r.keep(c)
		switch {
		case quoted && c == '\\':
			c, err := r.byte()
			if err != nil {
				return err
			}
			r.keep(c)
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if depth == 0 && !quoted {
			if c == '}' || c == ']' || r.ends() {
				return nil
			}
		}
		var err error
		if c, err = r.byte(); err != nil {
			return err
		}
	}
}

// ends says whether what follows cannot belong to a bare value.
func (r *BufferedReader) ends() bool {
	c, err := r.in.Peek(1)
	return err == nil && (c[0] == ',' || c[0] == ']')
}

func (r *BufferedReader) keep(c byte) {
	if len(r.element) >= r.maxEvent {
		r.truncated = true
		return
	}
	r.element = append(r.element, c)
}

// solid is the next byte that is no white space.
func (r *BufferedReader) solid() (byte, error) {
	for {
		if c, err := r.byte(); err != nil || !space(c) {
			return c, err
		}
	}
}

func space(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func (r *BufferedReader) byte() (byte, error) {
	if r.left--; r.left < 0 {
		return 0, fmt.Errorf("%w: over its bound", ErrBuffered)
	}
	c, err := r.in.ReadByte()
	if err == nil {
		r.read++
	}
	return c, err
}
