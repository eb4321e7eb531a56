package token

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// jsonScanner reads a tokenizer.json, of which two parts hold a million strings, in one pass and without a value for
// each. Its data was already checked to be JSON; what it checks is the shape.
type jsonScanner struct {
	data           []byte
	pos            int
	strings, pairs bool // forms of merges seen
}

// peek is the next byte that is not white space, or 0.
func (s *jsonScanner) peek() byte {
	for s.pos < len(s.data) {
		if c := s.data[s.pos]; c > ' ' {
			return c
		}
		s.pos++
	}
	return 0
}

// list calls item for what stands between open and shut, at its beginning.
func (s *jsonScanner) list(open, shut byte, item func() error) error {
	if s.peek() != open {
		return badFile("no %q where one must be, at byte %d of a part", open, s.pos)
	}
	s.pos++
	for s.peek() != shut {
		before := s.pos
		if err := item(); err != nil {
			return err
		}
		if s.peek() == ',' {
			s.pos++
		}
		if s.pos == before || s.pos >= len(s.data) {
			return badFile("not the shape of vocab or merges, at byte %d", s.pos)
		}
	}
	s.pos++
	return nil
}

func (s *jsonScanner) array(item func() error) error { return s.list('[', ']', item) }

// object calls member for each key, before its value.
func (s *jsonScanner) object(member func(key string) error) error {
	return s.list('{', '}', func() error {
		key, ok := s.text()
		if !ok || s.peek() != ':' {
			return badFile("no key at byte %d", s.pos)
		}
		s.pos++
		return member(key)
	})
}

// text reads a string.
func (s *jsonScanner) text() (string, bool) {
	if s.peek() != '"' {
		return "", false
	}
	start := s.pos
	escaped := false
	for i := start + 1; i < len(s.data); i++ {
		switch s.data[i] {
		case '\\':
			escaped = true
			i++
		case '"':
			s.pos = i + 1
			if !escaped {
				return string(s.data[start+1 : i]), true
			}
			var out string
			err := json.Unmarshal(s.data[start:i+1], &out)
			return out, err == nil
		}
	}
	return "", false
}

// value reads any value.
func (s *jsonScanner) value() []byte {
	s.peek()
	start, depth := s.pos, 0
	for ; s.pos < len(s.data); s.pos++ {
		switch s.data[s.pos] {
		case '"':
			for s.pos++; s.pos < len(s.data) && s.data[s.pos] != '"'; s.pos++ {
				if s.data[s.pos] == '\\' {
					s.pos++
				}
			}
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth < 0 { // of what it stands in
				return bytes.TrimRight(s.data[start:s.pos], " \t\r\n")
			}
		case ',':
			if depth == 0 {
				return bytes.TrimRight(s.data[start:s.pos], " \t\r\n")
			}
		}
	}
	return s.data[start:min(s.pos, len(s.data))]
}

// uint reads a number that is a plain integer.
func (s *jsonScanner) uint() (uint32, bool) {
	s.peek()
	start := s.pos
	for s.pos < len(s.data) && '0' <= s.data[s.pos] && s.data[s.pos] <= '9' {
		s.pos++
	}
	v, err := strconv.ParseUint(string(s.data[start:s.pos]), 10, 32)
	if next := s.peek(); err != nil || next != ',' && next != '}' {
		return 0, false
	}
	return uint32(v), true
}

// pair reads a merge, ["a", "b"] or "a b". A line that begins with #version is skipped, as the library does.
func (s *jsonScanner) pair() (left, right string, skip bool, err error) {
	if s.peek() == '[' {
		s.pairs = true
		n := 0
		err := s.array(func() error {
			word, ok := s.text()
			if n++; !ok || n > 2 {
				return badFile("merges: no pair of strings at byte %d", s.pos)
			}
			left, right = right, word
			return nil
		})
		if err == nil && n != 2 {
			err = badFile("merges: no pair at byte %d", s.pos)
		}
		return left, right, false, err
	}
	line, ok := s.text()
	if !ok {
		return "", "", false, badFile("merges: neither a string nor a pair at byte %d", s.pos)
	}
	s.strings = true
	if strings.HasPrefix(line, "#version") {
		return "", "", true, nil
	}
	left, right, ok = strings.Cut(line, " ")
	if !ok || strings.Contains(right, " ") {
		return "", "", false, badFile("merges: %.40q is not two words", line)
	}
	return left, right, false, nil
}
