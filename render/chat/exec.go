package chat

import (
	"errors"

	"github.com/kvscout/kvscout/render/pyval"
)

// How break and continue leave the statements of a loop.
var (
	errBreak    = errors.New("break")
	errContinue = errors.New("continue")
)

func (st *state) run(list []stmt, e *env) error {
	for _, s := range list {
		if err := s.exec(st, e); err != nil {
			return err
		}
	}
	return nil
}

func (s *outputStmt) exec(st *state, e *env) error {
	for _, item := range s.items {
		if err := st.print(item, e); err != nil {
			return located(err, s.line)
		}
	}
	return nil
}

func (st *state) print(item expr, e *env) error {
	v, err := item.eval(st, e)
	if err != nil {
		return err
	}
	text, err := st.str(v)
	if err != nil {
		return err
	}
	return st.write(text)
}

// str is str(v), paid for.
func (st *state) str(v pyval.Value) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	s, err := pyval.Str(v)
	if err != nil {
		return "", err
	}
	return s, st.grow(len(s))
}

func (s *ifStmt) exec(st *state, e *env) error {
	taken, err := s.try(st, e)
	if taken || err != nil {
		return err
	}
	for _, elif := range s.elifs {
		if taken, err := elif.try(st, e); taken || err != nil {
			return err
		}
	}
	return st.run(s.otherwise, e)
}

func (s *ifStmt) try(st *state, e *env) (bool, error) {
	if err := st.step(1); err != nil {
		return false, err
	}
	v, err := s.test.eval(st, e)
	if err != nil {
		return false, located(err, s.line)
	}
	if !pyval.Truth(v) {
		return false, nil
	}
	return true, st.run(s.body, e)
}

func (s *setStmt) exec(st *state, e *env) error {
	v, err := s.value.eval(st, e)
	if err == nil {
		err = st.assign(s.target, v, e)
	}
	if err != nil {
		return located(err, s.line)
	}
	return nil
}

// assign stores a value in a name, an attribute of a namespace, or several of them.
func (st *state) assign(target expr, v pyval.Value, e *env) error {
	switch t := target.(type) {
	case *nameExpr:
		e.set(t.ref, v)
		return nil
	case *nsRef:
		ns, ok := e.get(t.ref).(*namespace)
		if !ok {
			return failf("cannot assign attribute on non-namespace object")
		}
		ns.attrs.Set(t.attr, v)
		return nil
	}
	t := target.(*tupleExpr)
	items, err := st.items(v)
	if err != nil {
		return err
	}
	if len(items) != len(t.items) {
		return failf("%d values to unpack, expected %d", len(items), len(t.items))
	}
	for i, item := range t.items {
		if err := st.assign(item, items[i], e); err != nil {
			return err
		}
	}
	return nil
}

func (s *setBlockStmt) exec(st *state, e *env) error {
	inner := st.enter(s.frame, e, nil)
	text, err := st.capture(func() error { return st.run(s.body, inner) })
	if err != nil {
		return err
	}
	var v pyval.Value = text
	if s.filter != nil {
		if v, err = s.filter.apply(st, inner, text); err != nil {
			return located(err, s.line)
		}
	}
	if err := st.assign(s.target, v, e); err != nil {
		return located(err, s.line)
	}
	return nil
}

func (s *filterBlockStmt) exec(st *state, e *env) error {
	inner := st.enter(s.frame, e, nil)
	text, err := st.capture(func() error { return st.run(s.body, inner) })
	if err != nil {
		return err
	}
	v, err := s.filter.apply(st, inner, text)
	if err != nil {
		return located(err, s.line)
	}
	if text, err = st.str(v); err != nil {
		return located(err, s.line)
	}
	return st.write(text)
}

func (s *withStmt) exec(st *state, e *env) error {
	inner := st.enter(s.frame, e, nil)
	for i, target := range s.targets {
		v, err := s.values[i].eval(st, e)
		if err == nil {
			err = st.assign(target, v, inner)
		}
		if err != nil {
			return located(err, s.line)
		}
	}
	return st.run(s.body, inner)
}

func (s *macroStmt) exec(st *state, e *env) error {
	m := &macro{name: s.name, args: s.args, defaults: s.defaults, body: s.body, info: &s.info, env: e}
	e.set(s.target, m)
	return nil
}

func (s *callBlockStmt) exec(st *state, e *env) error {
	caller := &macro{name: "caller", args: s.args, defaults: s.defaults, body: s.body, info: &s.info, env: e}
	var v pyval.Value
	var err error
	if s.call == nil {
		v, err = caller.call(st, arguments{})
	} else {
		v, err = s.call.callWith(st, e, caller)
	}
	if err != nil {
		return located(err, s.line)
	}
	text, err := st.str(v)
	if err != nil {
		return located(err, s.line)
	}
	return st.write(text)
}

func (s *breakStmt) exec(*state, *env) error { return errBreak }

func (s *continueStmt) exec(*state, *env) error { return errContinue }
