package chat

import (
	"math/big"

	"github.com/kvscout/kvscout/render/pyval"
)

// testFunc is a test: the value before the "is", and the arguments.
type testFunc func(st *state, v pyval.Value, a arguments) (bool, error)

// tests are those of jinja2/tests.py.
var tests map[string]testFunc

func init() {
	tests = map[string]testFunc{
		"defined":   func(_ *state, v pyval.Value, _ arguments) (bool, error) { return !isUndefined(v), nil },
		"undefined": func(_ *state, v pyval.Value, _ arguments) (bool, error) { return isUndefined(v), nil },
		"none":      isType(func(v pyval.Value) bool { return v == pyval.None{} }),
		"boolean":   isType(func(v pyval.Value) bool { _, ok := v.(bool); return ok }),
		"true":      isType(func(v pyval.Value) bool { return v == true }),
		"false":     isType(func(v pyval.Value) bool { return v == false }),
		"integer":   isType(isInteger),
		"float":     isType(func(v pyval.Value) bool { _, ok := v.(float64); return ok }),
		"number":    isType(func(v pyval.Value) bool { _, ok := v.(float64); return ok || pyval.BigInt(v) != nil }),
		"string":    isType(isString),
		"mapping":   isType(func(v pyval.Value) bool { _, ok := v.(*pyval.Dict); return ok }),
		"sequence":  isType(isSequence),
		"iterable":  isType(isIterable),
		"callable":  isType(func(v pyval.Value) bool { _, ok := v.(callable); return ok || isUndefined(v) }),
		"escaped":   isType(func(v pyval.Value) bool { _, ok := v.(markup); return ok }),
		"odd":       parity(1), "even": parity(0), "divisibleby": testDivisibleBy, "lower": testCase(false), "upper": testCase(true),
		"sameas": testSameAs, "in": testIn, "filter": named(func(s string) bool { return filters[s] != nil }),
		"test": named(func(s string) bool { return tests[s] != nil }),
	}
	for op, names := range map[string][]string{
		"==": {"==", "eq", "equalto"}, "!=": {"!=", "ne"}, ">": {">", "gt", "greaterthan"}, ">=": {">=", "ge"},
		"<": {"<", "lt", "lessthan"}, "<=": {"<=", "le"},
	} {
		for _, name := range names {
			tests[name] = comparing(op)
		}
	}
}

func isType(is func(v pyval.Value) bool) testFunc {
	return func(_ *state, v pyval.Value, a arguments) (bool, error) { return is(v), a.none("test") }
}

func isInteger(v pyval.Value) bool {
	switch v.(type) {
	case int64, *big.Int:
		return true
	}
	return false
}

func isString(v pyval.Value) bool {
	switch v.(type) {
	case string, markup:
		return true
	}
	return false
}

func isSequence(v pyval.Value) bool {
	switch v.(type) {
	case string, markup, *pyval.List, *pyval.Tuple, *pyval.Dict, *rangeObject, *undefined:
		return true
	}
	return false
}

func isIterable(v pyval.Value) bool {
	switch v.(type) {
	case *dictView, *iterator, *loopObject:
		return true
	}
	return isSequence(v)
}

func parity(want int64) testFunc {
	return func(st *state, v pyval.Value, _ arguments) (bool, error) {
		if isString(v) {
			return false, unsupportedf("parity of a text")
		}
		m, err := st.binary("%", v, int64(2))
		if err != nil {
			return false, err
		}
		return st.equal(m, want)
	}
}

func testDivisibleBy(st *state, v pyval.Value, a arguments) (bool, error) {
	p, err := a.required("divisibleby", "num")
	if err != nil {
		return false, err
	}
	if isString(v) {
		return false, unsupportedf("divisibility of a text")
	}
	m, err := st.binary("%", v, p[0])
	if err != nil {
		return false, err
	}
	return st.equal(m, int64(0))
}

func testCase(upper bool) testFunc {
	return func(st *state, v pyval.Value, _ arguments) (bool, error) {
		s, err := st.str(v)
		return err == nil && isCase(s, upper), err
	}
}

// testSameAs is Python's "is". Of numbers and texts it depends on what Python shares: refused.
func testSameAs(_ *state, v pyval.Value, a arguments) (bool, error) {
	p, err := a.required("sameas", "other")
	if err != nil {
		return false, err
	}
	switch v.(type) {
	case pyval.None, bool, *pyval.Dict, *pyval.List, *namespace, *undefined:
		return v == p[0], nil
	}
	if pyval.TypeName(v) != pyval.TypeName(p[0]) {
		return false, nil
	}
	if n, ok := v.(int64); ok && n >= -5 && n <= 256 {
		return v == p[0], nil
	}
	return false, unsupportedf("identity of %s", typeName(v))
}

func testIn(st *state, v pyval.Value, a arguments) (bool, error) {
	p, err := a.required("in", "seq")
	if err != nil {
		return false, err
	}
	return st.contains(p[0], v)
}

func named(known func(string) bool) testFunc {
	return func(_ *state, v pyval.Value, _ arguments) (bool, error) {
		s, ok := v.(string)
		if ok && !known(s) {
			return false, unsupportedf("question for a filter or test that we do not have")
		}
		return ok, nil
	}
}

func comparing(op string) testFunc {
	return func(st *state, v pyval.Value, a arguments) (bool, error) {
		p, err := a.required("comparison", "other")
		if err != nil {
			return false, err
		}
		return st.compare(op, v, p[0])
	}
}
