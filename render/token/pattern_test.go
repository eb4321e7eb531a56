package token

import (
	"testing"
	"unicode/utf8"
)

// TestPattern_FirstBytes: what a match may begin with is found whatever code point it is. A class is tried on every code
// point in a text of its own, by find, which goes by first bytes, and against the ranges that were parsed.
func TestPattern_FirstBytes(t *testing.T) {
	for _, class := range []string{`\P{Cn}`, `\p{Cn}`, `[^\p{L}\p{Cn}]`, `\S`, `[\x{80}-\x{E000}]`, `[\x{FFFF}-\x{10000}]`, `.`, `[^\s\p{L}\p{N}]`} {
		e, err := parsePattern(class)
		if err != nil {
			t.Fatal(err)
		}
		in := map[rune]bool{}
		for _, r := range e.(set) {
			for c := r.lo; c <= r.hi; c++ {
				in[c] = true
			}
		}
		p := compileExpr(e)
		for c := rune(0); c <= utf8.MaxRune; c++ {
			if !utf8.ValidRune(c) {
				continue
			}
			m := newMatcher(4)
			if _, _, ok := m.find(p, string(c), 0); ok != in[c] {
				t.Fatalf("%s, %U: got %v, want %v", class, c, ok, in[c])
			}
		}
	}
}

// TestPattern_Classes: code points whose class differs between versions of Unicode, by Oniguruma as the library links it
// (Unicode 16) and by Rust.
func TestPattern_Classes(t *testing.T) {
	for _, c := range []struct {
		class string
		char  rune
		want  bool
	}{
		{`\p{L}`, 0x1C89, true}, // new in 16
		{`\p{L}`, 0x10D4A, true},
		{`\p{Lu}`, 0xA7CE, false}, // new in 17
		{`\p{N}`, 0x11BF0, true},
		{`\s`, 0x85, true},
		{`\s`, 0x1C, false},
		{`\s`, 0x200B, false},
		{`\p{Han}`, '々', true},
		{`\p{P}`, '$', false},
		{`\p{S}`, '$', true},
		{`\w`, 0x200C, false},
		{`(?i:s)`, 'ſ', true},
		{`(?i:[a-z])`, 0x212A, true},
		{`(?i:a)`, 'ſ', false},
	} {
		p, err := compilePattern(c.class)
		if err != nil {
			t.Fatal(err)
		}
		m := newMatcher(4)
		if _, _, ok := m.find(p, string(c.char), 0); ok != c.want {
			t.Errorf("%s, %U: got %v, want %v", c.class, c.char, ok, c.want)
		}
	}
}
