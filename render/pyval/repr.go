package pyval

import (
	"errors"
	"math/big"
	"strconv"
	"strings"
)

var errBigInt = errors.New("integer has more than 4300 digits")

// Str is str(v).
func Str(v Value) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case Object:
		return v.PyStr()
	}
	return Repr(v)
}

// MaxText bounds the texts that Str and Repr make of other values, in bytes.
const MaxText = 32 << 20

// Repr is repr(v). It errs with ErrTooBig.
func Repr(v Value) (string, error) {
	b, err := appendRepr(nil, v, maxDepth)
	return string(b), err
}

func appendRepr(b []byte, v Value, depth int) ([]byte, error) {
	if depth == 0 || len(b) > MaxText {
		return b, ErrTooBig
	}
	switch v := v.(type) {
	case None:
		return append(b, "None"...), nil
	case bool:
		if v {
			return append(b, "True"...), nil
		}
		return append(b, "False"...), nil
	case int64:
		return strconv.AppendInt(b, v, 10), nil
	case *big.Int:
		return appendBig(b, v)
	case float64:
		return appendFloat(b, v), nil
	case string:
		return appendStringRepr(b, v), nil
	case *List:
		b, err := appendItems(append(b, '['), v.Items, depth-1)
		return append(b, ']'), err
	case *Tuple:
		b, err := appendItems(append(b, '('), v.Items, depth-1)
		if len(v.Items) == 1 {
			b = append(b, ',')
		}
		return append(b, ')'), err
	case *Dict:
		return appendDictRepr(b, v, depth-1)
	case Object:
		s, err := v.PyRepr()
		return append(b, s...), err
	}
	return b, ErrType
}

func appendItems(b []byte, items []Value, depth int) ([]byte, error) {
	var err error
	for i, item := range items {
		if i > 0 {
			b = append(b, ", "...)
		}
		if b, err = appendRepr(b, item, depth); err != nil {
			return b, err
		}
	}
	return b, nil
}

func appendDictRepr(b []byte, d *Dict, depth int) ([]byte, error) {
	b = append(b, '{')
	var err error
	for i, e := range d.entries {
		if i > 0 {
			b = append(b, ", "...)
		}
		if b, err = appendRepr(b, e.Key, depth); err != nil {
			return b, err
		}
		b = append(b, ": "...)
		if b, err = appendRepr(b, e.Value, depth); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

const lowerHex = "0123456789abcdef"

// appendStringRepr writes repr of a string: in single quotes, or in double ones if it holds only single ones.
func appendStringRepr(b []byte, s string) []byte {
	quote := byte('\'')
	if strings.IndexByte(s, '\'') >= 0 && strings.IndexByte(s, '"') < 0 {
		quote = '"'
	}
	b = append(b, quote)
	for s != "" {
		r, size := DecodeRune(s)
		switch {
		case r == rune(quote) || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case Printable(r):
			b = append(b, s[:size]...)
		case r < 0x100:
			b = append(b, '\\', 'x', lowerHex[r>>4], lowerHex[r&15])
		case r < 0x10000:
			b = appendHex(append(b, '\\', 'u'), r, 4)
		default:
			b = appendHex(append(b, '\\', 'U'), r, 8)
		}
		s = s[size:]
	}
	return append(b, quote)
}

func appendHex(b []byte, r rune, digits int) []byte {
	for i := digits - 1; i >= 0; i-- {
		b = append(b, lowerHex[r>>(4*i)&15])
	}
	return b
}
