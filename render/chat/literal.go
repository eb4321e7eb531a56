package chat

import (
	"strconv"
	"strings"

	"github.com/kvscout/kvscout/render/pyval"
)

// number reads an integer or a float (float_re and integer_re of jinja2/lexer.py).
func (l *lexer) number(rest string) error {
	prev := byte(0)
	if l.pos > 0 {
		prev = l.src[l.pos-1]
	}
	if n := floatLength(rest); n > 0 && prev != '.' {
		l.emit(tokFloat, strings.ReplaceAll(rest[:n], "_", ""))
		l.advance(n)
		return nil
	}
	n := integerLength(rest)
	l.emit(tokInteger, strings.ReplaceAll(rest[:n], "_", ""))
	l.advance(n)
	return nil
}

// digitRun matches (\d+_)*\d+ at the start of s.
func digitRun(s string) int {
	n := 0
	for n < len(s) && (isDigit(s[n]) || s[n] == '_' && n > 0 && isDigit(s[n-1]) && n+1 < len(s) && isDigit(s[n+1])) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// floatLength matches digits with a fraction, an exponent, or both; 0 if it is no float.
func floatLength(s string) int {
	n := digitRun(s)
	whole := n
	if n < len(s) && s[n] == '.' {
		if f := digitRun(s[n+1:]); f > 0 {
			n += 1 + f
		}
	}
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		e := n + 1
		if e < len(s) && (s[e] == '+' || s[e] == '-') {
			e++
		}
		if d := digitRun(s[e:]); d > 0 {
			return e + d
		}
	}
	if n == whole {
		return 0
	}
	return n
}

func integerLength(s string) int {
	if len(s) > 2 && s[0] == '0' {
		digits := map[byte]string{'b': "01", 'o': "01234567", 'x': "0123456789abcdef"}[s[1]|0x20]
		n := 2
		for digits != "" && n < len(s) && (strings.IndexByte(digits, s[n]|0x20) >= 0 ||
			strings.IndexByte(digits, s[n]) >= 0 || s[n] == '_') {
			n++
		}
		if n > 2 {
			return n
		}
	}
	if s[0] != '0' {
		return digitRun(s)
	}
	n := 1
	for n < len(s) && (s[n] == '0' || s[n] == '_' && n+1 < len(s) && s[n+1] == '0') {
		n++
	}
	return n
}

// str reads a string literal and decodes its escapes as Python's unicode-escape codec does.
func (l *lexer) str(rest string) error {
	quote := rest[0]
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case quote:
			text, err := l.unescape(rest[1:i])
			if err != nil {
				return err
			}
			l.emit(tokString, text)
			l.advance(i + 1)
			return nil
		}
	}
	return l.fail("unterminated string")
}

func (l *lexer) unescape(s string) (string, error) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			b = append(b, s[i])
			i++
			continue
		}
		n, err := l.escape(&b, s[i:])
		if err != nil {
			return "", err
		}
		i += n
	}
	return string(b), nil
}

// escape decodes the escape at the start of s and gives its length.
func (l *lexer) escape(b *[]byte, s string) (int, error) {
	if len(s) < 2 {
		return 0, l.fail("trailing backslash in a string")
	}
	if i := strings.IndexByte("\\'\"abfnrtv", s[1]); i >= 0 {
		*b = append(*b, "\\'\"\a\b\f\n\r\t\v"[i])
		return 2, nil
	}
	switch c := s[1]; c {
	case '\n':
		return 2, nil
	case 'x', 'u', 'U':
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
		if len(s) < 2+digits {
			return 0, l.fail("truncated \\%c escape", c)
		}
		u, err := strconv.ParseUint(s[2:2+digits], 16, 32)
		if err != nil || u > 0x10ffff {
			return 0, l.fail("illegal \\%c escape", c)
		}
		*b = pyval.AppendRune(*b, rune(u))
		return 2 + digits, nil
	case 'N':
		return 0, errAt(ErrUnsupported, l.line, "\\N escape in a string")
	case '0', '1', '2', '3', '4', '5', '6', '7':
		n, v := 1, rune(0)
		for n < 4 && n < len(s) && s[n] >= '0' && s[n] <= '7' {
			v = v<<3 | rune(s[n]-'0')
			n++
		}
		*b = pyval.AppendRune(*b, v)
		return n, nil
	}
	*b = append(*b, '\\') // an unknown escape stands for itself
	return 1, nil
}
