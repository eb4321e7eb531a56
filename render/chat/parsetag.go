package chat

func (p *parser) forTag(line int) (stmt, error) {
	s := &forStmt{line: line}
	var err error
	if s.target, err = p.target(targetRules{tuple: true, end: "in"}); err != nil {
		return nil, err
	}
	if !p.skipName("in") {
		return nil, p.fail("expected 'in', got %s", p.cur().describe())
	}
	if s.iter, err = p.tuple(tupleRules{end: "recursive"}); err != nil {
		return nil, err
	}
	if p.skipName("if") {
		if s.test, err = p.expression(true); err != nil {
			return nil, err
		}
	}
	s.recursive = p.skipName("recursive")
	if s.recursive {
		loops := p.loops
		p.loops = 0
		defer func() { p.loops = loops }()
	}
	p.loops++
	body, end, err := p.block("endfor", "else")
	p.loops--
	if err != nil {
		return nil, err
	}
	s.body = body
	if end == "else" {
		if s.orIf, _, err = p.block("endfor"); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (p *parser) ifTag(line int) (stmt, error) {
	first := &ifStmt{line: line}
	for s := first; ; {
		var err error
		if s.test, err = p.tuple(tupleRules{}); err != nil {
			return nil, err
		}
		var end string
		if s.body, end, err = p.block("elif", "else", "endif"); err != nil {
			return nil, err
		}
		switch end {
		case "elif":
			s = &ifStmt{line: p.cur().line}
			first.elifs = append(first.elifs, s)
			continue
		case "else":
			if first.otherwise, _, err = p.block("endif"); err != nil {
				return nil, err
			}
		}
		return first, nil
	}
}

func (p *parser) setTag(line int) (stmt, error) {
	target, err := p.target(targetRules{tuple: true, namespace: true})
	if err != nil {
		return nil, err
	}
	if p.skipOp("=") {
		value, err := p.tuple(tupleRules{condexpr: true})
		return &setStmt{target: target, value: value, line: line}, err
	}
	s := &setBlockStmt{target: target, line: line}
	if s.filter, err = p.filters(nil); err != nil {
		return nil, err
	}
	s.body, err = p.endBlock("endset")
	return s, err
}

// endBlock is block with one end tag.
func (p *parser) endBlock(end string) ([]stmt, error) {
	list, _, err := p.block(end)
	return list, err
}

func (p *parser) withTag(line int) (stmt, error) {
	s := &withStmt{line: line}
	for p.cur().kind != tokBlockEnd {
		if len(s.targets) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		target, err := p.target(targetRules{tuple: true})
		if err != nil {
			return nil, err
		}
		if err := p.expectOp("="); err != nil {
			return nil, err
		}
		value, err := p.expression(true)
		if err != nil {
			return nil, err
		}
		setParam(target)
		s.targets, s.values = append(s.targets, target), append(s.values, value)
	}
	var err error
	s.body, err = p.endBlock("endwith")
	return s, err
}

// setParam makes the names of a target parameters of the frame, as with and for do.
func setParam(target expr) {
	switch t := target.(type) {
	case *nameExpr:
		t.use = useParam
	case *tupleExpr:
		for _, item := range t.items {
			setParam(item)
		}
	}
}

func (p *parser) filterTag(line int) (stmt, error) {
	f, err := p.firstFilter()
	if err != nil {
		return nil, err
	}
	s := &filterBlockStmt{filter: f, line: line}
	s.body, err = p.endBlock("endfilter")
	return s, err
}

func (p *parser) macroTag(line int) (stmt, error) {
	s := &macroStmt{line: line}
	name, err := p.targetName()
	if err != nil {
		return nil, err
	}
	s.name = name
	if s.args, s.defaults, err = p.signature(); err != nil {
		return nil, err
	}
	s.body, err = p.inFunction("endmacro")
	return s, err
}

func (p *parser) callTag(line int) (stmt, error) {
	s := &callBlockStmt{line: line}
	var err error
	if p.cur().is("(") {
		if s.args, s.defaults, err = p.signature(); err != nil {
			return nil, err
		}
	}
	e, err := p.expression(true)
	if err != nil {
		return nil, err
	}
	call, ok := e.(*callExpr)
	if !ok {
		return nil, errAt(ErrSyntax, line, "expected call")
	}
	s.call = call
	s.body, err = p.inFunction("endcall")
	return s, err
}

// signature reads the parameters of a macro.
func (p *parser) signature() (args []*nameExpr, defaults []expr, err error) {
	if err := p.expectOp("("); err != nil {
		return nil, nil, err
	}
	for !p.cur().is(")") {
		if len(args) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, nil, err
			}
		}
		name, err := p.targetName()
		if err != nil {
			return nil, nil, err
		}
		for _, a := range args {
			if a.name == name {
				return nil, nil, p.fail("duplicate argument '%s'", name)
			}
		}
		args = append(args, &nameExpr{name: name, use: useParam})
		if p.skipOp("=") {
			e, err := p.expression(true)
			if err != nil {
				return nil, nil, err
			}
			defaults = append(defaults, e)
		} else if len(defaults) > 0 {
			return nil, nil, p.fail("non-default argument follows default argument")
		}
	}
	return args, defaults, p.expectOp(")")
}

type targetRules struct {
	tuple, namespace bool
	end              string // a name that ends a tuple
}

func (p *parser) targetName() (string, error) {
	t, err := p.expect(tokName, "a name")
	if err != nil {
		return "", err
	}
	if reserved(t.text) {
		return "", errAt(ErrSyntax, t.line, "can't assign to '%s'", t.text)
	}
	return t.text, nil
}

// reserved are the names that Jinja takes for constants.
func reserved(name string) bool {
	switch name {
	case "true", "false", "none", "True", "False", "None":
		return true
	}
	return false
}

// target reads what is assigned to: a name, names, or an attribute of a namespace.
func (p *parser) target(rules targetRules) (expr, error) {
	if rules.namespace && p.cur().kind == tokName && p.look().is(".") {
		name := p.next().text
		p.next()
		attr, err := p.expect(tokName, "a name")
		return &nsRef{name: name, attr: attr.text}, err
	}
	if !rules.tuple {
		name, err := p.targetName()
		return &nameExpr{name: name, use: useStore}, err
	}
	e, err := p.tuple(tupleRules{simple: true, end: rules.end, namespace: rules.namespace})
	if err != nil {
		return nil, err
	}
	return e, p.asTarget(e)
}

func (p *parser) asTarget(e expr) error {
	switch e := e.(type) {
	case *nameExpr:
		if reserved(e.name) {
			return p.fail("can't assign to '%s'", e.name)
		}
		e.use = useStore
		return nil
	case *nsRef:
		return nil
	case *tupleExpr:
		e.store = true
		for _, item := range e.items {
			if err := p.asTarget(item); err != nil {
				return err
			}
		}
		return nil
	}
	return p.fail("can't assign to this expression")
}
