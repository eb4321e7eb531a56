package token

import (
	"slices"
	"unicode/utf8"
)

// runeRange is the code points from lo to hi, both included.
type runeRange struct{ lo, hi rune }

// ranges is a set of code points: sorted, disjoint, not touching.
type ranges []runeRange

// union takes ranges in any order, overlapping or not.
func union(sets ...ranges) ranges {
	all := slices.Concat(sets...)
	slices.SortFunc(all, func(a, b runeRange) int { return int(a.lo - b.lo) })
	out := all[:0]
	for _, r := range all {
		if n := len(out); n > 0 && r.lo <= out[n-1].hi+1 {
			out[n-1].hi = max(out[n-1].hi, r.hi)
			continue
		}
		out = append(out, r)
	}
	return out
}

// not is every code point that is not in s. Surrogates are in it, but never in a text.
func (s ranges) not() ranges {
	var out ranges
	next := rune(0)
	for _, r := range s {
		if r.lo > next {
			out = append(out, runeRange{next, r.lo - 1})
		}
		next = r.hi + 1
	}
	if next <= utf8.MaxRune {
		out = append(out, runeRange{next, utf8.MaxRune})
	}
	return out
}

func (s ranges) and(t ranges) ranges { return union(s.not(), t.not()).not() }

// blockBits code points share a block of a charset.
const blockBits = 256

// charset is a set of code points made for looking up: a bit per code point in blocks, equal blocks stored once.
type charset struct {
	ascii  [utf8.RuneSelf]bool
	index  [(utf8.MaxRune + 1) / blockBits]uint16
	blocks [][blockBits / 64]uint64
}

func newCharset(s ranges) *charset {
	c := &charset{}
	seen := map[[blockBits / 64]uint64]uint16{}
	at := 0 // the first range that may reach into the block
	for b := range c.index {
		lo, hi := rune(b*blockBits), rune(b*blockBits+blockBits-1)
		for at < len(s) && s[at].hi < lo {
			at++
		}
		var block [blockBits / 64]uint64
		for i := at; i < len(s) && s[i].lo <= hi; i++ {
			for r := max(lo, s[i].lo); r <= min(hi, s[i].hi); r++ {
				block[(r-lo)/64] |= 1 << (r % 64)
			}
		}
		n, ok := seen[block]
		if !ok {
			n = uint16(len(c.blocks))
			seen[block] = n
			c.blocks = append(c.blocks, block)
		}
		c.index[b] = n
	}
	for r := range c.ascii {
		c.ascii[r] = c.wide(rune(r))
	}
	return c
}

func (c *charset) wide(r rune) bool {
	return c.blocks[c.index[r/blockBits]][r%blockBits/64]>>(r%64)&1 != 0
}

func (c *charset) has(r rune) bool {
	if r < utf8.RuneSelf {
		return c.ascii[r]
	}
	return c.wide(r)
}

// run is how many bytes of s its leading members take.
func (c *charset) run(s string) int {
	i := 0
	for i < len(s) {
		if b := s[i]; b < utf8.RuneSelf {
			if !c.ascii[b] {
				break
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if !c.wide(r) {
			break
		}
		i += n
	}
	return i
}

// size is what c takes, in bytes.
func (c *charset) size() int64 {
	return int64(len(c.ascii) + 2*len(c.index) + blockBits/8*len(c.blocks))
}
