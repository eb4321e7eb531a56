package chat

import (
	"strconv"
	"strings"
)

// postfix reads attributes, items and calls behind an expression.
func (p *parser) postfix(e expr) (expr, error) {
	for n := 0; ; n++ {
		if n > maxParseDepth {
			return nil, errAt(ErrLimit, p.cur().line, "more than %d attributes in a row", maxParseDepth)
		}
		var err error
		switch t := p.cur(); {
		case t.is(".") || t.is("["):
			e, err = p.subscript(e)
		case t.is("("):
			e, err = p.call(e)
		default:
			return e, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// filterExpr reads filters, tests and calls behind an expression.
func (p *parser) filterExpr(e expr) (expr, error) {
	for n := 0; ; n++ {
		if n > maxParseDepth {
			return nil, errAt(ErrLimit, p.cur().line, "more than %d filters in a row", maxParseDepth)
		}
		var err error
		switch t := p.cur(); {
		case t.is("|"):
			p.next()
			e, err = p.filter(e)
		case t.isName("is"):
			e, err = p.test(e)
		case t.is("("):
			e, err = p.call(e)
		default:
			return e, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (p *parser) subscript(object expr) (expr, error) {
	t := p.next()
	if t.is(".") {
		attr := p.next()
		switch attr.kind {
		case tokName:
			return &attrExpr{object: object, name: attr.text, line: attr.line}, nil
		case tokInteger:
			key, err := integerConst(attr)
			return &itemExpr{object: object, key: key, line: attr.line}, err
		}
		return nil, errAt(ErrSyntax, attr.line, "expected name or number")
	}
	var keys []expr
	for !p.cur().is("]") {
		if len(keys) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		key, err := p.subscribed()
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	p.next()
	switch len(keys) {
	case 0:
		return nil, errAt(ErrSyntax, t.line, "expected subscript expression")
	case 1:
		return &itemExpr{object: object, key: keys[0], line: t.line}, nil
	}
	for _, k := range keys {
		if _, ok := k.(*sliceExpr); ok {
			return nil, errAt(ErrUnsupported, t.line, "slice in a tuple of subscripts")
		}
	}
	return &itemExpr{object: object, key: &tupleExpr{items: keys}, line: t.line}, nil
}

// subscribed reads a key or a slice.
func (p *parser) subscribed() (expr, error) {
	s := &sliceExpr{}
	var err error
	if !p.cur().is(":") {
		if s.start, err = p.expression(true); err != nil || !p.cur().is(":") {
			return s.start, err
		}
	}
	p.next()
	end := func() bool { return p.cur().is("]") || p.cur().is(",") }
	if !end() && !p.cur().is(":") {
		if s.stop, err = p.expression(true); err != nil {
			return nil, err
		}
	}
	if p.skipOp(":") && !end() {
		if s.step, err = p.expression(true); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (p *parser) call(callee expr) (expr, error) {
	line := p.cur().line
	args, err := p.arguments()
	if err != nil {
		return nil, err
	}
	if a, ok := callee.(*attrExpr); ok && unsupportedMethod(a.name) {
		return nil, errAt(ErrUnsupported, line, "method '%s'", a.name)
	}
	return &callExpr{callee: callee, args: args, line: line}, nil
}

func (p *parser) arguments() (callArgs, error) {
	var a callArgs
	if err := p.expectOp("("); err != nil {
		return a, err
	}
	first := true
	for !p.cur().is(")") {
		if !first {
			if err := p.expectOp(","); err != nil {
				return a, err
			}
			if p.cur().is(")") {
				break
			}
		}
		first = false
		if err := p.argument(&a); err != nil {
			return a, err
		}
	}
	return a, p.expectOp(")")
}

func (p *parser) argument(a *callArgs) error {
	var err error
	bad := false
	switch t := p.cur(); {
	case t.is("*"):
		bad = a.star != nil || a.starStar != nil
		p.next()
		a.star, err = p.expression(true)
	case t.is("**"):
		bad = a.starStar != nil
		p.next()
		a.starStar, err = p.expression(true)
	case t.kind == tokName && p.look().is("="):
		bad = a.starStar != nil
		p.next()
		p.next()
		var e expr
		e, err = p.expression(true)
		a.kwargs = append(a.kwargs, keyword{t.text, e})
	default:
		bad = a.star != nil || a.starStar != nil || len(a.kwargs) > 0
		var e expr
		e, err = p.expression(true)
		a.args = append(a.args, e)
	}
	if bad && err == nil {
		return p.fail("invalid syntax for function call expression")
	}
	return err
}

func (p *parser) dottedName() (string, error) {
	t, err := p.expect(tokName, "a name")
	name := t.text
	for err == nil && p.skipOp(".") {
		t, err = p.expect(tokName, "a name")
		name += "." + t.text
	}
	return name, err
}

// filter reads one filter behind its "|".
func (p *parser) filter(object expr) (*filterExpr, error) {
	f := &filterExpr{object: object, line: p.cur().line}
	var err error
	if f.name, err = p.dottedName(); err != nil {
		return nil, err
	}
	if p.cur().is("(") {
		if f.args, err = p.arguments(); err != nil {
			return nil, err
		}
	}
	f.fn = filters[f.name]
	if f.fn == nil && otherFilters[f.name] {
		return nil, errAt(ErrUnsupported, f.line, "filter '%s'", f.name)
	}
	return f, checkNamed(f.name, f.args, f.line)
}

// checkNamed refuses map('random') and the like at load, where the name is a constant. A name that Jinja does not know
// either fails when it is used.
func checkNamed(filter string, args callArgs, line int) error {
	if filter != "map" || len(args.args) == 0 {
		return nil
	}
	c, ok := args.args[0].(*constExpr)
	if !ok {
		return nil
	}
	name, _ := c.value.(string)
	if otherFilters[name] {
		return errAt(ErrUnsupported, line, "filter '%s'", name)
	}
	return nil
}

// filters reads the filters of a set block, each behind a "|"; nil if there is none.
func (p *parser) filters(inner *filterExpr) (*filterExpr, error) {
	for p.skipOp("|") {
		var object expr
		if inner != nil {
			object = inner
		}
		f, err := p.filter(object)
		if err != nil {
			return nil, err
		}
		inner = f
	}
	return inner, nil
}

// firstFilter reads the filters of a filter block, the first without a "|".
func (p *parser) firstFilter() (*filterExpr, error) {
	f, err := p.filter(nil)
	if err != nil {
		return nil, err
	}
	return p.filters(f)
}

func (p *parser) test(object expr) (expr, error) {
	t := &testExpr{object: object, line: p.next().line}
	negated := p.skipName("not")
	var err error
	if t.name, err = p.dottedName(); err != nil {
		return nil, err
	}
	switch c := p.cur(); {
	case c.is("("):
		t.args, err = p.arguments()
	case startsOperand(c):
		if c.isName("is") {
			return nil, p.fail("you cannot chain multiple tests with is")
		}
		var arg expr
		if arg, err = p.primary(); err == nil {
			arg, err = p.postfix(arg)
		}
		t.args.args = []expr{arg}
	}
	if err != nil {
		return nil, err
	}
	t.fn = tests[t.name]
	if negated {
		return &notExpr{t}, nil
	}
	return t, nil
}

func startsOperand(t token) bool {
	switch t.kind {
	case tokName:
		return t.text != "else" && t.text != "or" && t.text != "and"
	case tokString, tokInteger, tokFloat:
		return true
	}
	return t.is("(") || t.is("[") || t.is("{")
}

// attrPath is the argument "attribute" of filters: names and indexes with dots between them.
func attrPath(s string) []any {
	var path []any
	for _, part := range strings.Split(s, ".") {
		if n, err := strconv.ParseInt(part, 10, 64); err == nil && part[0] != '-' && part[0] != '+' {
			path = append(path, n)
		} else {
			path = append(path, part)
		}
	}
	return path
}
