package chat

import (
	"context"

	"github.com/kvscout/kvscout/render/pyval"
)

// state is one execution.
type state struct {
	ctx     context.Context
	vars    Vars
	options        // what is left of steps and bytes
	out     []byte // of the template, or of the innermost block whose text is a value
	calls   int    // macros and recursive loops on the way
	ticks   uint32 // steps since ctx was looked at
}

// env holds the variables of a frame that is being executed. A nil slot is a name without a value.
type env struct {
	vars   []pyval.Value
	parent *env
}

func (e *env) get(r ref) pyval.Value {
	for ; r.up > 0; r.up-- {
		e = e.parent
	}
	return e.vars[r.slot]
}

func (e *env) set(r ref, v pyval.Value) {
	for ; r.up > 0; r.up-- {
		e = e.parent
	}
	e.vars[r.slot] = v
}

// enter makes the env of a frame, or resets reuse, which a loop has used for the item before. A macro made in a loop
// sees the reset, as a Python closure does.
func (st *state) enter(f *frame, parent, reuse *env) *env {
	e := reuse
	if e == nil {
		e = &env{vars: make([]pyval.Value, f.size), parent: parent}
	} else {
		clear(e.vars)
	}
	for i := range f.loads {
		l := &f.loads[i]
		if l.action == loadAlias {
			e.vars[l.slot] = e.get(l.from)
		} else {
			e.vars[l.slot] = st.global(l.name)
		}
	}
	return e
}

// global finds a name among the render variables, then among Jinja's globals; nil if there is none.
func (st *state) global(name string) pyval.Value {
	if v, ok := st.vars[name]; ok {
		return v
	}
	if g, ok := globals[name]; ok {
		return g
	}
	return nil
}

// step pays for n units of work.
func (st *state) step(n int) error {
	st.steps -= int64(n)
	if st.steps < 0 {
		return limitf("too many steps")
	}
	if st.ticks++; st.ticks&255 == 0 {
		return st.ctx.Err()
	}
	return nil
}

// grow pays for a text or list of n bytes before it is made.
func (st *state) grow(n int) error {
	if n > st.text || n < 0 {
		return limitf("a text or list of more than %d bytes", st.text)
	}
	if st.bytes -= int64(n); st.bytes < 0 {
		return limitf("too many bytes made")
	}
	return st.step(1 + n>>6)
}

// write appends to the output.
func (st *state) write(s string) error {
	if len(st.out)+len(s) > st.text {
		return limitf("output of more than %d bytes", st.text)
	}
	if err := st.grow(len(s)); err != nil {
		return err
	}
	st.out = append(st.out, s...)
	return nil
}

// capture runs f and gives what it wrote.
func (st *state) capture(f func() error) (string, error) {
	outer := st.out
	st.out = nil
	err := f()
	text := string(st.out)
	st.out = outer
	return text, err
}

// nested runs f one call deeper.
func (st *state) nested(f func() error) error {
	if st.calls++; st.calls > st.depth {
		return limitf("more than %d calls deep", st.depth)
	}
	err := f()
	st.calls--
	return err
}
