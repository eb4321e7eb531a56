package chat

import (
	"math"
	"math/big"
	"math/bits"
	"strings"

	"github.com/kvscout/kvscout/render/pyval"
)

// maxIntBits bounds integers that a template makes. Python prints none of more than 4300 digits.
const maxIntBits = 1 << 16

// binary is a op b as Python has it.
func (st *state) binary(op string, a, b pyval.Value) (pyval.Value, error) {
	if x, ok := a.(string); ok {
		if y, ok := b.(string); ok && op == "+" {
			if err := st.grow(len(x) + len(y)); err != nil {
				return nil, err
			}
			return x + y, nil
		}
	}
	if x, ok := a.(int64); ok {
		if y, ok := b.(int64); ok {
			if v, ok := smallInts(op, x, y); ok {
				return v, nil
			}
		}
	}
	for _, v := range []pyval.Value{a, b} {
		if u, ok := v.(*undefined); ok {
			if s, isText := a.(string); isText && op == "%" {
				return st.percent(s, b)
			}
			return nil, u.fail()
		}
	}
	if x, y, ok := bigInts(a, b); ok {
		return bigOp(op, x, y)
	}
	if x, y, ok := floats(a, b); ok {
		return floatOp(op, x, y)
	}
	return st.sequenceOp(op, a, b)
}

// smallInts does what cannot overflow.
func smallInts(op string, x, y int64) (pyval.Value, bool) {
	const safe = 1 << 31
	if x < -safe || x > safe || y < -safe || y > safe {
		return nil, false
	}
	switch op {
	case "+":
		return x + y, true
	case "-":
		return x - y, true
	case "*":
		return x * y, true
	case "%":
		if y != 0 {
			return ((x % y) + y) % y, true
		}
	}
	return nil, false
}

func bigInts(a, b pyval.Value) (x, y *big.Int, ok bool) {
	x, y = pyval.BigInt(a), pyval.BigInt(b)
	return x, y, x != nil && y != nil
}

func bigOp(op string, x, y *big.Int) (pyval.Value, error) {
	z := new(big.Int)
	switch op {
	case "+":
		return pyval.Int(z.Add(x, y)), nil
	case "-":
		return pyval.Int(z.Sub(x, y)), nil
	case "*":
		if x.BitLen()+y.BitLen() > maxIntBits {
			return nil, limitf("integer of more than %d bits", maxIntBits)
		}
		return pyval.Int(z.Mul(x, y)), nil
	case "**":
		return bigPower(x, y)
	}
	if y.Sign() == 0 {
		return nil, failf("division by zero")
	}
	switch op {
	case "/":
		f, _ := new(big.Rat).SetFrac(x, y).Float64()
		if math.IsInf(f, 0) {
			return nil, failf("integer division result too large for a float")
		}
		return f, nil
	case "//", "%":
		q, m := new(big.Int), z
		q.DivMod(x, y, m) // Euclidean: the remainder is never negative
		if y.Sign() < 0 && m.Sign() != 0 {
			m.Add(m, y)
			q.Sub(q, big.NewInt(1))
		}
		if op == "//" {
			return pyval.Int(q), nil
		}
		return pyval.Int(m), nil
	}
	return nil, failf("unsupported operator '%s'", op)
}

func bigPower(x, y *big.Int) (pyval.Value, error) {
	if y.Sign() < 0 {
		if x.Sign() == 0 {
			return nil, failf("0.0 cannot be raised to a negative power")
		}
		fx, _ := new(big.Float).SetInt(x).Float64()
		fy, _ := new(big.Float).SetInt(y).Float64()
		return math.Pow(fx, fy), nil
	}
	if x.BitLen() > 1 && (!y.IsInt64() || y.Int64() > maxIntBits || y.Int64()*int64(x.BitLen()) > maxIntBits) {
		return nil, limitf("integer of more than %d bits", maxIntBits)
	}
	if x.BitLen() <= 1 && !y.IsInt64() {
		y = new(big.Int).SetInt64(int64(y.Bit(0)) + 2) // of 0, 1 and -1 only the parity counts
	}
	return pyval.Int(new(big.Int).Exp(x, y, nil)), nil
}

// floats gives both as floats if both are numbers.
func floats(a, b pyval.Value) (x, y float64, ok bool) {
	x, ok1 := asFloat(a)
	y, ok2 := asFloat(b)
	return x, y, ok1 && ok2
}

func asFloat(v pyval.Value) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case *big.Int:
		f, _ := new(big.Float).SetInt(v).Float64()
		return f, !math.IsInf(f, 0)
	}
	return 0, false
}

func floatOp(op string, x, y float64) (pyval.Value, error) {
	switch op {
	case "+":
		return x + y, nil
	case "-":
		return x - y, nil
	case "*":
		return x * y, nil
	case "**":
		return floatPower(x, y)
	}
	if y == 0 {
		return nil, failf("float division by zero")
	}
	switch op {
	case "/":
		return x / y, nil
	case "//", "%":
		m := math.Mod(x, y)
		q := (x - m) / y
		if m != 0 && (y < 0) != (m < 0) {
			m += y
			q--
		} else if m == 0 {
			m = math.Copysign(0, y)
		}
		if op == "%" {
			return m, nil
		}
		if q == 0 {
			return math.Copysign(0, x/y), nil
		}
		floor := math.Floor(q)
		if q-floor > 0.5 {
			floor++
		}
		return floor, nil
	}
	return nil, failf("unsupported operator '%s'", op)
}

func floatPower(x, y float64) (pyval.Value, error) {
	switch {
	case x == 0 && y < 0:
		return nil, failf("0.0 cannot be raised to a negative power")
	case x < 0 && y != math.Trunc(y) && !math.IsInf(x, 0) && !math.IsInf(y, 0):
		return nil, unsupportedf("complex number")
	}
	f := math.Pow(x, y)
	if math.IsInf(f, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		return nil, failf("result too large")
	}
	return f, nil
}

// sequenceOp is + and * of texts, lists and tuples, and % of texts.
func (st *state) sequenceOp(op string, a, b pyval.Value) (pyval.Value, error) {
	if m, ok := a.(markup); ok && op == "+" {
		return st.addMarkup(m, b, false)
	}
	if m, ok := b.(markup); ok && op == "+" {
		if _, ok := a.(string); ok {
			return st.addMarkup(m, a, true)
		}
	}
	switch x := a.(type) {
	case string:
		if op == "%" {
			return st.percent(x, b)
		}
	case *pyval.List:
		if y, ok := b.(*pyval.List); ok && op == "+" {
			items, err := st.joined(x.Items, y.Items)
			return &pyval.List{Items: items}, err
		}
	case *pyval.Tuple:
		if y, ok := b.(*pyval.Tuple); ok && op == "+" {
			items, err := st.joined(x.Items, y.Items)
			return &pyval.Tuple{Items: items}, err
		}
	}
	if op == "*" {
		if n := pyval.BigInt(b); n != nil {
			return st.repeat(a, n, a, b)
		}
		if n := pyval.BigInt(a); n != nil {
			return st.repeat(b, n, a, b)
		}
	}
	return nil, failf("unsupported operand type(s) for %s: '%s' and '%s'", op, pyval.TypeName(a), pyval.TypeName(b))
}

func (st *state) joined(x, y []pyval.Value) ([]pyval.Value, error) {
	if err := st.grow(16 * (len(x) + len(y))); err != nil {
		return nil, err
	}
	return append(append(make([]pyval.Value, 0, len(x)+len(y)), x...), y...), nil
}

// repeat is v * n; a and b are the operands, for the error.
func (st *state) repeat(v pyval.Value, n *big.Int, a, b pyval.Value) (pyval.Value, error) {
	count := 0
	if n.Sign() > 0 {
		if !n.IsInt64() || n.Int64() > 1<<40 {
			return nil, limitf("repetition is too long")
		}
		count = int(n.Int64())
	}
	size := func(each int) error {
		hi, lo := bits.Mul64(uint64(each), uint64(count))
		if hi != 0 || lo > math.MaxInt64 {
			return limitf("repetition is too long")
		}
		return st.grow(int(lo))
	}
	many := func(items []pyval.Value) ([]pyval.Value, error) {
		if err := size(16 * len(items)); err != nil {
			return nil, err
		}
		if len(items) == 0 {
			return nil, nil
		}
		all := make([]pyval.Value, 0, count*len(items))
		for range count {
			all = append(all, items...)
		}
		return all, nil
	}
	switch v := v.(type) {
	case string:
		if err := size(len(v)); err != nil {
			return nil, err
		}
		return strings.Repeat(v, count*min(1, len(v))), nil
	case *pyval.List:
		items, err := many(v.Items)
		return &pyval.List{Items: items}, err
	case *pyval.Tuple:
		items, err := many(v.Items)
		return &pyval.Tuple{Items: items}, err
	}
	return nil, failf("unsupported operand type(s) for *: '%s' and '%s'", pyval.TypeName(a), pyval.TypeName(b))
}

func (st *state) addMarkup(m markup, other pyval.Value, before bool) (pyval.Value, error) {
	text := ""
	switch o := other.(type) {
	case string:
		text = escapeHTML(o)
	case markup:
		text = o.text
	default:
		return nil, failf("can only add text to marked up text")
	}
	if err := st.grow(len(text) + len(m.text)); err != nil {
		return nil, err
	}
	if before {
		return markup{text + m.text}, nil
	}
	return markup{m.text + text}, nil
}

func unary(op string, v pyval.Value) (pyval.Value, error) {
	switch v := v.(type) {
	case *undefined:
		return nil, v.fail()
	case float64:
		if op == "-" {
			return -v, nil
		}
		return v, nil
	}
	b := pyval.BigInt(v)
	if b == nil {
		return nil, failf("bad operand type for unary %s: '%s'", op, pyval.TypeName(v))
	}
	if op == "-" {
		b = new(big.Int).Neg(b)
	}
	return pyval.Int(b), nil
}
