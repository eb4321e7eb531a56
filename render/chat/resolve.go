package chat

// resolver gives every name of a tree its place and every block its frame (the part of jinja2/compiler.py that deals
// with frames).
type resolver struct {
	free map[string]bool // names that come from outside of the template
	// soft: right inside of an if, where a filter or test that nobody knows fails only if it is reached.
	soft bool
}

// resolve resolves a whole template and gives the names that it takes from outside.
func resolve(t *root) (free map[string]bool, err error) {
	r := &resolver{free: map[string]bool{}}
	s := newSymbols(nil)
	s.visitAll(t.body)
	if err := r.stmts(t.body, s); err != nil {
		return nil, err
	}
	t.frame = r.finish(s)
	if r.free["self"] {
		return nil, errAt(ErrUnsupported, 0, "variable 'self'")
	}
	return r.free, nil
}

func (r *resolver) finish(s *symbols) *frame {
	f := s.frame()
	for _, l := range f.loads {
		if l.action == loadResolve {
			r.free[l.name] = true
		}
	}
	return f
}

// stmts resolves the body of a frame.
func (r *resolver) stmts(list []stmt, s *symbols) error {
	defer func(soft bool) { r.soft = soft }(r.soft)
	r.soft = false
	return r.nodes(stmts(list), s)
}

// softly resolves what is below an if.
func (r *resolver) softly(list []node, s *symbols) error {
	defer func(soft bool) { r.soft = soft }(r.soft)
	r.soft = true
	return r.nodes(list, s)
}

func (r *resolver) nodes(list []node, s *symbols) error {
	for _, n := range list {
		if err := r.node(n, s); err != nil {
			return err
		}
	}
	return nil
}

// known errs for a filter or test that Jinja does not have, where it does not compile.
func (r *resolver) known(n node) error {
	if r.soft {
		return nil
	}
	switch n := n.(type) {
	case *filterExpr:
		if n.fn == nil {
			return errAt(ErrUnsupported, n.line, "filter '%s'", n.name)
		}
	case *testExpr:
		if n.fn == nil {
			return errAt(ErrUnsupported, n.line, "test '%s'", n.name)
		}
	}
	return nil
}

// node resolves n, whose names live in s.
func (r *resolver) node(n node, s *symbols) error {
	if err := r.known(n); err != nil {
		return err
	}
	var err error
	switch n := n.(type) {
	case *ifStmt, *condExpr:
		err = r.softly(n.children(), s)
	case *nameExpr:
		n.ref, _ = s.find(n.name)
	case *nsRef:
		n.ref, _ = s.find(n.name)
	case *forStmt:
		err = r.forLoop(n, s)
	case *macroStmt:
		n.target, _ = s.find(n.name)
		n.info, err = r.macro(n.args, n.defaults, n.body, s)
	case *callBlockStmt:
		if n.call != nil {
			err = r.node(n.call, s)
		}
		if err == nil {
			n.info, err = r.macro(n.args, n.defaults, n.body, s)
		}
	case *setBlockStmt:
		inner := newSymbols(s)
		inner.visitAll(n.body)
		if n.filter != nil {
			inner.visit(n.filter)
			err = r.node(n.filter, inner)
		}
		if err == nil {
			err = r.stmts(n.body, inner)
		}
		if err == nil {
			err = r.node(n.target, s)
		}
		n.frame = r.finish(inner)
	case *filterBlockStmt:
		inner := newSymbols(s)
		inner.visitAll(n.body)
		inner.visit(n.filter)
		if err = r.stmts(n.body, inner); err == nil {
			err = r.node(n.filter, inner)
		}
		n.frame = r.finish(inner)
	case *withStmt:
		err = r.with(n, s)
	default:
		err = r.nodes(n.children(), s)
	}
	return err
}

func (r *resolver) with(n *withStmt, s *symbols) error {
	inner := newSymbols(s)
	for _, t := range n.targets {
		inner.visit(t)
	}
	inner.visitAll(n.body)
	for i := range n.targets {
		if err := r.node(n.targets[i], inner); err != nil {
			return err
		}
		if err := r.node(n.values[i], s); err != nil {
			return err
		}
	}
	err := r.stmts(n.body, inner)
	n.frame = r.finish(inner)
	return err
}

func (r *resolver) forLoop(n *forStmt, s *symbols) error {
	assigned := false
	walk(n, func(c node) bool {
		name, ok := c.(*nameExpr)
		assigned = assigned || ok && name.name == "loop" && name.use == useStore
		return !assigned
	})
	if assigned {
		return errAt(ErrSyntax, n.line, "can't assign to special loop variable in for-loop")
	}
	if err := r.node(n.iter, s); err != nil {
		return err
	}
	body := newSymbols(s)
	n.extended = n.recursive || uses(n.body, "loop")["loop"]
	if n.extended {
		n.loopSlot = body.param("loop")
	}
	body.visitParam(n.target)
	body.visitAll(n.body)
	if n.test != nil {
		if err := r.loopTest(n, s); err != nil {
			return err
		}
	}
	if err := r.node(n.target, body); err != nil {
		return err
	}
	if err := r.stmts(n.body, body); err != nil {
		return err
	}
	n.frame = r.finish(body)
	otherwise := newSymbols(s)
	otherwise.visitAll(n.orIf)
	err := r.stmts(n.orIf, otherwise)
	n.elseFrame = r.finish(otherwise)
	return err
}

// loopTest resolves the filter of a loop. Its frame has slots for the names of the target, in the order in which bind
// finds them; the target itself is resolved for the body.
func (r *resolver) loopTest(n *forStmt, s *symbols) error {
	test := newSymbols(s)
	test.visitParam(n.target)
	test.visit(n.test)
	if err := r.node(n.test, test); err != nil {
		return err
	}
	n.testTarget = cloneTarget(n.target)
	err := r.node(n.testTarget, test)
	n.testFrame = r.finish(test)
	return err
}

func cloneTarget(target expr) expr {
	switch t := target.(type) {
	case *nameExpr:
		c := *t
		return &c
	case *tupleExpr:
		c := &tupleExpr{store: true}
		for _, item := range t.items {
			c.items = append(c.items, cloneTarget(item))
		}
		return c
	}
	return target
}

// macro resolves the body of a macro or of a call block, which has a frame of its own.
func (r *resolver) macro(args []*nameExpr, defaults []expr, body []stmt, s *symbols) (macroInfo, error) {
	info := macroInfo{caller: -1, kwargs: -1, varargs: -1}
	inner := newSymbols(s)
	for _, a := range args {
		inner.visit(a)
	}
	for _, d := range defaults {
		inner.visit(d)
	}
	inner.visitAll(body)
	taken := map[string]bool{}
	for i, a := range args {
		taken[a.name] = true
		info.params = append(info.params, inner.slots[a.name])
		if a.name == "caller" {
			info.explicitCaller = true
			if i < len(args)-len(defaults) {
				return info, errAt(ErrSyntax, 0, "when using macros or call blocks the special \"caller\" argument must be omitted or be given a default")
			}
		}
	}
	used := uses(body, "caller", "kwargs", "varargs")
	if used["caller"] && !info.explicitCaller {
		info.caller = inner.param("caller")
	}
	if used["kwargs"] && !taken["kwargs"] {
		info.kwargs = inner.param("kwargs")
	}
	if used["varargs"] && !taken["varargs"] {
		info.varargs = inner.param("varargs")
	}
	for _, a := range args {
		if err := r.node(a, inner); err != nil {
			return info, err
		}
	}
	for _, d := range defaults {
		if err := r.node(d, inner); err != nil {
			return info, err
		}
	}
	err := r.stmts(body, inner)
	info.frame = r.finish(inner)
	return info, err
}
