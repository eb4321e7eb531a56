package chat

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/kvscout/kvscout/render/pyval"
)

// maxOperands bounds a chain of operators, which is a tree as deep as it is long. Python's own limit is lower.
const maxOperands = 2000

func (p *parser) tooLong() error {
	return errAt(ErrLimit, p.cur().line, "more than %d operands in a row", maxOperands)
}

// expression reads one expression; without condexpr an "if" behind it is not its own.
func (p *parser) expression(condexpr bool) (expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	if condexpr {
		return p.conditional()
	}
	return p.or()
}

func (p *parser) conditional() (expr, error) {
	line := p.cur().line
	e, err := p.or()
	for err == nil && p.skipName("if") {
		c := &condExpr{then: e, line: line}
		if c.test, err = p.or(); err != nil {
			return nil, err
		}
		if p.skipName("else") {
			if c.otherwise, err = p.expression(true); err != nil {
				return nil, err
			}
		}
		e = c
	}
	return e, err
}

func (p *parser) or() (expr, error) {
	left, err := p.and()
	for n := 0; err == nil && p.skipName("or"); n++ {
		if n > maxOperands {
			return nil, p.tooLong()
		}
		var right expr
		right, err = p.and()
		left = &logicExpr{or: true, left: left, right: right}
	}
	return left, err
}

func (p *parser) and() (expr, error) {
	left, err := p.not()
	for n := 0; err == nil && p.skipName("and"); n++ {
		if n > maxOperands {
			return nil, p.tooLong()
		}
		var right expr
		right, err = p.not()
		left = &logicExpr{left: left, right: right}
	}
	return left, err
}

func (p *parser) not() (expr, error) {
	if !p.skipName("not") {
		return p.compare()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	e, err := p.not()
	return &notExpr{e}, err
}

func (p *parser) compare() (expr, error) {
	line := p.cur().line
	first, err := p.sum()
	if err != nil {
		return nil, err
	}
	var ops []compareOp
	for {
		op := ""
		switch t := p.cur(); {
		case t.kind == tokOperator && (t.text == "==" || t.text == "!=" || t.text == "<" || t.text == "<=" || t.text == ">" || t.text == ">="):
			op = t.text
		case t.isName("in"):
			op = "in"
		case t.isName("not") && p.look().isName("in"):
			op = "not in"
			p.next()
		}
		if op == "" {
			break
		}
		p.next()
		right, err := p.sum()
		if err != nil {
			return nil, err
		}
		ops = append(ops, compareOp{op, right})
	}
	if len(ops) == 0 {
		return first, nil
	}
	return &compareExpr{first: first, ops: ops, line: line}, nil
}

func (p *parser) sum() (expr, error) { return p.binary(p.concat, "+", "-") }

func (p *parser) product() (expr, error) { return p.binary(p.power, "*", "/", "//", "%") }

func (p *parser) power() (expr, error) {
	return p.binary(func() (expr, error) { return p.unary(true) }, "**")
}

// binary reads operands joined by operators of one rank, from left to right (Jinja's ** too).
func (p *parser) binary(operand func() (expr, error), ops ...string) (expr, error) {
	left, err := operand()
	for n := 0; err == nil; n++ {
		if n > maxOperands {
			return nil, p.tooLong()
		}
		t := p.cur()
		found := false
		for _, op := range ops {
			found = found || t.is(op)
		}
		if !found {
			break
		}
		p.next()
		var right expr
		right, err = operand()
		left = &binaryExpr{op: t.text, left: left, right: right, line: t.line}
	}
	return left, err
}

func (p *parser) concat() (expr, error) {
	first, err := p.product()
	if err != nil || !p.cur().is("~") {
		return first, err
	}
	items := []expr{first}
	for p.skipOp("~") {
		e, err := p.product()
		if err != nil {
			return nil, err
		}
		items = append(items, e)
	}
	return &concatExpr{items}, nil
}

func (p *parser) unary(withFilter bool) (expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	t := p.cur()
	var e expr
	var err error
	if t.is("-") || t.is("+") {
		p.next()
		var operand expr
		operand, err = p.unary(false)
		e = &unaryExpr{op: t.text, operand: operand, line: t.line}
	} else {
		e, err = p.primary()
	}
	if err == nil {
		e, err = p.postfix(e)
	}
	if err == nil && withFilter {
		e, err = p.filterExpr(e)
	}
	return e, err
}

func (p *parser) primary() (expr, error) {
	t := p.next()
	switch t.kind {
	case tokName:
		return nameOrConst(t.text), nil
	case tokString:
		text := t.text
		for p.cur().kind == tokString {
			text += p.next().text
		}
		return &constExpr{text}, nil
	case tokInteger:
		return integerConst(t)
	case tokFloat:
		f, _ := strconv.ParseFloat(t.text, 64)
		return &constExpr{f}, nil
	}
	switch {
	case t.is("("):
		e, err := p.tuple(tupleRules{condexpr: true, explicit: true})
		if err != nil {
			return nil, err
		}
		return e, p.expectOp(")")
	case t.is("["):
		items, err := p.items("]")
		return &listExpr{items}, err
	case t.is("{"):
		return p.dict()
	}
	return nil, errAt(ErrSyntax, t.line, "unexpected %s", t.describe())
}

func nameOrConst(name string) expr {
	switch name {
	case "true", "True":
		return &constExpr{true}
	case "false", "False":
		return &constExpr{false}
	case "none", "None":
		return &constExpr{pyval.None{}}
	}
	return &nameExpr{name: name}
}

func integerConst(t token) (expr, error) {
	b, ok := new(big.Int).SetString(strings.ToLower(t.text), 0)
	if !ok || len(t.text) > 4300 {
		return nil, errAt(ErrSyntax, t.line, "invalid integer")
	}
	return &constExpr{pyval.Int(b)}, nil
}

// items reads expressions up to a closing bracket. A comma may stand before it.
func (p *parser) items(end string) ([]expr, error) {
	var list []expr
	for !p.cur().is(end) {
		if len(list) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
			if p.cur().is(end) {
				break
			}
		}
		e, err := p.expression(true)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, p.expectOp(end)
}

func (p *parser) dict() (expr, error) {
	d := &dictExpr{}
	for !p.cur().is("}") {
		if len(d.keys) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
			if p.cur().is("}") {
				break
			}
		}
		k, err := p.expression(true)
		if err != nil {
			return nil, err
		}
		if err := p.expectOp(":"); err != nil {
			return nil, err
		}
		v, err := p.expression(true)
		if err != nil {
			return nil, err
		}
		d.keys, d.values = append(d.keys, k), append(d.values, v)
	}
	return d, p.expectOp("}")
}

// tupleRules say what may stand in a tuple and where it ends.
type tupleRules struct {
	simple    bool // names and brackets only, as in a target
	condexpr  bool
	explicit  bool   // in brackets of its own: may be empty
	namespace bool   // in a target: attributes of namespaces too
	end       string // a name that ends it
}

// tuple reads expressions with commas between them: one without a comma is itself.
func (p *parser) tuple(rules tupleRules) (expr, error) {
	item := func() (expr, error) { return p.expression(rules.condexpr) }
	if rules.simple {
		item = func() (expr, error) {
			if rules.namespace && p.cur().kind == tokName && p.look().is(".") {
				return p.target(targetRules{namespace: true})
			}
			return p.primary()
		}
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	var items []expr
	isTuple := false
	for {
		if len(items) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		if p.tupleEnd(rules.end) {
			break
		}
		e, err := item()
		if err != nil {
			return nil, err
		}
		items = append(items, e)
		if !p.cur().is(",") {
			break
		}
		isTuple = true
	}
	if !isTuple {
		if len(items) > 0 {
			return items[0], nil
		}
		if !rules.explicit {
			return nil, p.fail("expected an expression, got %s", p.cur().describe())
		}
	}
	return &tupleExpr{items: items}, nil
}

func (p *parser) tupleEnd(end string) bool {
	t := p.cur()
	return t.kind == tokVarEnd || t.kind == tokBlockEnd || t.is(")") || end != "" && t.isName(end)
}
