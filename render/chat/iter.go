package chat

import (
	"github.com/kvscout/kvscout/render/pyval"
)

// iterator is a Python generator: its items are made as they are asked for, once.
type iterator struct {
	opaque
	next  func() (v pyval.Value, ok bool, err error)
	depth int // generators that this one draws from
}

// maxGenerators bounds how many generators draw from each other.
const maxGenerators = 200

// over makes a generator that draws from it.
func (i *iterator) over(next func() (v pyval.Value, ok bool, err error)) (*iterator, error) {
	if i.depth >= maxGenerators {
		return nil, limitf("more than %d generators deep", maxGenerators)
	}
	return &iterator{next: next, depth: i.depth + 1}, nil
}

func (*iterator) PyType() string                   { return "generator" }
func (i *iterator) PyEqual(other pyval.Value) bool { return i == other }

// rangeObject is range(start, stop, step).
type rangeObject struct {
	start, stop, step int64
	n                 int
}

func (*rangeObject) PyType() string           { return "range" }
func (r *rangeObject) PyTruth() bool          { return r.n > 0 }
func (r *rangeObject) PyStr() (string, error) { return r.PyRepr() }

func (r *rangeObject) PyRepr() (string, error) {
	t := pyval.NewTuple(r.start, r.stop)
	if r.step != 1 {
		t.Items = append(t.Items, r.step)
	}
	s, err := pyval.Repr(t)
	return "range" + s, err
}

func (r *rangeObject) PyEqual(other pyval.Value) bool {
	o, ok := other.(*rangeObject)
	return ok && r.n == o.n && (r.n == 0 || r.start == o.start && (r.n == 1 || r.step == o.step))
}

// dictView is what keys, values and items of a dict give.
type dictView struct {
	kind string
	dict *pyval.Dict
}

func (v *dictView) PyType() string                 { return "dict_" + v.kind }
func (v *dictView) PyTruth() bool                  { return v.dict.Len() > 0 }
func (v *dictView) PyEqual(other pyval.Value) bool { return v == other }
func (v *dictView) PyStr() (string, error)         { return v.PyRepr() }

func (v *dictView) PyRepr() (string, error) {
	s, err := pyval.Repr(&pyval.List{Items: v.items()})
	return v.PyType() + "(" + s + ")", err
}

func (v *dictView) items() []pyval.Value {
	items := make([]pyval.Value, v.dict.Len())
	for i, e := range v.dict.Entries() {
		switch v.kind {
		case "keys":
			items[i] = e.Key
		case "values":
			items[i] = e.Value
		default:
			items[i] = pyval.NewTuple(e.Key, e.Value)
		}
	}
	return items
}

// items are what an iteration over v gives. The caller must not change them.
func (st *state) items(v pyval.Value) ([]pyval.Value, error) {
	switch v := v.(type) {
	case *pyval.List:
		return v.Items, nil
	case *pyval.Tuple:
		return v.Items, nil
	case *undefined:
		return nil, nil
	case string:
		return st.chars(v)
	case markup:
		return nil, unsupportedf("iteration over marked up text")
	case *pyval.Dict:
		if err := st.grow(16 * v.Len()); err != nil {
			return nil, err
		}
		return (&dictView{kind: "keys", dict: v}).items(), nil
	case *dictView:
		if err := st.grow(64 * v.dict.Len()); err != nil {
			return nil, err
		}
		return v.items(), nil
	case *rangeObject:
		if err := st.grow(24 * v.n); err != nil {
			return nil, err
		}
		items := make([]pyval.Value, v.n)
		for i := range items {
			items[i] = v.start + int64(i)*v.step
		}
		return items, nil
	case *iterator:
		return st.drain(v)
	case *loopObject:
		return nil, unsupportedf("iteration over the loop object")
	}
	return nil, failf("%s is not iterable", typeName(v))
}

func (st *state) drain(it *iterator) ([]pyval.Value, error) {
	var items []pyval.Value
	for {
		v, ok, err := it.next()
		if err != nil || !ok {
			return items, err
		}
		if err := st.grow(16); err != nil {
			return nil, err
		}
		items = append(items, v)
	}
}

func (st *state) chars(s string) ([]pyval.Value, error) {
	if err := st.grow(32 * len(s)); err != nil {
		return nil, err
	}
	items := make([]pyval.Value, 0, len(s))
	for s != "" {
		_, size := pyval.DecodeRune(s)
		items = append(items, s[:size])
		s = s[size:]
	}
	return items, nil
}

// iterate gives the items one by one: lazily where Python is lazy.
func (st *state) iterate(v pyval.Value) (*iterator, error) {
	if it, ok := v.(*iterator); ok {
		return it, nil
	}
	items, err := st.items(v)
	if err != nil {
		return nil, err
	}
	return sliceIterator(items), nil
}

func sliceIterator(items []pyval.Value) *iterator {
	return &iterator{next: func() (pyval.Value, bool, error) {
		if len(items) == 0 {
			return nil, false, nil
		}
		v := items[0]
		items = items[1:]
		return v, true, nil
	}}
}

// length is len(v).
func (st *state) length(v pyval.Value) (int, error) {
	switch v := v.(type) {
	case string:
		return pyval.Len(v), nil
	case markup:
		return pyval.Len(v.text), nil
	case *pyval.List:
		return len(v.Items), nil
	case *pyval.Tuple:
		return len(v.Items), nil
	case *pyval.Dict:
		return v.Len(), nil
	case *dictView:
		return v.dict.Len(), nil
	case *rangeObject:
		return v.n, nil
	case *undefined:
		return 0, nil
	case *loopObject:
		return len(v.items), nil
	}
	return 0, failf("%s has no len()", typeName(v))
}
