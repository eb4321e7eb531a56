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

// ErrDepth says that values are nested deeper than we follow.
var ErrDepth = errors.New("nested too deeply")

// Equal is a == b. Values nested beyond every bound are unequal.
func Equal(a, b Value) bool { return equal(a, b, maxDepth) }

func equal(a, b Value, depth int) bool {
	if depth == 0 {
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
		return ok && equalItems(x.Items, y.Items, depth)
	case *Tuple:
		y, ok := b.(*Tuple)
		return ok && equalItems(x.Items, y.Items, depth)
	case *Dict:
		y, ok := b.(*Dict)
		return ok && equalDicts(x, y, depth)
	case Object:
		return x.PyEqual(b)
	}
	if y, ok := b.(Object); ok {
		return y.PyEqual(a)
	}
	if !isNumber(a) || !isNumber(b) {
		return false
	}
	c, ok := compareNumbers(a, b)
	return ok && c == 0
}

func equalItems(x, y []Value, depth int) bool {
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if !equal(x[i], y[i], depth-1) {
			return false
		}
	}
	return true
}

func equalDicts(x, y *Dict, depth int) bool {
	if x.Len() != y.Len() {
		return false
	}
	for _, e := range x.entries {
		v, ok, err := y.Lookup(e.Key)
		if err != nil || !ok || !equal(e.Value, v, depth-1) {
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
// (NaN). It errs with ErrType where Python has no order.
func Compare(a, b Value) (order int, ok bool, err error) { return compare(a, b, maxDepth) }

func compare(a, b Value, depth int) (int, bool, error) {
	if depth == 0 {
		return 0, false, ErrDepth
	}
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			return compareText(x, y), true, nil
		}
	case *List:
		if y, ok := b.(*List); ok {
			return compareItems(x.Items, y.Items, depth)
		}
	case *Tuple:
		if y, ok := b.(*Tuple); ok {
			return compareItems(x.Items, y.Items, depth)
		}
	default:
		if isNumber(a) && isNumber(b) {
			c, ok := compareNumbers(a, b)
			return c, ok, nil
		}
	}
	return 0, false, fmt.Errorf("%w: no order between '%s' and '%s'", ErrType, TypeName(a), TypeName(b))
}

// compareText orders by code points. So do the bytes of UTF-8, and those of surrogates held as UTF-8 would.
func compareText(x, y string) int { return strings.Compare(x, y) }

func compareItems(x, y []Value, depth int) (int, bool, error) {
	for i := 0; i < len(x) && i < len(y); i++ {
		if equal(x[i], y[i], depth-1) {
			continue
		}
		return compare(x[i], y[i], depth-1)
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
