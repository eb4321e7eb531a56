package chat

import (
	"strings"
	"unicode"

	"github.com/kvscout/kvscout/render/pyval"
)

// lexer cuts a template into tokens as Jinja 3.1 does with trim_blocks and lstrip_blocks (jinja2/lexer.py).
type lexer struct {
	src  string
	pos  int
	line int
	// lineStart: what was last read ended a line, so blanks that follow are at the start of one.
	lineStart bool
	tokens    []token
}

// lex gives the tokens of a template, tokEOF last.
func lex(src string) ([]token, error) {
	l := lexer{src: normalizeNewlines(src), line: 1, lineStart: true}
	l.src = strings.TrimSuffix(l.src, "\n") // keep_trailing_newline is off
	for l.pos < len(l.src) {
		if err := l.root(); err != nil {
			return nil, err
		}
	}
	l.emit(tokEOF, "")
	return l.tokens, nil
}

func normalizeNewlines(s string) string {
	if strings.IndexByte(s, '\r') < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

func (l *lexer) emit(k kind, text string) {
	l.tokens = append(l.tokens, token{k, text, l.line})
}

func (l *lexer) fail(format string, args ...any) error {
	return errAt(ErrSyntax, l.line, format, args...)
}

// advance moves over n bytes.
func (l *lexer) advance(n int) {
	s := l.src[l.pos : l.pos+n]
	l.line += strings.Count(s, "\n")
	l.pos += n
	l.lineStart = strings.HasSuffix(s, "\n")
}

// root reads text up to the next tag, and the tag.
func (l *lexer) root() error {
	rest := l.src[l.pos:]
	at := nextTag(rest)
	if at < 0 {
		l.emit(tokData, rest)
		l.advance(len(rest))
		return nil
	}
	tag := rest[at+1]
	n := at + 2
	sign := byte(0)
	if n < len(rest) && (rest[n] == '-' || rest[n] == '+') {
		sign = rest[n]
		n++
	}
	l.data(rest[:at], sign, tag == '{')
	if tag == '%' {
		if length, ok := rawBegin(rest[at:]); ok {
			l.advance(at + length)
			return l.raw()
		}
	}
	l.advance(n)
	switch tag {
	case '#':
		return l.comment()
	case '{':
		l.emit(tokVarBegin, "")
		return l.expression("}}")
	}
	l.emit(tokBlockBegin, "")
	return l.expression("%}")
}

// nextTag finds the first "{{", "{%" or "{#".
func nextTag(s string) int {
	for from := 0; ; {
		i := strings.IndexByte(s[from:], '{')
		if i < 0 || from+i+1 >= len(s) {
			return -1
		}
		switch s[from+i+1] {
		case '{', '%', '#':
			return from + i
		}
		from += i + 1
	}
}

// data emits the text before a tag: the sign '-' strips all white space at its end, lstrip_blocks what stands between
// the start of the line and a tag that prints nothing.
func (l *lexer) data(text string, sign byte, variable bool) {
	switch {
	case sign == '-':
		text = strings.TrimRightFunc(text, pyval.IsSpace)
	case sign == 0 && !variable:
		start := strings.LastIndexByte(text, '\n') + 1
		if (start > 0 || l.lineStart) && strings.TrimLeftFunc(text[start:], pyval.IsSpace) == "" {
			text = text[:start]
		}
	}
	if text != "" {
		l.emit(tokData, text)
	}
}

func skipSpace(s string) int { return len(s) - len(strings.TrimLeftFunc(s, pyval.IsSpace)) }

// rawBegin matches {%[-+]?\s*raw\s*(-%}\s*|%}) at the start of s.
func rawBegin(s string) (length int, ok bool) {
	n := tagWord(s, "raw")
	if n == 0 {
		return 0, false
	}
	switch {
	case strings.HasPrefix(s[n:], "-%}"):
		n += 3
		return n + skipSpace(s[n:]), true
	case strings.HasPrefix(s[n:], "%}"):
		return n + 2, true
	}
	return 0, false
}

// tagWord matches {%[-+]?\s*WORD\s* at the start of s and gives the length, or 0.
func tagWord(s, word string) int {
	n := 2
	if n < len(s) && (s[n] == '-' || s[n] == '+') {
		n++
	}
	n += skipSpace(s[n:])
	if !strings.HasPrefix(s[n:], word) {
		return 0
	}
	n += len(word)
	return n + skipSpace(s[n:])
}

// raw reads the text up to {% endraw %}.
func (l *lexer) raw() error {
	rest := l.src[l.pos:]
	for from := 0; rest != ""; { // Jinja asks for no end if nothing follows
		i := strings.Index(rest[from:], "{%")
		if i < 0 {
			return l.fail("missing end of raw directive")
		}
		at := from + i
		from = at + 2
		n := tagWord(rest[at:], "endraw")
		if n == 0 {
			continue
		}
		end := tagEnd(rest[at+n:], "%}")
		if end == 0 {
			continue
		}
		sign := rest[at+2]
		if sign != '-' && sign != '+' {
			sign = 0
		}
		l.data(rest[:at], sign, false)
		l.advance(at + n + end)
		return nil
	}
	return nil
}

// tagEnd matches the end of a tag at the start of s and gives its length, or 0: +END, -END\s*, or END\n? (trim_blocks).
func tagEnd(s, end string) int {
	switch {
	case strings.HasPrefix(s, "-"+end):
		n := 1 + len(end)
		return n + skipSpace(s[n:])
	case end == "}}":
		if strings.HasPrefix(s, end) {
			return len(end)
		}
	case strings.HasPrefix(s, "+"+end):
		return 1 + len(end)
	case strings.HasPrefix(s, end):
		if strings.HasPrefix(s[len(end):], "\n") {
			return len(end) + 1
		}
		return len(end)
	}
	return 0
}

func (l *lexer) comment() error {
	rest := l.src[l.pos:]
	i := strings.Index(rest, "#}")
	if rest == "" {
		return nil
	}
	if i < 0 {
		return l.fail("missing end of comment tag")
	}
	if i > 0 && (rest[i-1] == '-' || rest[i-1] == '+') {
		i--
	}
	l.advance(i + tagEnd(rest[i:], "#}"))
	return nil
}

// expression reads tokens up to the end of the tag. Inside of brackets the end is not looked for.
func (l *lexer) expression(end string) error {
	var open []byte
	for l.pos < len(l.src) {
		rest := l.src[l.pos:]
		if len(open) == 0 {
			if n := tagEnd(rest, end); n > 0 {
				k := tokBlockEnd
				if end == "}}" {
					k = tokVarEnd
				}
				l.emit(k, "")
				l.advance(n)
				return nil
			}
		}
		if n := skipSpace(rest); n > 0 {
			l.advance(n)
			continue
		}
		var err error
		if open, err = l.one(rest, open); err != nil {
			return err
		}
	}
	return nil // the parser complains about the end
}

func (l *lexer) one(rest string, open []byte) ([]byte, error) {
	c := rest[0]
	switch {
	case c >= '0' && c <= '9':
		return open, l.number(rest)
	case c == '\'' || c == '"':
		return open, l.str(rest)
	}
	if n := nameLength(rest); n > 0 {
		if r, _ := pyval.DecodeRune(rest); r != '_' && !unicode.IsLetter(r) && !unicode.Is(unicode.Nl, r) {
			return open, l.fail("invalid character in identifier")
		}
		l.emit(tokName, rest[:n])
		l.advance(n)
		return open, nil
	}
	for _, op := range operators {
		if !strings.HasPrefix(rest, op) {
			continue
		}
		switch c {
		case '(', '[', '{':
			open = append(open, closing(c))
		case ')', ']', '}':
			if len(open) == 0 || open[len(open)-1] != c {
				return open, l.fail("unexpected '%c'", c)
			}
			open = open[:len(open)-1]
		}
		l.emit(tokOperator, op)
		l.advance(len(op))
		return open, nil
	}
	r, _ := pyval.DecodeRune(rest)
	return open, l.fail("unexpected char %q", r)
}

func closing(c byte) byte {
	switch c {
	case '(':
		return ')'
	case '[':
		return ']'
	}
	return '}'
}

func nameLength(s string) int {
	for i, r := range s {
		if r != '_' && !unicode.IsLetter(r) && !unicode.IsNumber(r) {
			return i
		}
	}
	return len(s)
}
