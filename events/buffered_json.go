package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// jsonReader walks JSON text without building values. It allocates nothing, and nesting costs it no stack. What is
// skipped is held to its brackets and strings only.
type jsonReader struct {
	buf []byte
	pos int
}

func (r *jsonReader) broken() error {
	return fmt.Errorf("%w: JSON breaks off at byte %d", ErrPayload, r.pos)
}

// peek is the first byte of the next token, 0 at the end.
func (r *jsonReader) peek() byte {
	for r.pos < len(r.buf) {
		switch c := r.buf[r.pos]; c {
		case ' ', '\t', '\r', '\n':
			r.pos++
		default:
			return c
		}
	}
	return 0
}

// open passes the bracket that opens an object or an array. Another value is a fault of the event around it.
func (r *jsonReader) open(bracket byte) error {
	switch r.peek() {
	case bracket:
		r.pos++
		return nil
	case 0:
		return r.broken()
	default:
		return fault(ReasonBadEvent)
	}
}

// more says whether another member or element follows, and passes the comma before it or the bracket that closes.
func (r *jsonReader) more(closing byte, first bool) (bool, error) {
	c := r.peek()
	switch {
	case c == closing:
		r.pos++
		return false, nil
	case first && c != 0 && c != ',':
		return true, nil
	case !first && c == ',':
		r.pos++
		return true, nil
	default:
		return false, r.broken()
	}
}

// key reads the name of a member and the colon behind it.
func (r *jsonReader) key() ([]byte, error) {
	name, err := r.rawString()
	if err != nil {
		return nil, err
	}
	if r.peek() != ':' {
		return nil, r.broken()
	}
	r.pos++
	return name, nil
}

// rawString reads a string and returns what lies between its quotes, escapes and all.
func (r *jsonReader) rawString() ([]byte, error) {
	if r.peek() != '"' {
		return nil, r.broken()
	}
	start := r.pos + 1
	for at := start; at < len(r.buf); at++ {
		switch r.buf[at] {
		case '\\':
			at++
		case '"':
			r.pos = at + 1
			return r.buf[start:at], nil
		}
	}
	return nil, r.broken()
}

// text reads a string of at most max bytes. Half a surrogate pair and bytes that are no UTF-8 are refused: the json
// package would make one text of many (rule 3).
func (r *jsonReader) text(max int) ([]byte, error) {
	raw, err := r.rawString()
	switch {
	case err != nil:
		return nil, err
	case len(raw) > max:
		return nil, fault(ReasonTooLarge)
	case !utf8.Valid(raw):
		return nil, fault(ReasonBadNamespace)
	case bytes.IndexByte(raw, '\\') < 0:
		return raw, nil
	}
	var s string
	if json.Unmarshal(r.buf[r.pos-len(raw)-2:r.pos], &s) != nil || strings.ContainsRune(s, utf8.RuneError) {
		return nil, fault(ReasonBadNamespace)
	}
	return []byte(s), nil
}

// null passes a null, if one follows.
func (r *jsonReader) null() bool {
	if r.peek() == 'n' && bytes.HasPrefix(r.buf[r.pos:], []byte("null")) {
		r.pos += len("null")
		return true
	}
	return false
}

// integer reads an integer of up to 64 bits, with or without a sign, as its 64 bits. Other numbers are faults: no
// value passes through a float.
func (r *jsonReader) integer() (v uint64, negative bool, err error) {
	c := r.peek()
	if c != '-' && (c < '0' || c > '9') {
		if c == 0 {
			return 0, false, r.broken()
		}
		return 0, false, fault(ReasonBadEvent)
	}
	if negative = c == '-'; negative {
		r.pos++
	}
	start := r.pos
	for ; r.pos < len(r.buf) && r.buf[r.pos]-'0' <= 9; r.pos++ {
		digit := uint64(r.buf[r.pos] - '0')
		if v > (1<<64-1-digit)/10 {
			return 0, false, fault(ReasonBadEvent)
		}
		v = v*10 + digit
	}
	if r.pos == start || r.pos < len(r.buf) && strings.IndexByte(".eE", r.buf[r.pos]) >= 0 {
		return 0, false, fault(ReasonBadEvent)
	}
	if !negative {
		return v, false, nil
	}
	if v > 1<<63 {
		return 0, false, fault(ReasonBadEvent)
	}
	return -v, v != 0, nil
}

// intIn reads an integer from 0 to high.
func (r *jsonReader) intIn(high uint64) (int, error) {
	v, negative, err := r.integer()
	if err == nil && (negative || v > high) {
		err = fault(ReasonBadEvent)
	}
	return int(v), err
}

// skip passes one value.
func (r *jsonReader) skip() error {
	for depth := 0; ; {
		switch r.peek() {
		case 0:
			return r.broken()
		case '"':
			if _, err := r.rawString(); err != nil {
				return err
			}
		case '{', '[':
			depth++
			r.pos++
		case '}', ']':
			depth--
			r.pos++
		case ',', ':':
			if depth == 0 {
				return r.broken()
			}
			r.pos++
			continue
		default:
			if err := r.literal(); err != nil {
				return err
			}
		}
		if depth < 0 {
			return r.broken()
		}
		if depth == 0 {
			return nil
		}
	}
}

// literal passes a number, true, false or null.
func (r *jsonReader) literal() error {
	start := r.pos
	for r.pos < len(r.buf) {
		c := r.buf[r.pos]
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '+' || c == '.' {
			r.pos++
			continue
		}
		break
	}
	if r.pos == start {
		return r.broken()
	}
	return nil
}
