package chat

import (
	"slices"
	"sort"

	"github.com/kvscout/kvscout/render/pyval"
)

// sorted gives the items in the order of their keys, stable.
func sorted(st *state, items []pyval.Value, get getter, reverse bool) ([]pyval.Value, error) {
	keys, err := mapAll(st, items, get)
	if err != nil {
		return nil, err
	}
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	var failed error
	less := func(a, b pyval.Value) bool {
		if failed == nil {
			failed = st.step(1)
		}
		ok, err := st.compare("<", a, b)
		if err != nil && failed == nil {
			failed = err
		}
		return ok
	}
	sort.SliceStable(order, func(i, j int) bool {
		if failed != nil {
			return false
		}
		if reverse {
			return less(keys[order[j]], keys[order[i]])
		}
		return less(keys[order[i]], keys[order[j]])
	})
	if failed != nil {
		return nil, failed
	}
	out := make([]pyval.Value, len(items))
	for i, at := range order {
		out[i] = items[at]
	}
	return out, st.grow(32 * len(out))
}

func filterSort(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
	p, err := a.bind("sort", "reverse", "case_sensitive", "attribute")
	if err != nil {
		return nil, err
	}
	items, err := st.items(v)
	if err != nil {
		return nil, err
	}
	if s, ok := p[2].(string); ok && slices.Contains([]byte(s), ',') {
		return nil, unsupportedf("sort by several attributes")
	}
	get, err := folded(p[2], p[1])
	if err != nil {
		return nil, err
	}
	items, err = sorted(st, items, get, p[0] != nil && pyval.Truth(p[0]))
	return &pyval.List{Items: items}, err
}

func filterDictsort(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
	p, err := a.bind("dictsort", "case_sensitive", "by", "reverse")
	if err != nil {
		return nil, err
	}
	by, err := text(p[1], "by", "key")
	if err != nil {
		return nil, err
	}
	at, ok := map[string]int64{"key": 0, "value": 1}[by]
	if !ok {
		return nil, failf("you can only sort by either key or value")
	}
	if u, ok := v.(*undefined); ok {
		return nil, u.fail()
	}
	d, ok := v.(*pyval.Dict)
	if !ok {
		return nil, failf("%s has no attribute 'items'", typeName(v))
	}
	items, err := st.items(&dictView{kind: "items", dict: d})
	if err != nil {
		return nil, err
	}
	get, err := folded(at, p[0])
	if err != nil {
		return nil, err
	}
	items, err = sorted(st, items, get, p[2] != nil && pyval.Truth(p[2]))
	return &pyval.List{Items: items}, err
}

// seen tells values apart as a Python set does.
type seen struct{ d pyval.Dict }

func (s *seen) add(st *state, v pyval.Value) (fresh bool, err error) {
	if _, text := v.(string); !text {
		if err := st.step(1 + s.d.Len()); err != nil {
			return false, err
		}
	}
	if _, ok, err := s.d.Lookup(v); ok || err != nil {
		return false, err
	}
	return true, s.d.SetAny(v, true)
}

func filterUnique(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
	p, err := a.bind("unique", "case_sensitive", "attribute")
	if err != nil {
		return nil, err
	}
	get, err := folded(p[1], p[0])
	if err != nil {
		return nil, err
	}
	it, err := st.iterate(v)
	if err != nil {
		return nil, err
	}
	var known seen
	return it.over(func() (pyval.Value, bool, error) {
		for {
			item, ok, err := it.next()
			if err != nil || !ok {
				return nil, false, err
			}
			key, err := get(st, item)
			if err != nil {
				return nil, false, err
			}
			fresh, err := known.add(st, key)
			if fresh || err != nil {
				return item, fresh, err
			}
		}
	})
}

// extreme is min or max: the first item whose key no other is beyond.
func extreme(sign int) filterFunc {
	return func(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
		p, err := a.bind("min", "case_sensitive", "attribute")
		if err != nil {
			return nil, err
		}
		items, err := st.items(v)
		if err != nil {
			return nil, err
		}
		if len(items) == 0 {
			return &undefined{hint: "no aggregated item, sequence was empty"}, nil
		}
		get, err := folded(p[1], p[0])
		if err != nil {
			return nil, err
		}
		keys, err := mapAll(st, items, get)
		if err != nil {
			return nil, err
		}
		best := 0
		op := map[int]string{-1: "<", 1: ">"}[sign]
		for i := 1; i < len(items); i++ {
			beyond, err := st.compare(op, keys[i], keys[best])
			if err != nil {
				return nil, err
			}
			if beyond {
				best = i
			}
		}
		return items[best], nil
	}
}

func filterSum(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
	p, err := a.bind("sum", "attribute", "start")
	if err != nil {
		return nil, err
	}
	items, err := st.items(v)
	if err != nil {
		return nil, err
	}
	get, err := attrGetter(p[0], nil, false)
	if err != nil {
		return nil, err
	}
	var sum pyval.Value = int64(0)
	if p[1] != nil {
		sum = p[1]
	}
	if _, ok := sum.(string); ok {
		return nil, failf("sum() can't sum strings")
	}
	floats := false
	for _, item := range items {
		item, err := get(st, item)
		if err != nil {
			return nil, err
		}
		// From 3.12 on Python sums floats with a correction, before it without: they may differ from the third one on.
		if _, ok := item.(float64); ok && floats {
			return nil, unsupportedf("sum of several floats")
		} else if ok {
			floats = true
		}
		if sum, err = st.binary("+", sum, item); err != nil {
			return nil, err
		}
	}
	return sum, nil
}

// filterBatch gives lists of so many items, the last one filled up if there is something to fill with.
func filterBatch(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
	p, err := a.bind("batch", "linecount", "fill_with")
	if err != nil {
		return nil, err
	}
	n, err := integer(p[0], "linecount", 0)
	if err != nil {
		return nil, err
	}
	if n <= 0 {
		return nil, unsupportedf("batches of %d", n)
	}
	items, err := st.items(v)
	if err != nil {
		return nil, err
	}
	if err := st.grow(32 * len(items)); err != nil {
		return nil, err
	}
	var batches []pyval.Value
	for part := range slices.Chunk(items, n) {
		l := &pyval.List{Items: slices.Clone(part)}
		if _, none := p[1].(pyval.None); p[1] != nil && !none {
			if err := st.grow(16 * (n - len(part))); err != nil {
				return nil, err
			}
			for len(l.Items) < n {
				l.Items = append(l.Items, p[1])
			}
		}
		batches = append(batches, l)
	}
	return sliceIterator(batches), nil
}
