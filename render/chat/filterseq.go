package chat

import (
	"slices"

	"github.com/kvscout/kvscout/render/pyval"
)

// getter takes something out of an item: an attribute, or the item itself.
type getter func(st *state, v pyval.Value) (pyval.Value, error)

// attrGetter is make_attrgetter: a name or an index, or several with dots between them. Text is compared without its
// case if fold is set.
func attrGetter(attribute, def pyval.Value, fold bool) (getter, error) {
	var path []any
	switch a := attribute.(type) {
	case nil, pyval.None:
	case string:
		path = attrPath(a)
	case int64:
		path = []any{a}
	default:
		return nil, unsupportedf("attribute of type %s", pyval.TypeName(attribute))
	}
	return func(st *state, v pyval.Value) (pyval.Value, error) {
		for _, part := range path {
			var err error
			if v, err = st.item(v, part); err != nil {
				return nil, err
			}
			if def != nil && isUndefined(v) {
				v = def
			}
		}
		if s, ok := v.(string); ok && fold {
			return pyval.Lower(s), st.grow(len(s))
		}
		return v, st.step(1)
	}, nil
}

// folded is the getter of the filters that compare: attribute, and case unless that is asked for.
func folded(attribute, caseSensitive pyval.Value) (getter, error) {
	return attrGetter(attribute, nil, caseSensitive == nil || !pyval.Truth(caseSensitive))
}

func mapAll(st *state, items []pyval.Value, get getter) ([]pyval.Value, error) {
	if err := st.grow(16 * len(items)); err != nil {
		return nil, err
	}
	mapped := make([]pyval.Value, len(items))
	for i, item := range items {
		var err error
		if mapped[i], err = get(st, item); err != nil {
			return nil, err
		}
	}
	return mapped, nil
}

func filterFirst(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
	it, err := st.iterate(v)
	if err != nil {
		return nil, err
	}
	item, ok, err := it.next()
	if err != nil {
		return nil, err
	}
	if !ok {
		return &undefined{hint: "no first item, sequence was empty"}, nil
	}
	return item, a.none("first")
}

func filterLast(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
	if _, ok := v.(*iterator); ok {
		return nil, failf("'generator' object is not reversible")
	}
	if s, ok := v.(string); ok && s != "" {
		c, _ := charAt(s, -1)
		return c, nil
	}
	items, err := st.items(v)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return &undefined{hint: "no last item, sequence was empty"}, nil
	}
	return items[len(items)-1], a.none("last")
}

func filterList(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
	items, err := st.items(v)
	if err != nil {
		return nil, err
	}
	if err := st.grow(16 * len(items)); err != nil {
		return nil, err
	}
	return &pyval.List{Items: slices.Clone(items)}, a.none("list")
}

func filterReverse(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
	if s, ok := v.(string); ok {
		n := pyval.Len(s)
		return st.cutText(s, n-1, n, -1)
	}
	items, err := st.items(v)
	if err != nil {
		return nil, err
	}
	if err := st.grow(16 * len(items)); err != nil {
		return nil, err
	}
	items = slices.Clone(items)
	slices.Reverse(items)
	if _, ok := v.(*iterator); ok {
		return &pyval.List{Items: items}, a.none("reverse")
	}
	return sliceIterator(items), a.none("reverse")
}

func filterItems(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
	switch v := v.(type) {
	case *undefined:
		return sliceIterator(nil), nil
	case *pyval.Dict:
		items, err := st.items(&dictView{kind: "items", dict: v})
		if err != nil {
			return nil, err
		}
		return sliceIterator(items), a.none("items")
	}
	return nil, failf("can only get item pairs from a mapping")
}

func filterAttr(_ *state, v pyval.Value, a arguments) (pyval.Value, error) {
	p, err := a.required("attr", "name")
	if err != nil {
		return nil, err
	}
	name, ok := p[0].(string)
	if !ok {
		return nil, unsupportedf("attribute of type %s", pyval.TypeName(p[0]))
	}
	got, ok, err := own(v, name)
	if ok || err != nil {
		return got, err
	}
	return &undefined{hint: typeName(v) + " has no such attribute"}, nil
}

// filterMap is map(attribute=...) or map('filter', ...).
func filterMap(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
	if !pyval.Truth(v) { // as in sync_do_map: nothing is looked at
		return sliceIterator(nil), nil
	}
	get, err := mapper(a)
	if err != nil {
		return nil, err
	}
	it, err := st.iterate(v)
	if err != nil {
		return nil, err
	}
	return it.over(func() (pyval.Value, bool, error) {
		item, ok, err := it.next()
		if err != nil || !ok {
			return nil, false, err
		}
		item, err = get(st, item)
		return item, err == nil, err
	})
}

func mapper(a arguments) (getter, error) {
	if len(a.pos) == 0 {
		var attribute, def pyval.Value
		for _, k := range a.kw {
			switch k.name {
			case "attribute":
				attribute = k.value
			case "default":
				def = k.value
			default:
				return nil, failf("unexpected keyword argument")
			}
		}
		if attribute == nil {
			return nil, failf("map requires a filter argument")
		}
		if _, none := def.(pyval.None); none {
			def = nil
		}
		return attrGetter(attribute, def, false)
	}
	name, ok := a.pos[0].(string)
	if !ok {
		return nil, failf("map requires the name of a filter")
	}
	fn, ok := filters[name]
	if !ok {
		return nil, noSuch("filter", name, otherFilters)
	}
	rest := arguments{pos: a.pos[1:], kw: a.kw}
	return func(st *state, v pyval.Value) (pyval.Value, error) {
		if err := st.step(1); err != nil {
			return nil, err
		}
		return fn(st, v, rest)
	}, nil
}

// selector is select, reject, selectattr or rejectattr.
func selector(keep, byAttr bool) filterFunc {
	return func(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
		if !pyval.Truth(v) { // as in select_or_reject: nothing is looked at
			return sliceIterator(nil), nil
		}
		get := func(_ *state, v pyval.Value) (pyval.Value, error) { return v, nil }
		if byAttr {
			if len(a.pos) == 0 {
				return nil, failf("missing parameter for attribute name")
			}
			g, err := attrGetter(a.pos[0], nil, false)
			if err != nil {
				return nil, err
			}
			get, a.pos = g, a.pos[1:]
		}
		test := func(_ *state, v pyval.Value, _ arguments) (bool, error) { return pyval.Truth(v), nil }
		if len(a.pos) > 0 {
			name, _ := a.pos[0].(string)
			test = tests[name]
			if test == nil {
				return nil, noSuch("test", name, nil)
			}
			a.pos = a.pos[1:]
		}
		it, err := st.iterate(v)
		if err != nil {
			return nil, err
		}
		return it.over(func() (pyval.Value, bool, error) {
			for {
				item, ok, err := it.next()
				if err == nil {
					err = st.step(1)
				}
				if err != nil || !ok {
					return nil, false, err
				}
				got, err := get(st, item)
				if err != nil {
					return nil, false, err
				}
				passed, err := test(st, got, a)
				if err != nil {
					return nil, false, err
				}
				if passed == keep {
					return item, true, nil
				}
			}
		})
	}
}

// noSuch is the error for a filter or test that is named when it is used.
func noSuch(what, name string, other map[string]bool) error {
	if other[name] {
		return unsupportedf("%s '%s'", what, name)
	}
	return failf("no such %s", what)
}
