package pyval

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"unicode/utf8"
)

// ErrJSON is text that json.loads refuses.
var ErrJSON = errors.New("not JSON")

// ErrTooDeep is JSON nested deeper than Limits allows. Python's own limit lies somewhat higher and varies by version.
var ErrTooDeep = errors.New("JSON is nested too deeply")

// ErrDigits is an integer of more than 4300 digits, where json.loads fails with an error that is not its usual one.
var ErrDigits = errors.New("integer of more than 4300 digits")

// MaxNesting is how deep arrays and objects may be nested. Python 3.11 reads up to 990 or so.
const MaxNesting = 512

// Parse reads one JSON text. It errs with ErrJSON or ErrTooDeep. Memory is bounded by a multiple of len(text).
func Parse(text []byte) (Value, error) {
	r := reader{s: string(text)}
	if len(r.s) >= 3 && r.s[:3] == "\xef\xbb\xbf" {
		r.pos = 3 // json.loads of bytes skips a byte order mark
	}
	return r.document()
}

// ParseString reads the JSON text of a Python str: a byte order mark is refused.
func ParseString(text string) (Value, error) {
	r := reader{s: text}
	return r.document()
}

type reader struct {
	s     string
	pos   int
	depth int
}

func (r *reader) document() (Value, error) {
	r.space()
	v, err := r.value()
	if err != nil {
		return nil, err
	}
	if r.space(); r.pos != len(r.s) {
		return nil, r.fail("extra data")
	}
	return v, nil
}

func (r *reader) fail(what string) error {
	return fmt.Errorf("%w: %s at byte %d", ErrJSON, what, r.pos)
}

func (r *reader) space() {
	for r.pos < len(r.s) {
		switch r.s[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return
		}
	}
}

func (r *reader) peek() byte {
	if r.pos < len(r.s) {
		return r.s[r.pos]
	}
	return 0
}

func (r *reader) word(w string, v Value) (Value, bool) {
	if len(r.s)-r.pos >= len(w) && r.s[r.pos:r.pos+len(w)] == w {
		r.pos += len(w)
		return v, true
	}
	return nil, false
}

func (r *reader) value() (Value, error) {
	var v Value
	ok := false
	switch r.peek() {
	case '"':
		s, err := r.str()
		return s, err
	case '{':
		return r.object()
	case '[':
		return r.array()
	case 'n':
		v, ok = r.word("null", None{})
	case 't':
		v, ok = r.word("true", true)
	case 'f':
		v, ok = r.word("false", false)
	case 'N':
		v, ok = r.word("NaN", math.NaN())
	case 'I':
		v, ok = r.word("Infinity", math.Inf(1))
	case '-':
		if v, ok = r.word("-Infinity", math.Inf(-1)); !ok {
			return r.number()
		}
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return r.number()
	}
	if !ok {
		return nil, r.fail("expecting value")
	}
	return v, nil
}

func (r *reader) enter() error {
	r.pos++
	if r.depth++; r.depth > MaxNesting {
		return ErrTooDeep
	}
	return nil
}

func (r *reader) object() (Value, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	d := &Dict{}
	if r.space(); r.peek() == '}' {
		r.pos++
		r.depth--
		return d, nil
	}
	for {
		if r.peek() != '"' {
			return nil, r.fail("expecting property name")
		}
		key, err := r.str()
		if err != nil {
			return nil, err
		}
		if r.space(); r.peek() != ':' {
			return nil, r.fail("expecting ':'")
		}
		r.pos++
		r.space()
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		d.Set(key, v)
		more, err := r.next('}')
		if err != nil || !more {
			return d, err
		}
	}
}

func (r *reader) array() (Value, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	l := &List{}
	if r.space(); r.peek() == ']' {
		r.pos++
		r.depth--
		return l, nil
	}
	for {
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		l.Items = append(l.Items, v)
		more, err := r.next(']')
		if err != nil || !more {
			return l, err
		}
	}
}

// next reads what follows an element: a comma (more) or the end.
func (r *reader) next(end byte) (more bool, err error) {
	r.space()
	switch r.peek() {
	case ',':
		r.pos++
		r.space()
		return true, nil
	case end:
		r.pos++
		r.depth--
		return false, nil
	}
	return false, r.fail("expecting ',' or the end")
}

func (r *reader) digits() int {
	start := r.pos
	for r.pos < len(r.s) && r.s[r.pos] >= '0' && r.s[r.pos] <= '9' {
		r.pos++
	}
	return r.pos - start
}

// number follows -?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?: like Python it takes the longest prefix that fits.
func (r *reader) number() (Value, error) {
	start := r.pos
	if r.peek() == '-' {
		r.pos++
	}
	switch c := r.peek(); {
	case c == '0':
		r.pos++
	case r.digits() == 0:
		return nil, r.fail("expecting value")
	}
	whole := r.pos
	end := whole
	if r.peek() == '.' {
		if r.pos++; r.digits() > 0 {
			end = r.pos
		}
		r.pos = end
	}
	if c := r.peek(); c == 'e' || c == 'E' {
		r.pos++
		if c := r.peek(); c == '+' || c == '-' {
			r.pos++
		}
		if r.digits() > 0 {
			end = r.pos
		}
		r.pos = end
	}
	if end == whole {
		return r.integer(r.s[start:end])
	}
	f, _ := strconv.ParseFloat(r.s[start:end], 64) // out of range is infinity, as in Python
	return f, nil
}

func (r *reader) integer(s string) (Value, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil
	}
	digits := len(s)
	if s[0] == '-' {
		digits--
	}
	if digits > maxIntDigits {
		return nil, fmt.Errorf("%w: %w at byte %d", ErrJSON, ErrDigits, r.pos)
	}
	b, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return nil, r.fail("expecting value")
	}
	return Int(b), nil
}

// str reads a string. What needs no change is taken as it stands.
func (r *reader) str() (string, error) {
	r.pos++
	start := r.pos
	plain := true
	for r.pos < len(r.s) {
		switch c := r.s[r.pos]; {
		case c == '"':
			s := r.s[start:r.pos]
			r.pos++
			if plain && !validText(s) {
				return "", r.fail("invalid UTF-8")
			}
			return s, nil
		case c == '\\':
			return r.escaped(start)
		case c < 0x20:
			return "", r.fail("invalid control character")
		}
		r.pos++
	}
	return "", r.fail("unterminated string")
}

// escaped reads on from the first backslash of a string that began at start.
func (r *reader) escaped(start int) (string, error) {
	b := append(make([]byte, 0, r.pos-start+32), r.s[start:r.pos]...)
	for r.pos < len(r.s) {
		c := r.s[r.pos]
		switch {
		case c == '"':
			r.pos++
			if !validText(string(b)) {
				return "", r.fail("invalid UTF-8")
			}
			return string(b), nil
		case c < 0x20:
			return "", r.fail("invalid control character")
		case c != '\\':
			b = append(b, c)
			r.pos++
			continue
		}
		var err error
		if b, err = r.escape(b); err != nil {
			return "", err
		}
	}
	return "", r.fail("unterminated string")
}

func (r *reader) escape(b []byte) ([]byte, error) {
	r.pos++
	c := r.peek()
	r.pos++
	switch c {
	case '"', '\\', '/':
		return append(b, c), nil
	case 'b':
		return append(b, '\b'), nil
	case 'f':
		return append(b, '\f'), nil
	case 'n':
		return append(b, '\n'), nil
	case 'r':
		return append(b, '\r'), nil
	case 't':
		return append(b, '\t'), nil
	case 'u':
	default:
		return b, r.fail("invalid escape")
	}
	u, ok := r.hex4(r.pos)
	if !ok {
		return b, r.fail("invalid \\u escape")
	}
	r.pos += 4
	if u >= 0xd800 && u < 0xdc00 && r.pos+6 <= len(r.s) && r.s[r.pos] == '\\' && r.s[r.pos+1] == 'u' {
		if low, ok := r.hex4(r.pos + 2); ok && low >= 0xdc00 && low < 0xe000 {
			r.pos += 6
			return utf8.AppendRune(b, (u-0xd800)<<10|(low-0xdc00)+0x10000), nil
		}
	}
	return AppendRune(b, u), nil
}

func (r *reader) hex4(at int) (rune, bool) {
	if at+4 > len(r.s) {
		return 0, false
	}
	var u rune
	for _, c := range []byte(r.s[at : at+4]) {
		switch {
		case c >= '0' && c <= '9':
			u = u<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			u = u<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			u = u<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return u, true
}

// validText reports whether s is UTF-8, surrogates let through as Python's decoder for bodies does.
func validText(s string) bool {
	if utf8.ValidString(s) {
		return true
	}
	for s != "" {
		r, n := DecodeRune(s)
		if r == utf8.RuneError && n == 1 {
			return false
		}
		s = s[n:]
	}
	return true
}
