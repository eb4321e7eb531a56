package pyval

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
)

// maxDepth bounds recursion over nested values. It is above what Parse lets in.
const maxDepth = 2000

// maxVisits bounds what Equal, Compare and Hashable look at. A value that a template builds may hold another one twice,
// that one a third twice, and so on: what looks small is endless.
const maxVisits = 1 << 22

// ErrTooBig says that values are nested deeper, or have more parts, than we follow.
var ErrTooBig = errors.New("value is too deep or too large")

// comparer counts what is left to look at; below zero the answer is worthless.
type comparer struct{ left int }

// Equal is a == b; visits is how many values that took. It errs with ErrTooBig.
func Equal(a, b Value) (same bool, visits int, err error) {
	c := comparer{maxVisits}
	same = c.equal(a, b, maxDepth)
	if c.left < 0 {
		return false, maxVisits, ErrTooBig
	}
	return same, maxVisits - c.left, nil
}

func (c *comparer) equal(a, b Value, depth int) bool {
	if c.left--; c.left < 0 || depth == 0 {
		c.left = -1
		return false
	}
	switch x := a.(type) {
	case None:
		_, ok := b.(None)
		return ok
	case string:
		if y, ok := b.(string); ok {
			return x == y
		}
	case *List:
		y, ok := b.(*List)
		return ok && c.equalItems(x.Items, y.Items, depth)
	case *Tuple:
		y, ok := b.(*Tuple)
		return ok && c.equalItems(x.Items, y.Items, depth)
	case *Dict:
		y, ok := b.(*Dict)
		return ok && c.equalDicts(x, y, depth)
	case Object:
		return x.PyEqual(b)
	}
	if y, ok := b.(Object); ok {
		return y.PyEqual(a)
	}
	if !isNumber(a) || !isNumber(b) {
		return false
	}
	order, ok := compareNumbers(a, b)
	return ok && order == 0
}

func (c *comparer) equalItems(x, y []Value, depth int) bool {
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if !c.equal(x[i], y[i], depth-1) {
			return false
		}
	}
	return true
}

func (c *comparer) equalDicts(x, y *Dict, depth int) bool {
	if x.Len() != y.Len() {
		return false
	}
	for _, e := range x.entries {
		v, ok, err := y.Lookup(e.Key)
		if err != nil || !ok || !c.equal(e.Value, v, depth-1) {
			return false
		}
	}
	return true
}

func isNumber(v Value) bool {
	switch v.(type) {
	case bool, int64, *big.Int, float64:
		return true
	}
	return false
}

// Compare orders a and b as Python's < does: negative, zero, positive. ok is false if neither is less, more or equal
// (NaN). visits is how many values that took. It errs with ErrType where Python has no order, and with ErrTooBig.
func Compare(a, b Value) (order int, ok bool, visits int, err error) {
	c := comparer{maxVisits}
	order, ok, err = c.compare(a, b, maxDepth)
	if c.left < 0 {
		return 0, false, maxVisits, ErrTooBig
	}
	return order, ok, maxVisits - c.left, err
}

func (c *comparer) compare(a, b Value, depth int) (int, bool, error) {
	if depth == 0 {
		return 0, false, ErrTooBig
	}
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			return strings.Compare(x, y), true, nil // the order of bytes is that of code points, of surrogates too
		}
	case *List:
		if y, ok := b.(*List); ok {
			return c.compareItems(x.Items, y.Items, depth)
		}
	case *Tuple:
		if y, ok := b.(*Tuple); ok {
			return c.compareItems(x.Items, y.Items, depth)
		}
	default:
		if isNumber(a) && isNumber(b) {
			order, ok := compareNumbers(a, b)
			return order, ok, nil
		}
	}
	return 0, false, fmt.Errorf("%w: no order between '%s' and '%s'", ErrType, TypeName(a), TypeName(b))
}

func (c *comparer) compareItems(x, y []Value, depth int) (int, bool, error) {
	for i := 0; i < len(x) && i < len(y); i++ {
		if c.equal(x[i], y[i], depth-1) {
			continue
		}
		return c.compare(x[i], y[i], depth-1)
	}
	return len(x) - len(y), true, nil
}

func compareNumbers(a, b Value) (int, bool) {
	if x, ok := small(a); ok {
		if y, ok := small(b); ok {
			switch {
			case x < y:
				return -1, true
			case x > y:
				return 1, true
			}
			return 0, true
		}
	}
	x, xf := toFloat(a)
	y, yf := toFloat(b)
	switch {
	case xf && math.IsNaN(x), yf && math.IsNaN(y):
		return 0, false
	case xf && yf:
		return new(big.Float).SetFloat64(x).Cmp(new(big.Float).SetFloat64(y)), true
	case xf:
		return -compareBigFloat(BigInt(b), x), true
	case yf:
		return compareBigFloat(BigInt(a), y), true
	}
	return BigInt(a).Cmp(BigInt(b)), true
}

// compareBigFloat compares exactly: no rounding of the integer.
func compareBigFloat(b *big.Int, f float64) int {
	if math.IsInf(f, 0) {
		return -int(math.Copysign(1, f))
	}
	r, _ := new(big.Float).SetFloat64(f).Rat(nil)
	return new(big.Rat).SetInt(b).Cmp(r)
}

// small is the value of a bool or an int64.
func small(v Value) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

func toFloat(v Value) (float64, bool) {
	f, ok := v.(float64)
	return f, ok
}

// BigInt is the value of an int or a bool; nil for anything else.
func BigInt(v Value) *big.Int {
	if n, ok := small(v); ok {
		return big.NewInt(n)
	}
	b, _ := v.(*big.Int)
	return b
}
