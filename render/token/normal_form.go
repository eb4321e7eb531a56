package token

import (
	"slices"
	"unicode/utf8"
)

// normalForm is one of Unicode's four normalization forms, as the crate unicode-normalization-alignments makes them:
// of Unicode 9.0, without a limit on combining characters.
type normalForm struct {
	compatible, composed bool
	// moved is what can change or be changed: a text with none of it is in this form.
	moved *charset
}

// Hangul syllables are made by arithmetic (Unicode 3.12).
const (
	hangulL, hangulV, hangulT, hangulS = 0x1100, 0x1161, 0x11A7, 0xAC00
	countL, countV, countT             = 19, 21, 28
	countS                             = countL * countV * countT
)

func newNormalForm(compatible, composed bool) *normalForm {
	f := &normalForm{compatible: compatible, composed: composed}
	t := tables()
	var moved ranges
	add := func(lo, hi rune) { moved = append(moved, runeRange{lo, hi}) }
	for r := range t.class {
		add(r, r)
	}
	for r := range t.canonical {
		if !composed || !f.stays(r) {
			add(r, r)
		}
	}
	if compatible {
		for r := range t.compatible {
			add(r, r)
		}
	}
	if composed {
		for pair := range t.compose {
			add(pair[1], pair[1])
		}
		add(hangulV, hangulV+countV-1)
		add(hangulT+1, hangulT+countT-1)
	} else {
		add(hangulS, hangulS+countS-1)
	}
	f.moved = newCharset(union(moved))
	return f
}

// stays says whether r alone is taken apart and put together again.
func (f *normalForm) stays(r rune) bool {
	out := f.recompose(f.decompose([]rune{r}))
	return len(out) == 1 && out[0] == r
}

// normalize works on the stretches around what can move. What cannot is of class 0 and composes with nothing before it,
// so a stretch may begin and end at it.
func (f *normalForm) normalize(s string, _ *matcher) string {
	var out []byte
	done, still := 0, 0 // what out has of s; where the code point begins that stands before i and cannot move
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !f.moved.has(r) {
			still = i
			i += n
			continue
		}
		start := max(still, done)
		for i < len(s) {
			if r, n = utf8.DecodeRuneInString(s[i:]); !f.moved.has(r) {
				break
			}
			i += n
		}
		rs := f.decompose([]rune(s[start:i]))
		if f.composed {
			rs = f.recompose(rs)
		}
		out = append(append(out, s[done:start]...), string(rs)...)
		done, still = i, i
	}
	if done == 0 {
		return s
	}
	return string(append(out, s[done:]...))
}

// decompose takes every code point apart and puts combining ones into canonical order.
func (f *normalForm) decompose(in []rune) []rune {
	t := tables()
	out := make([]rune, 0, len(in)+len(in)/4)
	pending := 0 // where the combining code points begin that are not in order yet
	settle := func() {
		if len(out)-pending > 1 {
			slices.SortStableFunc(out[pending:], func(a, b rune) int { return int(t.class[a]) - int(t.class[b]) })
		}
		pending = len(out)
	}
	var hangul [3]rune
	for _, r := range in {
		parts, ok := []rune(nil), false
		switch {
		case r < utf8.RuneSelf:
		case hangulS <= r && r < hangulS+countS:
			parts, ok = hangulParts(r, &hangul), true
		default:
			if f.compatible {
				parts, ok = t.compatible[r]
			}
			if !ok {
				parts, ok = t.canonical[r]
			}
		}
		if !ok {
			hangul[0] = r
			parts = hangul[:1]
		}
		for _, part := range parts {
			if t.class[part] == 0 {
				settle()
				out = append(out, part)
				pending = len(out)
				continue
			}
			out = append(out, part)
		}
	}
	settle()
	return out
}

func hangulParts(r rune, into *[3]rune) []rune {
	i := r - hangulS
	into[0] = hangulL + i/(countV*countT)
	into[1] = hangulV + i%(countV*countT)/countT
	into[2] = hangulT + i%countT
	if into[2] == hangulT {
		return into[:2]
	}
	return into[:3]
}

// recompose puts together what has a composed form (Unicode 3.11). It works in place.
func (f *normalForm) recompose(in []rune) []rune {
	t := tables()
	out := in[:0]
	starter := -1 // where in out the last code point of class 0 is
	last := -1    // the class of the last combining code point behind it, -1 if there is none
	for _, r := range in {
		class := int(t.class[r])
		if starter >= 0 && last < class {
			if both, ok := composePair(t, out[starter], r); ok {
				out[starter] = both
				continue
			}
		}
		out = append(out, r)
		if class == 0 {
			starter, last = len(out)-1, -1
		} else {
			last = class
		}
	}
	return out
}

func composePair(t *unicodeTables, a, b rune) (rune, bool) {
	switch {
	case hangulL <= a && a < hangulL+countL && hangulV <= b && b < hangulV+countV:
		return hangulS + (a-hangulL)*countV*countT + (b-hangulV)*countT, true
	case hangulS <= a && a < hangulS+countS && (a-hangulS)%countT == 0 && hangulT < b && b < hangulT+countT:
		return a + b - hangulT, true
	}
	r, ok := t.compose[[2]rune{a, b}]
	return r, ok
}
