package token

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// unicodeData is what Hugging Face's library knows of code points. It is not Go's unicode package, nor one version of
// Unicode: Oniguruma's classes are of Unicode 16, normalization is of Unicode 9. testdata/tables.py asks the library.
//
//go:embed unicode.txt.gz
var unicodeData []byte

// unicodeTables is unicodeData read.
type unicodeTables struct {
	// sets by name: general categories (Lu), scripts (Han), \s \d \w of Oniguruma, and "digits", "punctuation",
	// "whitespace", "word" of the library itself.
	sets map[string]ranges
	// class is the canonical combining class, where it is not 0.
	class map[rune]uint8
	// canonical and compatible are full decompositions. What is in canonical only is compatible too.
	canonical, compatible map[rune][]rune
	compose               map[[2]rune]rune
}

var tables = sync.OnceValue(func() *unicodeTables {
	t, err := readTables(unicodeData)
	if err != nil {
		panic("embedded unicode tables: " + err.Error()) // a build that is broken for everyone
	}
	return t
})

func readTables(data []byte) (*unicodeTables, error) {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	t := &unicodeTables{
		sets: map[string]ranges{}, class: map[rune]uint8{},
		canonical: map[rune][]rune{}, compatible: map[rune][]rune{}, compose: map[[2]rune]rune{},
	}
	lines := bufio.NewScanner(zip)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if err := t.line(strings.Fields(lines.Text())); err != nil {
			return nil, fmt.Errorf("line %.40q: %w", lines.Text(), err)
		}
	}
	return t, lines.Err()
}

func (t *unicodeTables) line(f []string) error {
	kind, f := f[0], f[1:]
	if kind == "set" || kind == "ccc" {
		rs, err := parseRanges(f[1:])
		if err != nil {
			return err
		}
		if kind == "set" {
			t.sets[f[0]] = rs
			return nil
		}
		class, err := strconv.ParseUint(f[0], 10, 8)
		for _, r := range rs {
			for c := r.lo; c <= r.hi; c++ {
				t.class[c] = uint8(class)
			}
		}
		return err
	}
	rs := make([]rune, len(f))
	for i := range f {
		r, err := parseHex(f[i])
		if err != nil {
			return err
		}
		rs[i] = r
	}
	switch kind {
	case "canonical":
		t.canonical[rs[0]] = rs[1:]
	case "compatible":
		t.compatible[rs[0]] = rs[1:]
	case "compose":
		t.compose[[2]rune{rs[0], rs[1]}] = rs[2]
	default:
		return fmt.Errorf("unknown kind %q", kind)
	}
	return nil
}

func parseHex(s string) (rune, error) {
	r, err := strconv.ParseInt(s, 16, 32)
	return rune(r), err
}

// parseRanges reads "41-5A 61".
func parseRanges(fields []string) (ranges, error) {
	out := make(ranges, len(fields))
	for i, f := range fields {
		first, last, two := strings.Cut(f, "-")
		if !two {
			last = first
		}
		var err error
		if out[i].lo, err = parseHex(first); err != nil {
			return nil, err
		}
		if out[i].hi, err = parseHex(last); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// property is the set that \p{name} means to Oniguruma. One letter is the categories that begin with it.
func property(name string) (ranges, bool) {
	t := tables()
	if len(name) == 1 {
		var parts []ranges
		for n, s := range t.sets {
			if len(n) == 2 && n[0] == name[0] && 'a' <= n[1] && n[1] <= 'z' {
				parts = append(parts, s)
			}
		}
		return union(parts...), len(parts) > 0
	}
	s, ok := t.sets[name]
	return s, ok && 'A' <= name[0] && name[0] <= 'Z'
}
