package token

import "strings"

// finder finds what a pre-tokenizer splits at: the first match in s that begins at from or later. A match is never empty.
type finder interface {
	next(m *matcher, s string, from int) (start, end int, ok bool)
}

func (p *pattern) next(m *matcher, s string, from int) (int, int, bool) { return m.find(p, s, from) }

// literal finds a text.
type literal string

func (l literal) next(_ *matcher, s string, from int) (int, int, bool) {
	i := strings.Index(s[from:], string(l))
	return from + i, from + i + len(l), i >= 0
}

// oneOf finds one code point of a set.
type oneOf struct{ set *charset }

func (o oneOf) next(_ *matcher, s string, from int) (int, int, bool) {
	for i, r := range s[from:] {
		if o.set.has(r) {
			return from + i, from + i + len(string(r)), true
		}
	}
	return 0, 0, false
}

// behavior says what becomes of a match (SplitDelimiterBehavior in tokenizers' normalizer.rs).
type behavior uint8

const (
	isolated     behavior = iota // a piece of its own
	removed                      // dropped
	contiguous                   // one piece with the matches next to it
	withPrevious                 // one piece with the text before it
	withNext                     // one piece with the text behind it
)

var behaviors = map[string]behavior{
	"Isolated": isolated, "Removed": removed, "Contiguous": contiguous,
	"MergedWithPrevious": withPrevious, "MergedWithNext": withNext,
}

// split cuts s at the matches of f and gives emit the pieces in order, with where they begin. No piece is empty.
// Inverted, the text between matches is taken for the matches.
func split(m *matcher, s string, f finder, b behavior, inverted bool, emit func(piece string, at int) error) error {
	c := cutter{s: s, b: b, emit: emit}
	for done := 0; done < len(s); {
		start, end, ok := f.next(m, s, done)
		if !ok {
			start, end = len(s), len(s)
		}
		if start > done {
			if err := c.part(start, inverted); err != nil {
				return err
			}
		}
		if end > start {
			if err := c.part(end, !inverted); err != nil {
				return err
			}
		}
		done = end
	}
	return c.flush()
}

// cutter joins parts of s, which come in order, to pieces.
type cutter struct {
	s          string
	b          behavior
	emit       func(piece string, at int) error
	start, end int  // the piece that waits for more, if any
	match      bool // whether its last part was a match
}

// part takes s from where the last part ended up to end.
func (c *cutter) part(end int, match bool) error {
	joins := false
	switch c.b {
	case contiguous:
		joins = match == c.match
	case withPrevious:
		joins = match && !c.match
	case withNext:
		joins = c.match && !match
	}
	if !joins {
		if err := c.flush(); err != nil {
			return err
		}
	}
	if c.b == removed && match {
		c.start = end
	}
	c.end, c.match = end, match
	return nil
}

func (c *cutter) flush() error {
	start := c.start
	c.start = c.end
	if start == c.end {
		return nil
	}
	return c.emit(c.s[start:c.end], start)
}
