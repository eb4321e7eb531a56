package chat

import "github.com/kvscout/kvscout/render/pyval"

// macro is a macro, or the body of a call block (jinja2.runtime.Macro). It sees the variables around its definition.
type macro struct {
	opaque
	name     string
	args     []*nameExpr
	defaults []expr
	body     []stmt
	info     *macroInfo
	env      *env
}

func (m *macro) PyType() string { return "Macro" }

func (m *macro) PyStr() (string, error) { return m.PyRepr() }

func (m *macro) PyRepr() (string, error) { return "<Macro '" + m.name + "'>", nil }

func (m *macro) PyEqual(other pyval.Value) bool { return m == other }

func (m *macro) attr(name string) (pyval.Value, bool) {
	switch name {
	case "name":
		return m.name, true
	case "arguments":
		t := &pyval.Tuple{}
		for _, a := range m.args {
			t.Items = append(t.Items, a.name)
		}
		return t, true
	case "catch_kwargs":
		return m.info.kwargs >= 0, true
	case "catch_varargs":
		return m.info.varargs >= 0, true
	case "caller":
		return m.info.caller >= 0 || m.info.explicitCaller, true
	}
	return nil, false
}

func (m *macro) call(st *state, a arguments) (pyval.Value, error) {
	e := st.enter(m.info.frame, m.env, nil)
	if err := m.bind(a, e); err != nil {
		return nil, err
	}
	return captureCall(st, func() error {
		for i, arg := range m.args {
			if e.vars[m.info.params[i]] != nil {
				continue
			}
			var v pyval.Value = &undefined{hint: "parameter '" + arg.name + "' was not provided"}
			if d := i - len(m.args) + len(m.defaults); d >= 0 {
				var err error
				if v, err = m.defaults[d].eval(st, e); err != nil {
					return err
				}
			}
			e.vars[m.info.params[i]] = v
		}
		return st.run(m.body, e)
	})
}

// bind puts the arguments of a call into e. A parameter that got none stays nil.
func (m *macro) bind(a arguments, e *env) error {
	n := min(len(a.pos), len(m.args))
	for i := range n {
		e.vars[m.info.params[i]] = a.pos[i]
	}
	kw := append([]kwarg(nil), a.kw...)
	take := func(name string) pyval.Value {
		for i, k := range kw {
			if k.name == name {
				kw = append(kw[:i], kw[i+1:]...)
				return k.value
			}
		}
		return nil
	}
	for i := n; i < len(m.args); i++ {
		e.vars[m.info.params[i]] = take(m.args[i].name)
	}
	if m.info.caller >= 0 {
		caller := take("caller")
		if caller == nil {
			caller = &undefined{hint: "no caller defined"}
		}
		e.vars[m.info.caller] = caller
	}
	if m.info.kwargs >= 0 {
		d := &pyval.Dict{}
		for _, k := range kw {
			d.Set(k.name, k.value)
		}
		e.vars[m.info.kwargs] = d
	} else if len(kw) > 0 {
		return failf("macro '%s' takes no such keyword argument", m.name)
	}
	if m.info.varargs >= 0 {
		e.vars[m.info.varargs] = pyval.NewTuple(a.pos[n:]...)
	} else if len(a.pos) > len(m.args) {
		return failf("macro '%s' takes not more than %d argument(s)", m.name, len(m.args))
	}
	return nil
}
