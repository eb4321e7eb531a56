package chat

import (
	"strings"
	"unicode"

	"github.com/kvscout/kvscout/render/pyval"
)

func allRunes(is func(rune) bool) methodFunc {
	return func(st *state, self pyval.Value, a arguments) (pyval.Value, error) {
		s := self.(string)
		return s != "" && all(s, is), a.none("method")
	}
}

// allOrNone is allRunes where the empty text counts.
func allOrNone(is func(rune) bool) methodFunc {
	return func(_ *state, self pyval.Value, a arguments) (pyval.Value, error) {
		return all(self.(string), is), a.none("method")
	}
}

func all(s string, is func(rune) bool) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !is(r) }) < 0
}

func isDecimalRune(r rune) bool { return unicode.Is(unicode.Nd, r) }

func isAlphaRune(r rune) bool { return unicode.IsLetter(r) }

func isAlnumRune(r rune) bool { return isAlphaRune(r) || isNumericRune(r) }

// isDigitRune is true for decimals and for digits such as superscripts (Numeric_Type=Digit).
func isDigitRune(r rune) bool {
	if isDecimalRune(r) {
		return true
	}
	switch {
	case r == 0xb2 || r == 0xb3 || r == 0xb9 || r == 0x2070 || r >= 0x2074 && r <= 0x2079 || r >= 0x2080 && r <= 0x2089:
		return true
	case r >= 0x2460 && r <= 0x2468 || r >= 0x2474 && r <= 0x247c || r >= 0x2488 && r <= 0x2490 || r == 0x24ea:
		return true
	case r >= 0x24f5 && r <= 0x24fd || r == 0x24ff || r >= 0x2776 && r <= 0x277e || r >= 0x2780 && r <= 0x2788:
		return true
	case r >= 0x278a && r <= 0x2792 || r >= 0x1369 && r <= 0x1371 || r >= 0x1f100 && r <= 0x1f10a || r == 0x19da:
		return true
	}
	return r >= 0x10a40 && r <= 0x10a43 || r >= 0x10e60 && r <= 0x10e68 || r >= 0x11052 && r <= 0x1105a
}

func isNumericRune(r rune) bool {
	if unicode.IsNumber(r) {
		return true
	}
	return strings.ContainsRune(hanNumbers, r)
}

// hanNumbers are the ideographs with a numeric value that texts meet.
const hanNumbers = "〇一七万三九二五亖亿什仟仨伍佰億兆兩八六十千卄卅卌叁参參叄四壱壹壺弌弍弎弐拾捌柒漆玖百肆萬貮貳贰" +
	"贏阡陆陌陸零㐅㒃㠪㭍㭪"

// cased is islower or isupper: at least one cased character, and none of the other case.
func cased(upper bool) methodFunc {
	return func(_ *state, self pyval.Value, a arguments) (pyval.Value, error) {
		return isCase(self.(string), upper), a.none("method")
	}
}

func isCase(s string, upper bool) bool {
	found := false
	for _, r := range s {
		isUpper := unicode.IsUpper(r) || unicode.Is(unicode.Other_Uppercase, r)
		isLower := unicode.IsLower(r) || unicode.Is(unicode.Other_Lowercase, r)
		if unicode.IsTitle(r) || upper && isLower || !upper && isUpper {
			return false
		}
		found = found || isUpper || isLower
	}
	return found
}

// padder is center, ljust or rjust.
func padder(left, right bool) methodFunc {
	return func(st *state, self pyval.Value, a arguments) (pyval.Value, error) {
		v, err := a.bind("center()", "width", "fillchar")
		if err != nil {
			return nil, err
		}
		width, ok := indexOf(v[0])
		if !ok {
			return nil, failf("width must be int, not %s", pyval.TypeName(v[0]))
		}
		fill, err := text(v[1], "fill character", " ")
		if err != nil {
			return nil, err
		}
		if pyval.Len(fill) != 1 {
			return nil, failf("the fill character must be exactly one character long")
		}
		return st.pad(self.(string), fill, width, left, right)
	}
}

func (st *state) pad(s, fill string, width int, left, right bool) (pyval.Value, error) {
	n := width - pyval.Len(s)
	if n <= 0 {
		return s, nil
	}
	if n > st.text {
		return nil, limitf("a text of more than %d bytes", st.text)
	}
	if err := st.grow(len(s) + n*len(fill)); err != nil {
		return nil, err
	}
	before, after := 0, n
	switch {
	case left && right:
		before = n/2 + n&width&1
		after = n - before
	case left:
		before, after = n, 0
	}
	return strings.Repeat(fill, before) + s + strings.Repeat(fill, after), nil
}

func strZfill(st *state, self pyval.Value, a arguments) (pyval.Value, error) {
	v, err := a.required("zfill()", "width")
	if err != nil {
		return nil, err
	}
	width, err := integer(v[0], "width", 0)
	if err != nil {
		return nil, err
	}
	s := self.(string)
	sign := ""
	if strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-") {
		sign, s = s[:1], s[1:]
	}
	padded, err := st.pad(s, "0", width-len(sign), true, false)
	if err != nil {
		return nil, err
	}
	return sign + padded.(string), nil
}
