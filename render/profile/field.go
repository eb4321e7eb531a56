package profile

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/kvscout/kvscout/render/pyval"
)

// verdict is what a validation says of a value.
type verdict uint8

const (
	good   verdict = iota
	bad            // the engine refuses it
	unsure         // we do not know
)

// rule judges the value of a field as pydantic does in lax mode.
type rule func(v pyval.Value) verdict

// check judges the fields of d that have a rule. What is not there, or has no rule, is good.
func check(d *pyval.Dict, rules map[string]rule) error {
	for _, e := range d.Entries() {
		name := e.Key.(string)
		r := rules[name]
		if r == nil {
			continue
		}
		switch r(e.Value) {
		case bad:
			return refused(ReasonField, "%s", name)
		case unsure:
			return notExact(ReasonUnusual, "%s", name)
		}
	}
	return nil
}

func isNone(v pyval.Value) bool { return v == nil || v == pyval.None{} }

// optional lets None through.
func optional(r rule) rule {
	return func(v pyval.Value) verdict {
		if isNone(v) {
			return good
		}
		return r(v)
	}
}

func aString(v pyval.Value) verdict {
	if _, ok := v.(string); ok {
		return good
	}
	return bad
}

func aDict(v pyval.Value) verdict {
	if _, ok := v.(*pyval.Dict); ok {
		return good
	}
	return bad
}

func aBool(v pyval.Value) verdict {
	if _, ok := toBool(v); ok {
		return good
	}
	return bad
}

// toBool is pydantic's bool: true, false, and what stands for them.
func toBool(v pyval.Value) (value, ok bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case int64:
		return v == 1, v == 0 || v == 1
	case float64:
		return v == 1, v == 0 || v == 1
	case string:
		switch strings.ToLower(v) {
		case "1", "t", "true", "y", "yes", "on":
			return true, true
		case "0", "f", "false", "n", "no", "off":
			return false, true
		}
	}
	return false, false
}

// toInt is pydantic's int: an integer, a whole float, a text of digits.
func toInt(v pyval.Value) (int64, verdict) {
	switch v := v.(type) {
	case int64:
		return v, good
	case bool:
		if v {
			return 1, good
		}
		return 0, good
	case *big.Int:
		return 0, unsure
	case float64:
		if v != math.Trunc(v) || math.IsNaN(v) || math.IsInf(v, 0) {
			return 0, bad
		}
		if math.Abs(v) >= 1<<53 {
			return 0, unsure
		}
		return int64(v), good
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		if err == nil && (v[0] >= '0' && v[0] <= '9' || v[0] == '-') {
			return n, good
		}
		if strings.ContainsAny(v, "0123456789") {
			return 0, unsure
		}
	}
	return 0, bad
}

// anInt is an int from low to high.
func anInt(low, high int64) rule {
	return func(v pyval.Value) verdict {
		n, ok := toInt(v)
		if ok == good && (n < low || n > high) {
			return bad
		}
		return ok
	}
}

func toFloat(v pyval.Value) (float64, verdict) {
	switch v := v.(type) {
	case float64:
		return v, good
	case int64:
		return float64(v), good
	case bool:
		if v {
			return 1, good
		}
		return 0, good
	case *big.Int:
		return 0, unsure
	case string:
		if f, err := strconv.ParseFloat(v, 64); err == nil && !strings.ContainsAny(v, "xXpP_") {
			return f, good
		}
		if strings.ContainsAny(v, "0123456789") {
			return 0, unsure
		}
	}
	return 0, bad
}

// aFloat is a float that ok takes.
func aFloat(ok func(f float64) bool) rule {
	return func(v pyval.Value) verdict {
		f, is := toFloat(v)
		if is == good && !ok(f) {
			return bad
		}
		return is
	}
}

// between is a closed range.
func between(low, high float64) func(float64) bool {
	return func(f float64) bool { return f >= low && f <= high }
}

func anyFloat(float64) bool { return true }

// oneOf is a literal.
func oneOf(words ...string) rule {
	return func(v pyval.Value) verdict {
		s, ok := v.(string)
		for _, w := range words {
			if ok && s == w {
				return good
			}
		}
		return bad
	}
}

// listOf is a list of at most so many items, each good by the rule.
func listOf(r rule, most int) rule {
	return func(v pyval.Value) verdict {
		l, ok := v.(*pyval.List)
		if !ok || len(l.Items) > most {
			return bad
		}
		worst := good
		for _, item := range l.Items {
			worst = worse(worst, r(item))
		}
		return worst
	}
}

// worse puts bad before unsure before good.
func worse(a, b verdict) verdict {
	if a == bad || b == bad {
		return bad
	}
	return max(a, b)
}

// onlyNone takes nothing but None; what else there may be we do not judge.
func onlyNone(v pyval.Value) verdict {
	if isNone(v) {
		return good
	}
	return unsure
}

// boolean reads a field that must be a bool; absent means def.
func boolean(d *pyval.Dict, name string, def bool) bool {
	v, ok := d.Get(name)
	if !ok {
		return def
	}
	if b, ok := toBool(v); ok {
		return b
	}
	return def
}

// integer reads an int field; ok is false if it is absent or None.
func integer(d *pyval.Dict, name string) (n int, ok bool) {
	v, there := d.Get(name)
	if !there || isNone(v) {
		return 0, false
	}
	i, is := toInt(v)
	return int(i), is == good
}

func stringField(d *pyval.Dict, name string) string {
	v, _ := d.Get(name)
	s, _ := v.(string)
	return s
}
