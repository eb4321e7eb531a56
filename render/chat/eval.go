package chat

import (
	"strings"

	"github.com/kvscout/kvscout/render/pyval"
)

func (x *constExpr) eval(*state, *env) (pyval.Value, error) { return x.value, nil }

func (x *nameExpr) eval(_ *state, e *env) (pyval.Value, error) {
	if v := e.get(x.ref); v != nil {
		return v, nil
	}
	return &undefined{hint: "'" + x.name + "' is undefined"}, nil
}

func (x *nsRef) eval(*state, *env) (pyval.Value, error) { return nil, failf("a target has no value") }

func (x *sliceExpr) eval(*state, *env) (pyval.Value, error) {
	return nil, failf("a slice has no value")
}

func (st *state) evalAll(list []expr, e *env) ([]pyval.Value, error) {
	if err := st.grow(16 * len(list)); err != nil {
		return nil, err
	}
	values := make([]pyval.Value, len(list))
	for i, x := range list {
		v, err := x.eval(st, e)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}

func (x *tupleExpr) eval(st *state, e *env) (pyval.Value, error) {
	items, err := st.evalAll(x.items, e)
	return &pyval.Tuple{Items: items}, err
}

func (x *listExpr) eval(st *state, e *env) (pyval.Value, error) {
	items, err := st.evalAll(x.items, e)
	return &pyval.List{Items: items}, err
}

func (x *dictExpr) eval(st *state, e *env) (pyval.Value, error) {
	d := &pyval.Dict{}
	if err := st.grow(64 * len(x.keys)); err != nil {
		return nil, err
	}
	for i := range x.keys {
		k, err := x.keys[i].eval(st, e)
		if err != nil {
			return nil, err
		}
		v, err := x.values[i].eval(st, e)
		if err != nil {
			return nil, err
		}
		if err := d.SetAny(k, v); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (x *condExpr) eval(st *state, e *env) (pyval.Value, error) {
	v, err := x.test.eval(st, e)
	if err != nil {
		return nil, err
	}
	switch {
	case pyval.Truth(v):
		return x.then.eval(st, e)
	case x.otherwise != nil:
		return x.otherwise.eval(st, e)
	}
	return &undefined{hint: "the inline if-expression evaluated to false and no else section was defined"}, nil
}

func (x *logicExpr) eval(st *state, e *env) (pyval.Value, error) {
	v, err := x.left.eval(st, e)
	if err != nil || pyval.Truth(v) == x.or {
		return v, err
	}
	return x.right.eval(st, e)
}

func (x *notExpr) eval(st *state, e *env) (pyval.Value, error) {
	v, err := x.operand.eval(st, e)
	if err != nil {
		return nil, err
	}
	return !pyval.Truth(v), nil
}

func (x *concatExpr) eval(st *state, e *env) (pyval.Value, error) {
	parts := make([]string, len(x.items))
	n := 0
	for i, item := range x.items {
		v, err := item.eval(st, e)
		if err != nil {
			return nil, err
		}
		if parts[i], err = st.str(v); err != nil {
			return nil, err
		}
		n += len(parts[i])
	}
	if err := st.grow(n); err != nil {
		return nil, err
	}
	return strings.Join(parts, ""), nil
}

func (x *binaryExpr) eval(st *state, e *env) (pyval.Value, error) {
	a, err := x.left.eval(st, e)
	if err != nil {
		return nil, err
	}
	b, err := x.right.eval(st, e)
	if err != nil {
		return nil, err
	}
	v, err := st.binary(x.op, a, b)
	if err != nil {
		return nil, located(err, x.line)
	}
	return v, nil
}

func (x *unaryExpr) eval(st *state, e *env) (pyval.Value, error) {
	v, err := x.operand.eval(st, e)
	if err != nil {
		return nil, err
	}
	return unary(x.op, v)
}

func (x *compareExpr) eval(st *state, e *env) (pyval.Value, error) {
	left, err := x.first.eval(st, e)
	if err != nil {
		return nil, err
	}
	for _, op := range x.ops {
		right, err := op.right.eval(st, e)
		if err != nil {
			return nil, err
		}
		ok, err := st.compare(op.op, left, right)
		if err != nil {
			return nil, located(err, x.line)
		}
		if !ok {
			return false, nil
		}
		left = right
	}
	return true, nil
}

func (x *attrExpr) eval(st *state, e *env) (pyval.Value, error) {
	if err := st.step(1); err != nil {
		return nil, err
	}
	object, err := x.object.eval(st, e)
	if err != nil {
		return nil, err
	}
	v, err := st.attribute(object, x.name)
	if err != nil {
		return nil, located(err, x.line)
	}
	return v, nil
}

func (x *itemExpr) eval(st *state, e *env) (pyval.Value, error) {
	if err := st.step(1); err != nil {
		return nil, err
	}
	object, err := x.object.eval(st, e)
	if err != nil {
		return nil, err
	}
	var v pyval.Value
	if s, ok := x.key.(*sliceExpr); ok {
		v, err = st.sliceOf(object, s, e)
	} else {
		var key pyval.Value
		if key, err = x.key.eval(st, e); err != nil {
			return nil, err
		}
		v, err = st.item(object, key)
	}
	if err != nil {
		return nil, located(err, x.line)
	}
	return v, nil
}

func (x *callExpr) eval(st *state, e *env) (pyval.Value, error) { return x.callWith(st, e, nil) }

// callWith calls with one more keyword argument, the caller of a call block, if that is not nil.
func (x *callExpr) callWith(st *state, e *env, caller *macro) (pyval.Value, error) {
	callee, err := x.callee.eval(st, e)
	if err != nil {
		return nil, err
	}
	a, err := x.args.eval(st, e)
	if err != nil {
		return nil, err
	}
	if caller != nil {
		a.kw = append(a.kw, kwarg{"caller", caller})
	}
	if err := st.step(1); err != nil {
		return nil, err
	}
	v, err := st.call(callee, a)
	if err != nil {
		return nil, located(err, x.line)
	}
	return v, nil
}

func (st *state) call(callee pyval.Value, a arguments) (pyval.Value, error) {
	switch c := callee.(type) {
	case callable:
		return c.call(st, a)
	case *undefined:
		return nil, c.fail()
	}
	return nil, failf("%s is not callable", typeName(callee))
}

func (c callArgs) eval(st *state, e *env) (arguments, error) {
	var a arguments
	var err error
	if len(c.args) > 0 {
		if a.pos, err = st.evalAll(c.args, e); err != nil {
			return a, err
		}
	}
	for _, k := range c.kwargs {
		v, err := k.value.eval(st, e)
		if err != nil {
			return a, err
		}
		a.kw = append(a.kw, kwarg{k.name, v})
	}
	if c.star != nil {
		v, err := c.star.eval(st, e)
		if err != nil {
			return a, err
		}
		items, err := st.items(v)
		if err != nil {
			return a, err
		}
		a.pos = append(a.pos, items...)
	}
	if c.starStar == nil {
		return a, nil
	}
	v, err := c.starStar.eval(st, e)
	if err != nil {
		return a, err
	}
	d, ok := v.(*pyval.Dict)
	if !ok {
		return a, failf("argument after ** must be a mapping, not %s", pyval.TypeName(v))
	}
	for _, entry := range d.Entries() {
		name, ok := entry.Key.(string)
		if !ok {
			return a, failf("keywords must be strings")
		}
		a.kw = append(a.kw, kwarg{name, entry.Value})
	}
	return a, nil
}

func (x *filterExpr) eval(st *state, e *env) (pyval.Value, error) {
	if err := st.step(1); err != nil {
		return nil, err
	}
	v, err := x.object.eval(st, e)
	if err != nil {
		return nil, err
	}
	return x.call(st, e, v)
}

func (x *filterExpr) call(st *state, e *env, v pyval.Value) (pyval.Value, error) {
	a, err := x.args.eval(st, e)
	if err != nil {
		return nil, err
	}
	if x.fn == nil {
		return nil, errAt(ErrTemplate, x.line, "no filter named '%s'", x.name)
	}
	v, err = x.fn(st, v, a)
	if err != nil {
		return nil, located(err, x.line)
	}
	return v, nil
}

// apply runs the filters of a block on its text.
func (x *filterExpr) apply(st *state, e *env, text string) (pyval.Value, error) {
	if x.object == nil {
		return x.call(st, e, text)
	}
	v, err := x.object.(*filterExpr).apply(st, e, text)
	if err != nil {
		return nil, err
	}
	return x.call(st, e, v)
}

func (x *testExpr) eval(st *state, e *env) (pyval.Value, error) {
	if err := st.step(1); err != nil {
		return nil, err
	}
	v, err := x.object.eval(st, e)
	if err != nil {
		return nil, err
	}
	a, err := x.args.eval(st, e)
	if err != nil {
		return nil, err
	}
	if x.fn == nil {
		return nil, errAt(ErrTemplate, x.line, "no test named '%s'", x.name)
	}
	ok, err := x.fn(st, v, a)
	if err != nil {
		return nil, located(err, x.line)
	}
	return ok, nil
}
