package chat

import (
	"strings"

	"github.com/kvscout/kvscout/render/pyval"
)

// equal is a == b, paid for.
func (st *state) equal(a, b pyval.Value) (bool, error) {
	same, visits, err := pyval.Equal(a, b)
	if err == nil {
		err = st.step(visits)
	}
	return same, err
}

// compare is one comparison of a chain.
func (st *state) compare(op string, a, b pyval.Value) (bool, error) {
	switch op {
	case "==":
		return st.equal(a, b)
	case "!=":
		same, err := st.equal(a, b)
		return !same, err
	case "in":
		return st.contains(b, a)
	case "not in":
		in, err := st.contains(b, a)
		return !in, err
	}
	for _, v := range []pyval.Value{a, b} {
		if u, ok := v.(*undefined); ok {
			return false, u.fail()
		}
	}
	order, ok, visits, err := pyval.Compare(a, b)
	if err == nil {
		err = st.step(visits)
	}
	if err != nil || !ok {
		return false, err
	}
	switch op {
	case "<":
		return order < 0, nil
	case "<=":
		return order <= 0, nil
	case ">":
		return order > 0, nil
	}
	return order >= 0, nil
}

// contains is item in v.
func (st *state) contains(v, item pyval.Value) (bool, error) {
	switch v := v.(type) {
	case string:
		s, ok := item.(string)
		if !ok {
			return false, failf("'in <string>' requires string as left operand, not %s", pyval.TypeName(item))
		}
		if err := st.step(1 + len(v)>>6); err != nil {
			return false, err
		}
		return strings.Contains(v, s), nil
	case *pyval.Dict:
		_, ok, err := v.Lookup(item)
		return ok, err
	case markup:
		return false, unsupportedf("'in' of marked up text")
	}
	items, err := st.items(v)
	if err != nil {
		return false, err
	}
	for _, i := range items {
		if same, err := st.equal(i, item); same || err != nil {
			return same, err
		}
	}
	return false, nil
}
