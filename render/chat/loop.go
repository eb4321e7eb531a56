package chat

import (
	"errors"
	"fmt"

	"github.com/kvscout/kvscout/render/pyval"
)

func (s *forStmt) exec(st *state, e *env) error {
	v, err := s.iter.eval(st, e)
	if err != nil {
		return located(err, s.line)
	}
	return s.loop(st, e, v, 0)
}

// loop runs the body for each item of v; depth is that of a recursive loop, from 0.
func (s *forStmt) loop(st *state, e *env, v pyval.Value, depth int) error {
	items, err := st.items(v)
	if err == nil && s.test != nil {
		items, err = s.filter(st, e, items)
	}
	if err != nil {
		return located(err, s.line)
	}
	var l *loopObject
	if s.extended {
		l = &loopObject{stmt: s, env: e, items: items, depth: depth}
	}
	var body *env
	for i, item := range items {
		body = st.enter(s.frame, e, body)
		if l != nil {
			l.index = i
			body.vars[s.loopSlot] = l
		}
		err := st.step(1)
		if err == nil {
			err = st.assign(s.target, item, body)
		}
		if err != nil {
			return located(err, s.line)
		}
		if err := st.run(s.body, body); errors.Is(err, errBreak) {
			break
		} else if err != nil && !errors.Is(err, errContinue) {
			return err
		}
	}
	if len(items) == 0 && len(s.orIf) > 0 {
		return st.run(s.orIf, st.enter(s.elseFrame, e, nil))
	}
	return nil
}

// filter gives the items that the "if" of the loop lets through.
func (s *forStmt) filter(st *state, e *env, items []pyval.Value) ([]pyval.Value, error) {
	var kept []pyval.Value
	var inner *env
	for _, item := range items {
		inner = st.enter(s.testFrame, e, inner)
		if err := st.step(1); err != nil {
			return nil, err
		}
		if err := st.assign(s.testTarget, item, inner); err != nil {
			return nil, err
		}
		v, err := s.test.eval(st, inner)
		if err != nil {
			return nil, err
		}
		if pyval.Truth(v) {
			kept = append(kept, item)
		}
	}
	return kept, nil
}

// loopObject is the variable "loop" (jinja2.runtime.LoopContext).
type loopObject struct {
	stmt    *forStmt
	env     *env
	items   []pyval.Value
	index   int // from 0
	depth   int
	changed *pyval.Tuple // the last arguments of loop.changed, nil before the first
}

func (l *loopObject) PyType() string { return "LoopContext" }

func (l *loopObject) PyStr() (string, error) { return l.PyRepr() }

func (l *loopObject) PyRepr() (string, error) {
	return fmt.Sprintf("<LoopContext %d/%d>", l.index+1, len(l.items)), nil
}

func (l *loopObject) PyTruth() bool { return len(l.items) > 0 }

func (l *loopObject) PyEqual(other pyval.Value) bool { return l == other }

func (l *loopObject) attr(name string) (pyval.Value, bool) {
	n := int64(len(l.items))
	i := int64(l.index)
	switch name {
	case "index":
		return i + 1, true
	case "index0":
		return i, true
	case "revindex":
		return n - i, true
	case "revindex0":
		return n - i - 1, true
	case "first":
		return i == 0, true
	case "last":
		return i == n-1, true
	case "length":
		return n, true
	case "depth":
		return int64(l.depth + 1), true
	case "depth0":
		return int64(l.depth), true
	case "previtem":
		if i == 0 {
			return &undefined{hint: "there is no previous item"}, true
		}
		return l.items[i-1], true
	case "nextitem":
		if i == n-1 {
			return &undefined{hint: "there is no next item"}, true
		}
		return l.items[i+1], true
	case "cycle":
		return method("cycle", l.cycle), true
	case "changed":
		return method("changed", l.hasChanged), true
	}
	return nil, false
}

func (l *loopObject) cycle(_ *state, a arguments) (pyval.Value, error) {
	if len(a.pos) == 0 {
		return nil, failf("no items for cycling given")
	}
	return a.pos[l.index%len(a.pos)], nil
}

func (l *loopObject) hasChanged(st *state, a arguments) (pyval.Value, error) {
	now := &pyval.Tuple{Items: a.pos}
	if l.changed != nil {
		if same, err := st.equal(l.changed, now); same || err != nil {
			return false, err
		}
	}
	l.changed = now
	return true, nil
}

// call renders the loop again, one level deeper, for another list.
func (l *loopObject) call(st *state, a arguments) (pyval.Value, error) {
	if !l.stmt.recursive {
		return nil, failf("the loop must have the 'recursive' marker to be called recursively")
	}
	v, err := a.bind("loop", "iterable")
	if err != nil {
		return nil, err
	}
	if v[0] == nil {
		return nil, failf("loop() needs an iterable")
	}
	return captureCall(st, func() error { return l.stmt.loop(st, l.env, v[0], l.depth+1) })
}

// captureCall runs what a call writes, one call deeper, and gives the text.
func captureCall(st *state, f func() error) (pyval.Value, error) {
	text, err := st.capture(func() error { return st.nested(f) })
	if err != nil {
		return nil, err
	}
	return text, nil
}
