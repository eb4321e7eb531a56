package chat

import (
	"math"
	"strconv"
	"strings"

	"github.com/kvscout/kvscout/render/pyval"
)

// spec is a format specification, of "%" or of str.format.
type spec struct {
	fill             string
	align            byte // '<', '>', '^', '=' or 0
	sign             byte // '+', ' ' or 0
	alternate, zero  bool
	width, precision int // -1: none
	grouping         byte
	verb             byte
}

// maxWidth bounds widths and precisions before anything is made.
const maxWidth = 10_000

// percent is s % v.
func (st *state) percent(s string, v pyval.Value) (pyval.Value, error) {
	f := &percentFormat{st: st, args: []pyval.Value{v}, single: true}
	switch v := v.(type) {
	case *pyval.Tuple:
		f.args, f.single = v.Items, false
	case *pyval.Dict:
		f.mapping = v
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		piece, n, err := f.directive(s[i+1:])
		if err != nil {
			return nil, err
		}
		if err := st.grow(b.Len() + len(piece)); err != nil {
			return nil, err
		}
		b.WriteString(piece)
		s = s[i+1+n:]
	}
	_, list := v.(*pyval.List)
	_, loose := v.(pyval.Object)
	if f.used < len(f.args) && f.mapping == nil && !(f.single && (list || loose) && f.used == 0) {
		return nil, failf("not all arguments converted during string formatting")
	}
	return b.String(), nil
}

type percentFormat struct {
	st      *state
	args    []pyval.Value
	used    int
	single  bool
	mapping *pyval.Dict
}

func (f *percentFormat) next() (pyval.Value, error) {
	if f.used >= len(f.args) {
		return nil, failf("not enough arguments for format string")
	}
	f.used++
	return f.args[f.used-1], nil
}

// directive reads what follows a "%" and gives its text and length.
func (f *percentFormat) directive(s string) (string, int, error) {
	sp := spec{fill: " ", align: '>', width: -1, precision: -1}
	n := 0
	var keyed pyval.Value
	if strings.HasPrefix(s, "(") {
		end := strings.IndexByte(s, ')')
		if f.mapping == nil || end < 0 {
			return "", 0, failf("format requires a mapping")
		}
		v, ok := f.mapping.Get(s[1:end])
		if !ok {
			return "", 0, failf("format key is missing")
		}
		keyed, n = v, end+1
	}
	for ; n < len(s) && strings.IndexByte("-+ #0", s[n]) >= 0; n++ {
		switch s[n] {
		case '-':
			sp.align = '<'
		case '+':
			sp.sign = '+'
		case ' ':
			if sp.sign == 0 {
				sp.sign = ' '
			}
		case '#':
			sp.alternate = true
		case '0':
			sp.zero = true
		}
	}
	var err error
	if n, err = scanWidth(s, n, &sp.width); err != nil {
		return "", 0, err
	}
	if n < len(s) && s[n] == '.' {
		sp.precision = 0
		if n, err = scanWidth(s, n+1, &sp.precision); err != nil {
			return "", 0, err
		}
	}
	if n >= len(s) {
		return "", 0, failf("incomplete format")
	}
	sp.verb = s[n]
	n++
	if sp.verb == '%' {
		return "%", n, nil
	}
	v := keyed
	if v == nil {
		if v, err = f.next(); err != nil {
			return "", 0, err
		}
	}
	text, err := f.convert(sp, v)
	return text, n, err
}

func scanWidth(s string, n int, width *int) (int, error) {
	if n < len(s) && s[n] == '*' {
		return n, unsupportedf("width '*' in a format")
	}
	start := n
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	if n > start {
		w, err := strconv.Atoi(s[start:n])
		if err != nil || w > maxWidth {
			return n, limitf("width of more than %d in a format", maxWidth)
		}
		*width = w
	}
	return n, nil
}

func (f *percentFormat) convert(sp spec, v pyval.Value) (string, error) {
	if u, ok := v.(*undefined); ok && sp.verb != 's' && sp.verb != 'r' {
		return "", u.fail()
	}
	switch sp.verb {
	case 's', 'r':
		str := pyval.Str
		if sp.verb == 'r' {
			str = pyval.Repr
		}
		s, err := str(v)
		sp.zero = false
		return sp.text(s), err
	case 'd', 'i', 'u':
		if x, ok := v.(float64); ok {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return "", failf("cannot convert float to integer")
			}
			v = truncate(x)
		}
		sp.verb = 'd'
		return sp.int(v)
	case 'x', 'X', 'o':
		return sp.int(v)
	case 'f', 'F', 'e', 'E', 'g', 'G':
		return sp.float(v)
	}
	return "", unsupportedf("format character %q", sp.verb)
}

// text pads a text, cut to the precision.
func (sp spec) text(s string) string {
	if sp.precision >= 0 {
		s = s[:pyval.Offset(s, sp.precision)]
	}
	return sp.padded("", s)
}

// int formats an int.
func (sp spec) int(v pyval.Value) (string, error) {
	b := pyval.BigInt(v)
	if b == nil {
		return "", failf("%%%c format: an integer is required, not %s", sp.verb, pyval.TypeName(v))
	}
	if sp.precision >= 0 {
		return "", unsupportedf("precision of an integer format")
	}
	base := map[byte]int{'d': 10, 'x': 16, 'X': 16, 'o': 8, 'b': 2}[sp.verb]
	digits, err := pyval.Repr(v)
	if _, isBool := v.(bool); base != 10 || isBool {
		digits = b.Text(base)
	}
	if err != nil {
		return "", err
	}
	sign, digits := signOf(digits, sp.sign)
	if sp.alternate && base != 10 {
		sign += "0" + strings.ToLower(string(sp.verb))
	}
	if sp.verb == 'X' {
		digits = strings.ToUpper(digits)
		if sp.alternate {
			sign = sign[:len(sign)-1] + "X"
		}
	}
	return sp.padded(sign, group(digits, sp.grouping)), nil
}

func signOf(digits string, plus byte) (sign, rest string) {
	switch {
	case strings.HasPrefix(digits, "-"):
		return "-", digits[1:]
	case plus != 0:
		return string(plus), digits
	}
	return "", digits
}

// group puts a separator between each three digits.
func group(digits string, sep byte) string {
	if sep == 0 {
		return digits
	}
	whole, rest, dot := strings.Cut(digits, ".")
	var b []byte
	for i := range len(whole) {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b = append(b, sep)
		}
		b = append(b, whole[i])
	}
	if dot {
		return string(b) + "." + rest
	}
	return string(b)
}

// float formats a number as a float.
func (sp spec) float(v pyval.Value) (string, error) {
	x, ok := asFloat(v)
	if !ok {
		return "", failf("must be real number, not %s", pyval.TypeName(v))
	}
	precision := sp.precision
	if precision < 0 {
		precision = 6
	}
	verb := sp.verb | 0x20
	if sp.alternate || math.IsNaN(x) || math.IsInf(x, 0) {
		return "", unsupportedf("format of a float that is not finite, or with '#'")
	}
	percent := ""
	if sp.verb == '%' {
		x, verb, percent = x*100, 'f', "%"
	}
	if verb == 'g' && precision == 0 {
		precision = 1
	}
	digits := strconv.FormatFloat(x, verb, precision, 64)
	if sp.verb == 'E' || sp.verb == 'G' {
		digits = strings.ToUpper(digits)
	}
	sign, digits := signOf(digits, sp.sign)
	return sp.padded(sign, group(digits, sp.grouping)+percent), nil
}

// padded fills up to the width: zeros go between sign and digits.
func (sp spec) padded(sign, s string) string {
	n := sp.width - pyval.Len(sign) - pyval.Len(s)
	if n <= 0 {
		return sign + s
	}
	if sp.zero && sp.align != '<' {
		return sign + strings.Repeat("0", n) + s
	}
	switch sp.align {
	case '<':
		return sign + s + strings.Repeat(sp.fill, n)
	case '^':
		return strings.Repeat(sp.fill, n/2) + sign + s + strings.Repeat(sp.fill, n-n/2)
	case '=':
		return sign + strings.Repeat(sp.fill, n) + s
	}
	return strings.Repeat(sp.fill, n) + sign + s
}
