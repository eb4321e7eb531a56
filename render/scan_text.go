package render

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// optionalText sets to to the value if that is a string, at most limit bytes of it, and skips any other. What was read
// is kept even if the stream ends in the middle.
func (s *scanner) optionalText(to *string, limit int) error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	if c != '"' {
		return s.skip()
	}
	kept, _, err := s.text(nil, limit)
	*to = string(kept)
	return err
}

// text consumes a string, appends at most limit bytes of it to dst and says whether it was longer.
func (s *scanner) text(dst []byte, limit int) (kept []byte, cut bool, err error) {
	c, err := s.peek()
	if err != nil {
		return dst, false, err
	}
	if c != '"' {
		return dst, false, s.unexpected("string")
	}
	s.pos++
	t := textBuffer{kept: dst, room: limit}
	for {
		if _, err := s.cur(); err != nil {
			return t.kept, t.cut, err
		}
		run := s.plainRun()
		if len(run) > 0 {
			t.add(run)
		}
		if s.pos += len(run); s.pos == s.end {
			continue
		}
		switch s.buf[s.pos] {
		case '"':
			s.pos++
			t.add(nil)
			return t.kept, t.cut, nil
		case '\\':
			s.pos++
			if err := s.escape(&t); err != nil {
				return t.kept, t.cut, err
			}
		default:
			return t.kept, t.cut, s.unexpected("legal character in the string")
		}
	}
}

// plainRun is what can be taken from the buffer as it stands: up to a quote, a backslash or a control character.
func (s *scanner) plainRun() []byte {
	rest := s.buf[s.pos:s.end]
	for i, c := range rest {
		if c == '"' || c == '\\' || c < ' ' {
			return rest[:i]
		}
	}
	return rest
}

// escape consumes what follows a backslash.
func (s *scanner) escape(t *textBuffer) error {
	c, err := s.cur()
	if err != nil {
		return err
	}
	s.pos++
	if c == 'u' {
		r, err := s.hex4()
		if err != nil {
			return err
		}
		t.addRune(r)
		return nil
	}
	i := bytes.IndexByte([]byte(`"\/bfnrt`), c)
	if i < 0 {
		s.pos--
		return s.unexpected("legal escape")
	}
	t.add([]byte("\"\\/\b\f\n\r\t")[i : i+1])
	return nil
}

func (s *scanner) hex4() (rune, error) {
	var r rune
	for range 4 {
		c, err := s.cur()
		if err != nil {
			return 0, err
		}
		switch {
		case isDigit(c):
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, s.unexpected("hex digit")
		}
		s.pos++
	}
	return r, nil
}

// textBuffer keeps the beginning of a string.
type textBuffer struct {
	kept []byte
	room int
	cut  bool
	high rune // a surrogate that waits for its other half, or 0
}

// add appends plain bytes. It ends the wait of a lone surrogate, which becomes U+FFFD.
func (t *textBuffer) add(b []byte) {
	if t.high != 0 {
		t.high = 0
		t.keep([]byte(string(utf8.RuneError)))
	}
	t.keep(b)
}

// addRune appends a \u escape.
func (t *textBuffer) addRune(r rune) {
	if t.high != 0 {
		if both := utf16.DecodeRune(t.high, r); both != utf8.RuneError {
			t.high = 0
			t.keep([]byte(string(both)))
			return
		}
	}
	t.add(nil)
	if 0xD800 <= r && r < 0xDC00 {
		t.high = r
		return
	}
	t.keep([]byte(string(r))) // a lone low surrogate is U+FFFD
}

func (t *textBuffer) keep(b []byte) {
	if len(b) > t.room {
		t.cut = true
		b = b[:t.room]
	}
	t.room -= len(b)
	t.kept = append(t.kept, b...)
}
