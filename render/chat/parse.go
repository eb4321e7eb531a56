package chat

import "slices"

// maxParseDepth bounds nesting of expressions and blocks. Python's own limit is near.
const maxParseDepth = 150

// parser builds the tree (jinja2/parser.py). Tags of template inheritance and of modules are refused.
type parser struct {
	tokens []token
	pos    int
	depth  int
	loops  int // how many loops of the same function stand around
}

func parse(src string) (*root, error) {
	tokens, err := lex(src)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	body, err := p.body(nil)
	if err != nil {
		return nil, err
	}
	return &root{body: body}, nil
}

func (p *parser) cur() token { return p.tokens[p.pos] }

func (p *parser) look() token { return p.tokens[min(p.pos+1, len(p.tokens)-1)] }

func (p *parser) next() token {
	t := p.tokens[p.pos]
	if p.pos < len(p.tokens)-1 {
		p.pos++
	}
	return t
}

func (p *parser) fail(format string, args ...any) error {
	return errAt(ErrSyntax, p.cur().line, format, args...)
}

func (p *parser) enter() error {
	if p.depth++; p.depth > maxParseDepth {
		return errAt(ErrLimit, p.cur().line, "nested more than %d deep", maxParseDepth)
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

func (p *parser) expect(k kind, what string) (token, error) {
	if t := p.cur(); t.kind != k {
		return t, p.fail("expected %s, got %s", what, t.describe())
	}
	return p.next(), nil
}

func (p *parser) expectOp(op string) error {
	if !p.cur().is(op) {
		return p.fail("expected '%s', got %s", op, p.cur().describe())
	}
	p.next()
	return nil
}

func (p *parser) skipOp(op string) bool {
	if p.cur().is(op) {
		p.next()
		return true
	}
	return false
}

func (p *parser) skipName(name string) bool {
	if p.cur().isName(name) {
		p.next()
		return true
	}
	return false
}

// body reads text and tags up to one of the tags named, which is left to the caller, or to the end of the template.
func (p *parser) body(until []string) ([]stmt, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	var list []stmt
	var out *outputStmt
	output := func(e expr, line int) {
		if out == nil {
			out = &outputStmt{line: line}
			list = append(list, out)
		}
		out.items = append(out.items, e)
	}
	for {
		switch t := p.next(); t.kind {
		case tokData:
			output(&constExpr{t.text}, t.line)
		case tokVarBegin:
			e, err := p.tuple(tupleRules{condexpr: true})
			if err != nil {
				return nil, err
			}
			if _, err := p.expect(tokVarEnd, "end of print statement"); err != nil {
				return nil, err
			}
			output(e, t.line)
		case tokBlockBegin:
			if n := p.cur(); n.kind == tokName && slices.Contains(until, n.text) {
				return list, nil
			}
			s, err := p.statement()
			if err != nil {
				return nil, err
			}
			if _, err := p.expect(tokBlockEnd, "end of statement block"); err != nil {
				return nil, err
			}
			out = nil
			list = append(list, s)
		default:
			if len(until) > 0 {
				return nil, p.fail("unexpected end of template, looking for '%s'", until[0])
			}
			return list, nil
		}
	}
}

// block reads the end of the opening tag and the body up to one of the tags named, whose name it eats and gives.
func (p *parser) block(until ...string) ([]stmt, string, error) {
	p.skipOp(":")
	if _, err := p.expect(tokBlockEnd, "end of statement block"); err != nil {
		return nil, "", err
	}
	list, err := p.body(until)
	if err != nil {
		return nil, "", err
	}
	return list, p.next().text, nil
}

// inFunction parses what Jinja compiles to a function of its own: no loop around it counts.
func (p *parser) inFunction(until string) ([]stmt, error) {
	loops := p.loops
	p.loops = 0
	list, _, err := p.block(until)
	p.loops = loops
	return list, err
}

func (p *parser) statement() (stmt, error) {
	t := p.cur()
	if t.kind != tokName {
		return nil, p.fail("tag name expected")
	}
	p.next()
	switch t.text {
	case "for":
		return p.forTag(t.line)
	case "if":
		return p.ifTag(t.line)
	case "set":
		return p.setTag(t.line)
	case "macro":
		return p.macroTag(t.line)
	case "with":
		return p.withTag(t.line)
	case "filter":
		return p.filterTag(t.line)
	case "call":
		return p.callTag(t.line)
	case "generation":
		body, err := p.inFunction("endgeneration")
		return &callBlockStmt{body: body, line: t.line}, err
	case "print":
		return p.printTag(t.line)
	case "break", "continue":
		return p.jumpTag(t)
	case "block", "extends", "include", "import", "from", "autoescape":
		return nil, errAt(ErrUnsupported, t.line, "tag '%s'", t.text)
	}
	return nil, errAt(ErrUnsupported, t.line, "unknown tag '%s'", t.text)
}

func (p *parser) jumpTag(t token) (stmt, error) {
	if p.loops == 0 {
		return nil, errAt(ErrSyntax, t.line, "'%s' outside loop", t.text)
	}
	if t.text == "break" {
		return &breakStmt{}, nil
	}
	return &continueStmt{}, nil
}

func (p *parser) printTag(line int) (stmt, error) {
	s := &outputStmt{line: line}
	for p.cur().kind != tokBlockEnd {
		if len(s.items) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		e, err := p.expression(true)
		if err != nil {
			return nil, err
		}
		s.items = append(s.items, e)
	}
	return s, nil
}
