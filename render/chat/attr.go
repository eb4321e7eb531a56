package chat

import (
	"strings"

	"github.com/kvscout/kvscout/render/pyval"
)

// pythonAttrs are the public attributes that values have in Python: an attribute there hides an item of the same name.
var pythonAttrs = map[string]map[string]bool{
	"str": words(`capitalize casefold center count encode endswith expandtabs find format format_map index isalnum
		isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust
		lower lstrip maketrans partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip
		split splitlines startswith strip swapcase title translate upper zfill`),
	"dict":  words("clear copy fromkeys get items keys pop popitem setdefault update values"),
	"list":  words("append clear copy count extend index insert pop remove reverse sort"),
	"tuple": words("count index"),
	"int":   words("as_integer_ratio bit_count bit_length conjugate denominator from_bytes imag numerator real to_bytes"),
	"float": words("as_integer_ratio conjugate fromhex hex imag is_integer real"),
}

// mutators are refused by the sandbox of immutable values.
var mutators = map[string]map[string]bool{
	"dict": words("clear pop popitem setdefault update"),
	"list": words("append clear pop reverse insert sort extend remove"),
}

func words(s string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(s) {
		set[w] = true
	}
	return set
}

// unsupportedMethod reports whether values have a method of that name in Python and we do not have it.
func unsupportedMethod(name string) bool {
	if strMethods[name] != nil || dictMethods[name] != nil || listMethods[name] != nil {
		return false
	}
	for kind, attrs := range pythonAttrs {
		if attrs[name] && !mutators[kind][name] {
			return true
		}
	}
	return false
}

type methodFunc func(st *state, self pyval.Value, a arguments) (pyval.Value, error)

func methodsOf(v pyval.Value) (kind string, methods map[string]methodFunc) {
	switch v.(type) {
	case *pyval.Dict:
		return "dict", dictMethods
	case string:
		return "str", strMethods
	case *pyval.List:
		return "list", listMethods
	case *pyval.Tuple:
		return "tuple", listMethods
	case float64:
		return "float", nil
	case int64, bool:
		return "int", nil
	}
	return pyval.TypeName(v), nil
}

// own finds an attribute that the value has by its type.
func own(v pyval.Value, name string) (pyval.Value, bool, error) {
	switch v := v.(type) {
	case *undefined:
		return nil, false, v.fail()
	case attributed:
		a, ok := v.attr(name)
		return a, ok, nil
	case markup:
		if pythonAttrs["str"][name] {
			return nil, false, unsupportedf("method '%s' of marked up text", name)
		}
	}
	if len(name) > 4 && strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") {
		return nil, false, unsupportedf("attribute '%s'", name)
	}
	kind, methods := methodsOf(v)
	if !pythonAttrs[kind][name] {
		return nil, false, nil
	}
	if mutators[kind][name] {
		return &undefined{hint: "attribute '" + name + "' of " + typeName(v), unsafe: true}, true, nil
	}
	m := methods[name]
	if m == nil {
		return nil, false, unsupportedf("attribute '%s' of %s", name, typeName(v))
	}
	return method(name, func(st *state, a arguments) (pyval.Value, error) { return m(st, v, a) }), true, nil
}

// attribute is object.name: an attribute, then an item (SandboxedEnvironment.getattr).
func (st *state) attribute(object pyval.Value, name string) (pyval.Value, error) {
	d, isDict := object.(*pyval.Dict)
	if isDict && !pythonAttrs["dict"][name] {
		if v, ok := d.Get(name); ok {
			return v, nil
		}
	}
	v, ok, err := own(object, name)
	if ok || err != nil {
		return v, err
	}
	return &undefined{hint: typeName(object) + " has no attribute '" + name + "'"}, nil
}

// item is object[key]: an item, then an attribute (SandboxedEnvironment.getitem).
func (st *state) item(object, key pyval.Value) (pyval.Value, error) {
	switch o := object.(type) {
	case *pyval.Dict:
		v, ok, err := o.Lookup(key)
		if ok && err == nil {
			return v, nil
		}
	case *undefined:
		return nil, o.fail()
	default:
		if i, ok := indexOf(key); ok {
			if v, ok := at(object, i); ok {
				return v, nil
			}
		}
	}
	if name, ok := key.(string); ok {
		v, ok, err := own(object, name)
		if ok || err != nil {
			return v, err
		}
	}
	return &undefined{hint: typeName(object) + " has no such element"}, nil
}

// indexOf is the value of a key that Python takes for an index.
func indexOf(key pyval.Value) (int, bool) {
	switch k := key.(type) {
	case int64:
		return int(k), true
	case bool:
		if k {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// at is the item of a sequence at an index, which counts from the end if it is negative.
func at(v pyval.Value, i int) (pyval.Value, bool) {
	var items []pyval.Value
	switch v := v.(type) {
	case string:
		return charAt(v, i)
	case markup:
		return charAt(v.text, i)
	case *pyval.List:
		items = v.Items
	case *pyval.Tuple:
		items = v.Items
	case *rangeObject:
		if i < 0 {
			i += v.n
		}
		if i < 0 || i >= v.n {
			return nil, false
		}
		return v.start + int64(i)*v.step, true
	}
	if i < 0 {
		i += len(items)
	}
	if i < 0 || i >= len(items) {
		return nil, false
	}
	return items[i], true
}

func charAt(s string, i int) (pyval.Value, bool) {
	if !pyval.IsASCII(s) {
		n := pyval.Len(s)
		if i < 0 {
			i += n
		}
		if i < 0 || i >= n {
			return nil, false
		}
		start := pyval.Offset(s, i)
		return s[start : start+pyval.Offset(s[start:], 1)], true
	}
	if i < 0 {
		i += len(s)
	}
	if i < 0 || i >= len(s) {
		return nil, false
	}
	return s[i : i+1], true
}

// sliceOf is object[start:stop:step]. Jinja leaves it to Python, so it fails where a key would be undefined.
func (st *state) sliceOf(object pyval.Value, s *sliceExpr, e *env) (pyval.Value, error) {
	var bound [3]*int
	for i, x := range []expr{s.start, s.stop, s.step} {
		if x == nil {
			continue
		}
		v, err := x.eval(st, e)
		if err != nil {
			return nil, err
		}
		if _, none := v.(pyval.None); none {
			continue
		}
		n, ok := indexOf(v)
		if !ok {
			return nil, failf("slice indices must be integers or None")
		}
		bound[i] = &n
	}
	step := 1
	if bound[2] != nil {
		step = *bound[2]
	}
	n := 0
	switch o := object.(type) {
	case string:
		n = pyval.Len(o)
	case *pyval.List:
		n = len(o.Items)
	case *pyval.Tuple:
		n = len(o.Items)
	default:
		return st.noSlice(object)
	}
	if step == 0 {
		return nil, failf("slice step cannot be zero")
	}
	start, count := slicePlan(n, bound[0], bound[1], step)
	return st.cut(object, start, count, step)
}

func (st *state) noSlice(object pyval.Value) (pyval.Value, error) {
	switch o := object.(type) {
	case *undefined:
		return nil, o.fail()
	case *rangeObject, markup:
		return nil, unsupportedf("slice of %s", typeName(object))
	}
	return nil, failf("%s cannot be sliced", typeName(object))
}

// slicePlan gives the first index of a slice of n items and how many items it has (PySlice_AdjustIndices).
func slicePlan(n int, from, to *int, step int) (start, count int) {
	low, high := 0, n
	if step < 0 {
		low, high = -1, n-1
	}
	clamp := func(p *int, unset int) int {
		if p == nil {
			return unset
		}
		i := *p
		if i < 0 {
			i += n
		}
		return max(low, min(high, i))
	}
	if step > 0 {
		start, to := clamp(from, low), clamp(to, high)
		if start >= to {
			return start, 0
		}
		return start, (to-start-1)/step + 1
	}
	start, stop := clamp(from, high), clamp(to, low)
	if stop >= start {
		return start, 0
	}
	return start, (start-stop-1)/(-step) + 1
}

func (st *state) cut(object pyval.Value, start, count, step int) (pyval.Value, error) {
	if s, ok := object.(string); ok {
		return st.cutText(s, start, count, step)
	}
	items, err := st.items(object)
	if err != nil {
		return nil, err
	}
	if err := st.grow(16 * count); err != nil {
		return nil, err
	}
	part := make([]pyval.Value, count)
	for i := range part {
		part[i] = items[start+i*step]
	}
	if _, ok := object.(*pyval.Tuple); ok {
		return &pyval.Tuple{Items: part}, nil
	}
	return &pyval.List{Items: part}, nil
}

func (st *state) cutText(s string, start, count, step int) (pyval.Value, error) {
	if err := st.grow(len(s)); err != nil {
		return nil, err
	}
	if count == 0 {
		return "", nil
	}
	if step == 1 {
		if pyval.IsASCII(s) {
			return s[start : start+count], nil
		}
		from := pyval.Offset(s, start)
		return s[from : from+pyval.Offset(s[from:], count)], nil
	}
	runes := make([]rune, 0, len(s))
	for s != "" {
		r, size := pyval.DecodeRune(s)
		runes = append(runes, r)
		s = s[size:]
	}
	b := make([]byte, 0, count)
	for i := range count {
		b = pyval.AppendRune(b, runes[start+i*step])
	}
	return string(b), nil
}
