package render

import (
	"errors"
	"io"
	"math"
)

const (
	// maxNesting bounds how deep values may lie. Real answers reach 5 or so, JSON schemas some more.
	maxNesting = 256
	// maxName is how much of an object's key is kept, in bytes; longer ones are cut there and equal no name we know.
	maxName = 128
)

// scanner reads JSON from a stream and keeps only what it is asked for. It is strict (RFC 8259) except that strings may
// hold invalid UTF-8, which is kept as it is. Each method consumes exactly one value.
//
// Its errors are ErrContract for what is not JSON or not the value asked for, else those of the stream as they came.
// Offsets in errors count bytes from the start.
type scanner struct {
	src      io.Reader
	buf      []byte
	pos, end int   // buf[pos:end] is read and not consumed
	before   int64 // bytes consumed before buf[0]
	depth    int
}

func newScanner(src io.Reader) *scanner { return &scanner{src: src, buf: make([]byte, 32<<10)} }

// fill reads more. It is called when everything was consumed.
func (s *scanner) fill() error {
	s.before += int64(s.end)
	s.pos, s.end = 0, 0
	for range 100 {
		n, err := s.src.Read(s.buf)
		if n > 0 {
			s.end = n
			return nil // an error that came with the bytes comes again
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

func (s *scanner) offset() int64 { return s.before + int64(s.pos) }

// cur is the next byte, not consumed. The end of the stream is an error: it is called inside of a value only.
func (s *scanner) cur() (byte, error) {
	if s.pos == s.end {
		if err := s.fill(); errors.Is(err, io.EOF) {
			return 0, contractf("json ends early, after %d bytes", s.offset())
		} else if err != nil {
			return 0, err
		}
	}
	return s.buf[s.pos], nil
}

// peek is cur after white space.
func (s *scanner) peek() (byte, error) {
	if s.pos < s.end && s.buf[s.pos] > ' ' {
		return s.buf[s.pos], nil
	}
	for {
		c, err := s.cur()
		if err != nil || !isSpace(c) {
			return c, err
		}
		s.pos++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// unexpected is the error of a byte that cannot stand here.
func (s *scanner) unexpected(want string) error {
	return contractf("no %s at byte %d", want, s.offset())
}

// finish errs unless nothing but white space follows.
func (s *scanner) finish() error {
	for {
		for ; s.pos < s.end; s.pos++ {
			if !isSpace(s.buf[s.pos]) {
				return contractf("something follows the json, at byte %d", s.offset())
			}
		}
		if err := s.fill(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// word consumes a literal that peek has seen the beginning of.
func (s *scanner) word(w string) error {
	for i := range len(w) {
		c, err := s.cur()
		if err != nil {
			return err
		}
		if c != w[i] {
			return s.unexpected(w)
		}
		s.pos++
	}
	return nil
}

// null consumes a null if there is one.
func (s *scanner) null() (bool, error) {
	c, err := s.peek()
	if err != nil || c != 'n' {
		return false, err
	}
	return true, s.word("null")
}

// list consumes brackets and commas and calls item for what stands between them.
func (s *scanner) list(open, shut byte, want string, item func() error) error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	if c != open {
		return s.unexpected(want)
	}
	if s.depth++; s.depth > maxNesting {
		return contractf("nested deeper than %d at byte %d", maxNesting, s.offset())
	}
	s.pos++
	if c, err = s.peek(); err != nil {
		return err
	}
	for c != shut {
		if err := item(); err != nil {
			return err
		}
		if c, err = s.peek(); err != nil {
			return err
		}
		if c == shut {
			break
		}
		if c != ',' {
			return s.unexpected("comma")
		}
		s.pos++
		if c, err = s.peek(); err != nil {
			return err
		}
		if c == shut {
			return s.unexpected("value after the comma")
		}
	}
	s.pos++
	s.depth--
	return nil
}

// array consumes an array. item consumes one element.
func (s *scanner) array(item func() error) error { return s.list('[', ']', "array", item) }

// object consumes an object. member consumes the value of key, which is good until then.
func (s *scanner) object(member func(key []byte) error) error {
	var name []byte
	return s.list('{', '}', "object", func() error {
		var err error
		if name, _, err = s.text(name[:0], maxName); err != nil {
			return err
		}
		if err := s.colon(); err != nil {
			return err
		}
		return member(name)
	})
}

func (s *scanner) colon() error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	if c != ':' {
		return s.unexpected("colon")
	}
	s.pos++
	return nil
}

// count consumes an integer from 0 to 2^31-1, written as one: no sign, no fraction, no exponent.
func (s *scanner) count() (uint32, error) {
	c, err := s.peek()
	if err != nil {
		return 0, err
	}
	if !isDigit(c) {
		return 0, s.unexpected("non-negative integer")
	}
	first, start, v := c, s.offset(), uint64(0)
	for isDigit(c) {
		for ; s.pos < s.end && isDigit(s.buf[s.pos]); s.pos++ { // the hot loop: what is in the buffer, without calls
			if v = v*10 + uint64(s.buf[s.pos]-'0'); v > math.MaxInt32 {
				return 0, contractf("integer at byte %d is over %d", start, math.MaxInt32)
			}
		}
		if c, err = s.cur(); err != nil {
			return 0, err
		}
	}
	if first == '0' && s.offset()-start > 1 || c == '.' || c|0x20 == 'e' {
		return 0, contractf("number at byte %d is no plain integer", start)
	}
	return uint32(v), nil
}

// skip consumes any value.
func (s *scanner) skip() error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	switch {
	case c == '{':
		return s.list('{', '}', "object", s.skipMember)
	case c == '[':
		return s.array(s.skip)
	case c == '"':
		_, _, err := s.text(nil, 0)
		return err
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	case c == '-' || isDigit(c):
		return s.skipNumber(c)
	default:
		return s.unexpected("value")
	}
}

func (s *scanner) skipMember() error {
	if _, _, err := s.text(nil, 0); err != nil {
		return err
	}
	if err := s.colon(); err != nil {
		return err
	}
	return s.skip()
}

// skipNumber consumes a number that begins with c.
func (s *scanner) skipNumber(c byte) (err error) {
	if c == '-' {
		s.pos++
		if c, err = s.cur(); err != nil {
			return err
		}
	}
	if c == '0' { // nothing but a fraction or an exponent may follow
		s.pos++
		if c, err = s.cur(); err != nil {
			return err
		}
	} else if c, err = s.digits(); err != nil {
		return err
	}
	if c == '.' {
		s.pos++
		if c, err = s.digits(); err != nil {
			return err
		}
	}
	if c|0x20 != 'e' {
		return nil
	}
	s.pos++
	if c, err = s.cur(); err != nil {
		return err
	}
	if c == '+' || c == '-' {
		s.pos++
	}
	_, err = s.digits()
	return err
}

// digits consumes at least one digit and returns the byte after them.
func (s *scanner) digits() (byte, error) {
	c, err := s.cur()
	if err == nil && !isDigit(c) {
		err = s.unexpected("digit")
	}
	for err == nil && isDigit(c) {
		s.pos++
		c, err = s.cur()
	}
	return c, err
}
