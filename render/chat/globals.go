package chat

import (
	"errors"

	"github.com/kvscout/kvscout/render/pyval"
)

// maxRange is jinja2.sandbox.MAX_RANGE.
const maxRange = 100_000

// globals are Jinja's own and those of transformers. lipsum is not there: a template that uses it is refused, since it
// writes random text.
var globals map[string]pyval.Value

func init() {
	globals = map[string]pyval.Value{
		"range": method("range", globalRange), "dict": method("dict", globalDict), "namespace": method("namespace", globalNamespace),
		"cycler": method("cycler", globalCycler), "joiner": method("joiner", globalJoiner),
		"raise_exception": method("raise_exception", globalRaise), "strftime_now": method("strftime_now", globalStrftimeNow),
		"lipsum": method("lipsum", func(*state, arguments) (pyval.Value, error) { return nil, unsupportedf("function 'lipsum'") }),
	}
}

// isDefaultGlobal reports whether plain Jinja has a global of that name.
func isDefaultGlobal(name string) bool {
	return name != "raise_exception" && name != "strftime_now" && globals[name] != nil
}

func globalRange(_ *state, a arguments) (pyval.Value, error) {
	if len(a.kw) > 0 || len(a.pos) == 0 || len(a.pos) > 3 {
		return nil, failf("range expected 1 to 3 arguments")
	}
	n := [3]int64{0, 0, 1}
	for i, v := range a.pos {
		if u, ok := v.(*undefined); ok {
			return nil, u.fail()
		}
		b, ok := indexOf(v)
		if !ok {
			return nil, failf("'%s' object cannot be interpreted as an integer", pyval.TypeName(v))
		}
		n[i] = int64(b)
	}
	r := &rangeObject{start: n[0], stop: n[1], step: n[2]}
	if len(a.pos) == 1 {
		r.start, r.stop = 0, n[0]
	}
	const huge = 1 << 60
	if r.step == 0 {
		return nil, failf("range() arg 3 must not be zero")
	}
	for _, v := range n {
		if v > huge || v < -huge {
			return nil, unsupportedf("range with huge bounds")
		}
	}
	switch {
	case r.step > 0 && r.start < r.stop:
		r.n = int((r.stop-r.start-1)/r.step + 1)
	case r.step < 0 && r.start > r.stop:
		r.n = int((r.start-r.stop-1)/(-r.step) + 1)
	}
	if r.n > maxRange {
		return nil, failf("range too big, the sandbox blocks ranges larger than %d", maxRange)
	}
	return r, nil
}

func globalDict(st *state, a arguments) (pyval.Value, error) {
	d := &pyval.Dict{}
	if err := fill(st, d, a); err != nil {
		return nil, err
	}
	return d, nil
}

func globalNamespace(st *state, a arguments) (pyval.Value, error) {
	ns := &namespace{}
	if err := fill(st, &ns.attrs, a); err != nil {
		return nil, err
	}
	return ns, nil
}

// fill is dict(*args, **kwargs): a dict or a list of pairs, then the keywords.
func fill(st *state, d *pyval.Dict, a arguments) error {
	if len(a.pos) > 1 {
		return failf("dict expected at most 1 argument")
	}
	if len(a.pos) == 1 {
		source := a.pos[0]
		if from, ok := source.(*pyval.Dict); ok {
			source = &dictView{kind: "items", dict: from}
		}
		items, err := st.items(source)
		if err != nil {
			return err
		}
		for _, item := range items {
			pair, err := st.items(item)
			if err != nil {
				return err
			}
			if len(pair) != 2 {
				return failf("dictionary update sequence element has a length other than 2")
			}
			if err := st.grow(64); err != nil {
				return err
			}
			if err := d.SetAny(pair[0], pair[1]); err != nil {
				return err
			}
		}
	}
	for _, k := range a.kw {
		d.Set(k.name, k.value)
	}
	return nil
}

// cycler goes round its items: jinja2.utils.Cycler.
type cycler struct {
	opaque
	items []pyval.Value
	pos   int
}

func (*cycler) PyType() string                   { return "Cycler" }
func (c *cycler) PyEqual(other pyval.Value) bool { return c == other }

func (c *cycler) attr(name string) (pyval.Value, bool) {
	switch name {
	case "current":
		return c.items[c.pos], true
	case "next":
		return method(name, func(*state, arguments) (pyval.Value, error) {
			v := c.items[c.pos]
			c.pos = (c.pos + 1) % len(c.items)
			return v, nil
		}), true
	case "reset":
		return method(name, func(*state, arguments) (pyval.Value, error) {
			c.pos = 0
			return pyval.None{}, nil
		}), true
	}
	return nil, false
}

func globalCycler(_ *state, a arguments) (pyval.Value, error) {
	if len(a.pos) == 0 || len(a.kw) > 0 {
		return nil, failf("at least one item has to be provided")
	}
	return &cycler{items: a.pos}, nil
}

// joiner is empty when first called and its separator from then on: jinja2.utils.Joiner.
func globalJoiner(_ *state, a arguments) (pyval.Value, error) {
	p, err := a.bind("joiner", "sep")
	if err != nil {
		return nil, err
	}
	var sep pyval.Value = ", "
	if p[0] != nil {
		sep = p[0]
	}
	used := false
	return method("joiner", func(*state, arguments) (pyval.Value, error) {
		if !used {
			used = true
			return "", nil
		}
		return sep, nil
	}), nil
}

func globalRaise(_ *state, a arguments) (pyval.Value, error) {
	p, err := a.required("raise_exception", "message")
	if err != nil {
		return nil, err
	}
	message, err := pyval.Str(p[0])
	if err != nil && !errors.Is(err, ErrUnsupported) {
		return nil, err
	}
	return nil, &Error{kind: ErrRaised, Message: message}
}

func globalStrftimeNow(st *state, a arguments) (pyval.Value, error) {
	p, err := a.required("strftime_now", "format")
	if err != nil {
		return nil, err
	}
	format, ok := p[0].(string)
	if !ok {
		return nil, failf("strftime() argument 1 must be str, not %s", pyval.TypeName(p[0]))
	}
	return strftime(st.now(), format)
}
