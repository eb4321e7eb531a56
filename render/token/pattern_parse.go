package token

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// expr is a parsed pattern: one of set, seq, alt, *repeat, *look, *sealed, lineEnd.
type expr any

type (
	set    ranges // one code point of a set
	seq    []expr
	alt    []expr
	repeat struct {
		of         expr
		min, max   int // max -1: no limit
		possessive bool
	}
	look struct {
		of          expr
		not, behind bool
	}
	sealed  struct{ of expr }
	lineEnd struct{}
)

// Bounds of a pattern; real ones have some 300 bytes, depth 3 and counts up to 3.
const (
	maxPattern = 4096
	maxNesting = 32
	maxCount   = 64
)

// patternParser reads the part of Oniguruma's default syntax whose meaning is reproduced exactly, and refuses the rest.
type patternParser struct {
	s        string // all of it
	pos      int
	depth    int
	foldCase bool
}

func parsePattern(s string) (expr, error) {
	if len(s) > maxPattern {
		return nil, unsupported("pattern of %d bytes, over %d", len(s), maxPattern)
	}
	p := &patternParser{s: s}
	if p.take("(?i)") {
		p.foldCase = true
	}
	e, err := p.alternatives()
	if err == nil && p.pos < len(s) {
		err = p.refuse("unbalanced )")
	}
	if err != nil {
		return nil, err
	}
	if shortest(e) == 0 {
		return nil, unsupported("pattern %q may match nothing", s)
	}
	return e, nil
}

func (p *patternParser) refuse(what string) error {
	return unsupported("pattern %q: %s at byte %d", p.s, what, p.pos)
}

func (p *patternParser) rest() string { return p.s[p.pos:] }

func (p *patternParser) take(word string) bool {
	if !strings.HasPrefix(p.rest(), word) {
		return false
	}
	p.pos += len(word)
	return true
}

func (p *patternParser) next() rune {
	r, n := utf8.DecodeRuneInString(p.rest())
	p.pos += n
	return r
}

func (p *patternParser) alternatives() (expr, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, p.refuse("deep nesting")
	}
	defer func() { p.depth-- }()
	var out alt
	for {
		s, err := p.sequence()
		if err != nil {
			return nil, err
		}
		out = append(out, s)
		if !p.take("|") {
			break
		}
	}
	if len(out) == 1 {
		return out[0], nil
	}
	return out, nil
}

func (p *patternParser) sequence() (expr, error) {
	var out seq
	before := rune(-1) // a literal letter that stands right before, where case does not count
	for p.pos < len(p.s) && p.s[p.pos] != '|' && p.s[p.pos] != ')' {
		start := p.pos
		e, err := p.atom()
		if err != nil {
			return nil, err
		}
		letter := rune(-1)
		if p.foldCase && p.pos == start+1 {
			letter = rune(p.s[start] | 0x20)
			if foldsTogether(before, letter) {
				return nil, p.refuse("two letters with a common case folding")
			}
		}
		before = letter
		if e, err = p.quantified(e); err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	if len(out) == 1 {
		return out[0], nil
	}
	return out, nil
}

// foldsTogether: one code point folds to these two letters (ß, ﬀ, ﬁ, ﬂ, ﬆ), so Oniguruma lets it stand for both.
func foldsTogether(a, b rune) bool {
	return a == 's' && (b == 's' || b == 't') || a == 'f' && (b == 'f' || b == 'i' || b == 'l')
}

func (p *patternParser) atom() (expr, error) {
	switch c := p.s[p.pos]; c {
	case '(':
		p.pos++
		return p.group()
	case '[':
		p.pos++
		rs, err := p.class()
		return set(rs), err
	case '\\':
		p.pos++
		rs, _, err := p.escape()
		if err == nil {
			rs, err = p.folded(rs, false)
		}
		return set(rs), err
	case '.':
		p.pos++
		return set(ranges{{'\n', '\n'}}.not()), nil
	case '$':
		p.pos++
		return lineEnd{}, nil
	case '^', '*', '+', '?', '{', ']':
		return nil, p.refuse(strconv.Quote(string(c)))
	default:
		r := p.next()
		rs, err := p.folded(ranges{{r, r}}, false)
		return set(rs), err
	}
}

// group reads what follows an opening parenthesis.
func (p *patternParser) group() (expr, error) {
	fold := p.foldCase
	wrap := func(e expr) expr { return e }
	switch {
	case p.take("?:"):
	case p.take("?i:"):
		p.foldCase = true
	case p.take("?-i:"):
		p.foldCase = false
	case p.take("?>"):
		wrap = func(e expr) expr { return &sealed{e} }
	case p.take("?="):
		wrap = func(e expr) expr { return &look{of: e} }
	case p.take("?!"):
		wrap = func(e expr) expr { return &look{of: e, not: true} }
	case p.take("?<="):
		wrap = func(e expr) expr { return &look{of: e, behind: true} }
	case p.take("?<!"):
		wrap = func(e expr) expr { return &look{of: e, behind: true, not: true} }
	case p.take("?"):
		return nil, p.refuse("kind of group")
	}
	e, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if !p.take(")") {
		return nil, p.refuse("missing )")
	}
	p.foldCase = fold
	e = wrap(e)
	if l, ok := e.(*look); ok && l.behind {
		if _, one := l.of.(set); !one {
			return nil, p.refuse("look-behind at more than one character")
		}
	}
	return e, nil
}

// quantified reads the quantifier behind e, if any.
func (p *patternParser) quantified(e expr) (expr, error) {
	q := &repeat{of: e}
	switch {
	case p.take("?"):
		q.max = 1
	case p.take("*"):
		q.max = -1
	case p.take("+"):
		q.min, q.max = 1, -1
	case strings.HasPrefix(p.rest(), "{"):
		if err := p.interval(q); err != nil {
			return nil, err
		}
		if p.take("+") { // not possessive, as behind the others: (x{n,m})+
			q = &repeat{of: q, min: 1, max: -1}
		}
		return p.repeated(q)
	default:
		return e, nil
	}
	q.possessive = p.take("+")
	return p.repeated(q)
}

// repeated checks q, whose quantifier was read.
func (p *patternParser) repeated(q *repeat) (expr, error) {
	if next := p.rest(); next != "" && strings.IndexByte("?*+{", next[0]) >= 0 {
		return nil, p.refuse("lazy or double quantifier")
	}
	if _, one := q.of.(set); !one && (shortest(q.of) == 0 || max(q.min, q.max) > maxCount) {
		return nil, p.refuse("repetition of what may be nothing, or too often")
	}
	return q, nil
}

// interval reads {n}, {n,} or {n,m}.
func (p *patternParser) interval(q *repeat) error {
	body, _, ok := strings.Cut(p.rest()[1:], "}")
	low, high, two := strings.Cut(body, ",")
	n, err := strconv.ParseUint(low, 10, 16)
	if !ok || err != nil {
		return p.refuse("brace")
	}
	q.min, q.max = int(n), int(n)
	if two && high == "" {
		q.max = -1
	} else if two {
		m, err := strconv.ParseUint(high, 10, 16)
		if err != nil || m < n {
			return p.refuse("brace")
		}
		q.max = int(m)
	}
	if q.max == 0 {
		return p.refuse("count of 0")
	}
	p.pos += len(body) + 2
	return nil
}

// shortest is the least number of code points that e takes.
func shortest(e expr) int {
	switch e := e.(type) {
	case set:
		return 1
	case seq:
		n := 0
		for _, part := range e {
			n += shortest(part)
		}
		return n
	case alt:
		n := shortest(e[0])
		for _, part := range e[1:] {
			n = min(n, shortest(part))
		}
		return n
	case *repeat:
		return e.min * shortest(e.of)
	case *sealed:
		return shortest(e.of)
	}
	return 0 // *look, lineEnd
}
