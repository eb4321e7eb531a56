package chat

import (
	"fmt"

	"github.com/kvscout/kvscout/render/pyval"
)

// opaque has the methods of a value whose text holds an address, so that no two runs print it alike.
type opaque struct{}

func (opaque) PyStr() (string, error) { return "", unsupportedf("text of an object with an address") }

func (opaque) PyRepr() (string, error) { return "", unsupportedf("text of an object with an address") }

func (opaque) PyTruth() bool { return true }

// undefined is Jinja's Undefined: the value of names and attributes that do not exist.
type undefined struct {
	hint string // says what is missing, in words of the template
	// unsafe: an attribute that the sandbox does not give out.
	unsafe bool
}

func (*undefined) PyType() string                 { return "Undefined" }
func (*undefined) PyStr() (string, error)         { return "", nil }
func (*undefined) PyRepr() (string, error)        { return "Undefined", nil }
func (*undefined) PyTruth() bool                  { return false }
func (*undefined) PyEqual(other pyval.Value) bool { return isUndefined(other) }

// fail is what Python raises when an undefined value is used.
func (u *undefined) fail() error {
	if u.unsafe {
		return failf("access to %s is unsafe", u.hint)
	}
	return failf("%s", u.hint)
}

func isUndefined(v pyval.Value) bool {
	_, ok := v.(*undefined)
	return ok
}

// callable is what can be called.
type callable interface {
	call(st *state, a arguments) (pyval.Value, error)
}

// attributed is an object with attributes of its own.
type attributed interface {
	attr(name string) (pyval.Value, bool)
}

// function is a global function or a bound method.
type function struct {
	opaque
	name string
	fn   func(st *state, a arguments) (pyval.Value, error)
}

func (f *function) PyType() string                 { return "builtin_function_or_method" }
func (f *function) PyEqual(other pyval.Value) bool { return f == other }

func (f *function) call(st *state, a arguments) (pyval.Value, error) { return f.fn(st, a) }

func method(name string, fn func(st *state, a arguments) (pyval.Value, error)) *function {
	return &function{name: name, fn: fn}
}

// arguments are the values of a call.
type arguments struct {
	pos []pyval.Value
	kw  []kwarg
}

type kwarg struct {
	name  string
	value pyval.Value
}

// bind gives the values of the parameters named, nil where there is none.
func (a arguments) bind(what string, names ...string) ([]pyval.Value, error) {
	if len(a.pos) > len(names) {
		return nil, failf("%s takes at most %d argument(s)", what, len(names))
	}
	values := make([]pyval.Value, len(names))
	copy(values, a.pos)
next:
	for _, k := range a.kw {
		for i, name := range names {
			if name == k.name {
				if values[i] != nil {
					return nil, failf("%s got two values for '%s'", what, name)
				}
				values[i] = k.value
				continue next
			}
		}
		return nil, failf("%s got an unexpected keyword argument", what)
	}
	return values, nil
}

// none errs if there are any arguments.
func (a arguments) none(what string) error {
	if len(a.pos)+len(a.kw) > 0 {
		return failf("%s takes no arguments", what)
	}
	return nil
}

// namespace is Jinja's namespace(): the only value a template can change.
type namespace struct {
	opaque
	attrs pyval.Dict
}

func (n *namespace) PyType() string                 { return "Namespace" }
func (n *namespace) PyEqual(other pyval.Value) bool { return n == other }
func (n *namespace) PyStr() (string, error)         { return n.PyRepr() }

func (n *namespace) PyRepr() (string, error) {
	for _, e := range n.attrs.Entries() {
		switch v := e.Value.(type) {
		case *pyval.List:
			if len(v.Items) == 0 {
				continue
			}
		case pyval.None, bool, int64, float64, string:
			continue
		}
		return "", unsupportedf("text of a namespace with values in values") // it may hold itself
	}
	s, err := pyval.Repr(&n.attrs)
	return "<Namespace " + s + ">", err
}

func (n *namespace) attr(name string) (pyval.Value, bool) { return n.attrs.Get(name) }

// markup is text of the filter "safe" or "escape". Only what all texts have in common is done with it.
type markup struct{ text string }

func (markup) PyType() string            { return "Markup" }
func (m markup) PyStr() (string, error)  { return m.text, nil }
func (m markup) PyRepr() (string, error) { return "", unsupportedf("repr of marked up text") }
func (m markup) PyTruth() bool           { return m.text != "" }
func (m markup) PyEqual(other pyval.Value) bool {
	switch o := other.(type) {
	case string:
		return o == m.text
	case markup:
		return o == m
	}
	return false
}

// typeName names a type as Jinja's messages do.
func typeName(v pyval.Value) string {
	if _, ok := v.(pyval.None); ok {
		return "None"
	}
	return fmt.Sprintf("'%s object'", pyval.TypeName(v))
}
