package pyval

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxIntDigits is sys.get_int_max_str_digits: Python neither reads nor prints longer integers.
const maxIntDigits = 4300

// DecodeRune is utf8.DecodeRuneInString that also reads a surrogate held in three bytes.
func DecodeRune(s string) (rune, int) {
	if s == "" {
		return utf8.RuneError, 0
	}
	if s[0] < utf8.RuneSelf {
		return rune(s[0]), 1
	}
	r, n := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && n == 1 && surrogateAt(s) {
		return rune(s[0]&0x0f)<<12 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f), 3
	}
	return r, n
}

func surrogateAt(s string) bool {
	return len(s) >= 3 && s[0] == 0xed && s[1] >= 0xa0 && s[1] <= 0xbf && s[2] >= 0x80 && s[2] <= 0xbf
}

// HasSurrogate reports whether s holds a lone surrogate, which no UTF-8 encoder of Python takes.
func HasSurrogate(s string) bool {
	for {
		i := strings.IndexByte(s, 0xed)
		if i < 0 {
			return false
		}
		if s = s[i:]; surrogateAt(s) {
			return true
		}
		s = s[1:]
	}
}

// AppendRune is utf8.AppendRune that also writes a surrogate.
func AppendRune(b []byte, r rune) []byte {
	if r >= 0xd800 && r <= 0xdfff {
		return append(b, 0xed, 0x80|byte(r>>6&0x3f), 0x80|byte(r&0x3f))
	}
	return utf8.AppendRune(b, r)
}

// IsASCII reports whether every byte of s is below 0x80.
func IsASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Len is len(s): code points.
func Len(s string) int {
	if IsASCII(s) {
		return len(s)
	}
	n := 0
	for s != "" {
		_, size := DecodeRune(s)
		s = s[size:]
		n++
	}
	return n
}

// Offset is the byte offset of code point i, or len(s) if there are no more than i.
func Offset(s string, i int) int {
	off := 0
	for ; i > 0 && off < len(s); i-- {
		_, size := DecodeRune(s[off:])
		off += size
	}
	return off
}

// IsSpace is str.isspace of one character.
func IsSpace(r rune) bool {
	switch {
	case r < 0x80:
		return r == ' ' || r >= 0x09 && r <= 0x0d || r >= 0x1c && r <= 0x1f
	case r == 0x85 || r == 0xa0 || r == 0x1680 || r >= 0x2000 && r <= 0x200a:
		return true
	}
	return r == 0x2028 || r == 0x2029 || r == 0x202f || r == 0x205f || r == 0x3000
}

// Float is repr of a float.
func Float(f float64) string { return string(appendFloat(nil, f)) }

func appendFloat(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, "nan"...)
	case math.IsInf(f, 1):
		return append(b, "inf"...)
	case math.IsInf(f, -1):
		return append(b, "-inf"...)
	}
	var buf [32]byte
	s := strconv.AppendFloat(buf[:0], f, 'e', -1, 64)
	exp, _ := strconv.Atoi(string(s[strings.LastIndexByte(string(s), 'e')+1:]))
	if exp < -4 || exp >= 16 {
		return append(b, s...) // Go, too, writes a sign and at least two digits of exponent
	}
	start := len(b)
	b = strconv.AppendFloat(b, f, 'f', -1, 64)
	if strings.IndexByte(string(b[start:]), '.') < 0 {
		b = append(b, ".0"...)
	}
	return b
}

func appendBig(b []byte, v *big.Int) ([]byte, error) {
	if v.BitLen() > 4*maxIntDigits { // no need to print it to know
		return b, errBigInt
	}
	s := v.String()
	if len(strings.TrimPrefix(s, "-")) > maxIntDigits {
		return b, errBigInt
	}
	return append(b, s...), nil
}

// Printable is str.isprintable of one character.
func Printable(r rune) bool {
	if r < 0x7f {
		return r >= 0x20
	}
	return unicode.IsPrint(r)
}
