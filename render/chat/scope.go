package chat

import "slices"

// Jinja decides at compile time where each name lives (jinja2/idtracking.py), and its answer is seen in odd places: a
// name set later in the same block hides one of the request even before it is set. So we do the same.

// action says how a slot gets its first value when a frame is entered.
type action uint8

const (
	loadParam     action = iota // whoever enters sets it
	loadResolve                 // from the render variables and globals, by name
	loadAlias                   // from a slot of an outer frame
	loadUndefined               // nothing yet
)

type load struct {
	slot   int
	action action
	name   string
	from   ref
}

// frame is a block with names of its own: what an env of it looks like.
type frame struct {
	size  int
	loads []load
}

// symbols are the names of a frame while it is analyzed.
type symbols struct {
	level  int
	parent *symbols
	slots  map[string]int // shared by copies: one slot per name
	refs   map[string]bool
	loads  map[int]load
	stores map[string]bool
}

func newSymbols(parent *symbols) *symbols {
	s := &symbols{parent: parent, slots: map[string]int{}, refs: map[string]bool{}, loads: map[int]load{}, stores: map[string]bool{}}
	if parent != nil {
		s.level = parent.level + 1
	}
	return s
}

// copy is for one branch of an if.
func (s *symbols) copy() *symbols {
	c := newSymbols(s.parent)
	c.slots = s.slots
	c.merge(s)
	return c
}

func (s *symbols) merge(from *symbols) {
	for name := range from.refs {
		s.refs[name] = true
	}
	for slot, l := range from.loads {
		s.loads[slot] = l
	}
	for name := range from.stores {
		s.stores[name] = true
	}
}

// find gives the place of a name in this frame or an outer one, as seen from s.
func (s *symbols) find(name string) (ref, bool) {
	for at := s; at != nil; at = at.parent {
		if at.refs[name] {
			return ref{up: s.level - at.level, slot: at.slots[name]}, true
		}
	}
	return ref{}, false
}

func (s *symbols) define(name string, l load) int {
	slot, ok := s.slots[name]
	if !ok {
		slot = len(s.slots)
		s.slots[name] = slot
	}
	s.refs[name] = true
	l.slot, l.name = slot, name
	s.loads[slot] = l
	return slot
}

func (s *symbols) param(name string) int {
	s.stores[name] = true
	return s.define(name, load{action: loadParam})
}

func (s *symbols) load(name string) {
	if _, ok := s.find(name); !ok {
		s.define(name, load{action: loadResolve})
	}
}

// outer gives the place of a name in an outer frame.
func (s *symbols) outer(name string) (ref, bool) {
	if s.parent == nil {
		return ref{}, false
	}
	r, ok := s.parent.find(name)
	r.up++
	return r, ok
}

func (s *symbols) store(name string) {
	s.stores[name] = true
	if s.refs[name] {
		return
	}
	if from, ok := s.outer(name); ok {
		s.define(name, load{action: loadAlias, from: from})
		return
	}
	s.define(name, load{action: loadUndefined})
}

// join takes in the branches of an if: what only some of them store may keep its old value.
func (s *symbols) join(branches ...*symbols) {
	stored := map[string]bool{}
	for _, b := range branches {
		for name := range b.stores {
			if !s.stores[name] {
				stored[name] = true
			}
		}
	}
	for _, b := range branches {
		s.merge(b)
	}
	for name := range stored {
		l := load{action: loadResolve, name: name, slot: s.slots[name]}
		if from, ok := s.outer(name); ok {
			l.action, l.from = loadAlias, from
		}
		s.loads[l.slot] = l
	}
}

// frame is the result of the analysis.
func (s *symbols) frame() *frame {
	f := &frame{size: len(s.slots)}
	for _, l := range s.loads {
		if l.action != loadParam && l.action != loadUndefined {
			f.loads = append(f.loads, l)
		}
	}
	slices.SortFunc(f.loads, func(a, b load) int { return a.slot - b.slot })
	return f
}

// visit collects the names of one frame from n. It stops where an inner frame begins.
func (s *symbols) visit(n node) {
	switch n := n.(type) {
	case *nameExpr:
		switch n.use {
		case useLoad:
			s.load(n.name)
		case useStore:
			s.store(n.name)
		case useParam:
			s.param(n.name)
		}
	case *nsRef:
		s.load(n.name)
	case *ifStmt:
		s.visitIf(n)
	case *macroStmt:
		s.store(n.name)
	case *setStmt:
		s.visit(n.value)
		s.visit(n.target)
	case *setBlockStmt:
		s.visit(n.target)
	case *forStmt:
		s.visit(n.iter)
	case *callBlockStmt:
		if n.call != nil {
			s.visit(n.call)
		}
	case *filterBlockStmt:
		s.visit(n.filter)
	case *withStmt:
		for _, v := range n.values {
			s.visit(v)
		}
	default:
		for _, c := range n.children() {
			s.visit(c)
		}
	}
}

func (s *symbols) visitIf(n *ifStmt) {
	s.visit(n.test)
	body, elifs, otherwise := s.copy(), s.copy(), s.copy()
	body.visitAll(n.body)
	for _, e := range n.elifs {
		elifs.visitIf(e)
	}
	otherwise.visitAll(n.otherwise)
	s.join(body, elifs, otherwise)
}

func (s *symbols) visitAll(list []stmt) {
	for _, n := range list {
		s.visit(n)
	}
}

// visitParam declares the names of a target as parameters.
func (s *symbols) visitParam(target expr) {
	switch t := target.(type) {
	case *nameExpr:
		s.param(t.name)
	case *tupleExpr:
		for _, item := range t.items {
			s.visitParam(item)
		}
	}
}

// uses reports which of the names are read below the nodes before they are set there (find_undeclared).
func uses(list []stmt, names ...string) map[string]bool {
	found := map[string]bool{}
	for _, s := range list {
		walk(s, func(n node) bool {
			if name, ok := n.(*nameExpr); ok {
				if i := slices.Index(names, name.name); i >= 0 {
					if name.use == useLoad {
						found[name.name] = true
					} else {
						names = slices.Delete(slices.Clone(names), i, i+1)
					}
				}
			}
			return true
		})
	}
	return found
}
