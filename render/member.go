package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// ErrNoObject is a body that is no single JSON object, as far as can be told without reading its values.
var ErrNoObject = errors.New("body is no single JSON object")

// Member is one member of a JSON object, as the bytes of the text that it is part of.
type Member struct {
	// Name is the member's name; "" for one longer than every name that matters, or that is no text.
	Name string
	// Value is the text of the value, blanks around it left out. It shares the body's memory.
	Value []byte
	// start is the offset of the name's quote, from of the value, end of the byte after it.
	start, from, end int
}

// maxMemberName is longer than every name we look for, spelled with escapes only.
const maxMemberName = 192

// EachMember calls fn for each member of the object in body, in order, repeated names too. It reads no value: it is
// right about every text that Python's json module accepts and trusts whoever renders the body to refuse the others.
// It errs with ErrNoObject, or with what fn returns. No error quotes the body.
func EachMember(body []byte, fn func(Member) error) error {
	w := walker{text: body}
	if bytes.HasPrefix(body, []byte("\ufeff")) {
		w.pos = len("\ufeff")
	}
	if w.peek() != '{' {
		return ErrNoObject
	}
	w.pos++
	for first := true; w.peek() != '}'; first = false {
		if !first {
			if w.peek() != ',' {
				return ErrNoObject
			}
			w.pos++
		}
		m, ok := w.member()
		if !ok {
			return ErrNoObject
		}
		if err := fn(m); err != nil {
			return err
		}
	}
	w.pos++
	if w.peek(); w.pos != len(body) {
		return ErrNoObject
	}
	return nil
}

// walker goes over a JSON text.
type walker struct {
	text []byte
	pos  int
}

// peek skips blanks and returns the next byte; 0 at the end.
func (w *walker) peek() byte {
	for w.pos < len(w.text) && isSpace(w.text[w.pos]) {
		w.pos++
	}
	if w.pos == len(w.text) {
		return 0
	}
	return w.text[w.pos]
}

func (w *walker) member() (Member, bool) {
	if w.peek() != '"' {
		return Member{}, false
	}
	m := Member{start: w.pos}
	if !w.quoted() {
		return m, false
	}
	m.Name = shortText(w.text[m.start:w.pos])
	if w.peek() != ':' {
		return m, false
	}
	w.pos++
	if w.peek() == 0 {
		return m, false
	}
	m.from = w.pos
	if !w.value() {
		return m, false
	}
	m.end = w.pos
	m.Value = w.text[m.from:m.end:m.end]
	return m, true
}

// quoted passes one string.
func (w *walker) quoted() bool {
	for i := w.pos + 1; i < len(w.text); i++ {
		switch w.text[i] {
		case '\\':
			i++
		case '"':
			w.pos = i + 1
			return true
		}
	}
	return false
}

// value passes one value. It keeps no stack, so nesting costs nothing.
func (w *walker) value() bool {
	for depth := 0; ; {
		switch c := w.peek(); c {
		case 0:
			return false
		case '"':
			if !w.quoted() {
				return false
			}
		case '{', '[':
			depth++
			w.pos++
		case '}', ']':
			if depth == 0 {
				return false
			}
			depth--
			w.pos++
		case ',', ':':
			if depth == 0 {
				return false
			}
			w.pos++
			continue
		default:
			w.word()
		}
		if depth == 0 {
			return true
		}
	}
}

// word passes a number or a literal.
func (w *walker) word() {
	for w.pos < len(w.text) && !isSpace(w.text[w.pos]) && bytes.IndexByte([]byte(`{}[],:"`), w.text[w.pos]) < 0 {
		w.pos++
	}
}

// shortText is the text of a quoted string that may be a name we look for; "" for any other.
func shortText(quoted []byte) string {
	if len(quoted) > maxMemberName {
		return ""
	}
	text, _ := Text(quoted)
	return text
}

// Text is the text of a JSON string with its quotes. It is false for what is no string, or none of legal characters.
func Text(quoted []byte) (string, bool) {
	if len(quoted) < 2 || quoted[0] != '"' {
		return "", false
	}
	if inner := quoted[1 : len(quoted)-1]; bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner), true
	}
	var text string
	err := json.Unmarshal(quoted, &text)
	return text, err == nil
}
