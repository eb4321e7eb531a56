package chat

// LoopsOverContent reports whether the template goes through the parts of a message's content, so that it wants the
// content as a list. It is vLLM's detection on the tree (vllm/renderers/hf.py, _iter_nodes_assign_content_item, 0.32).
// Where vLLM's detection fails, it says no, as vLLM does.
func (t *Template) LoopsOverContent() bool {
	d := detector{root: t.root}
	messages := d.aliases("messages")
	if d.failed {
		return false
	}
	items := d.loopTargets(messages)
	if d.failed {
		return false
	}
	return d.contentLoop(items)
}

// detector looks for loops. It fails where vLLM asserts that a target is one name.
type detector struct {
	root   *root
	failed bool
	visits int
}

// maxVisits bounds the search: templates of thousands of macros or aliases are no templates.
const maxVisits = 2_000_000

func (d *detector) walk(n node, visit func(node) bool) {
	walk(n, func(n node) bool {
		if d.visits++; d.visits > maxVisits {
			d.failed = true
		}
		return !d.failed && visit(n)
	})
}

// aliases gives a variable and what it, or a part of it, is assigned to.
func (d *detector) aliases(name string) []string {
	found := []string{name}
	for queue := []string{name}; len(queue) > 0 && !d.failed; queue = queue[1:] {
		d.walk(d.root, func(n node) bool {
			s, ok := n.(*setStmt)
			if !ok || d.failed || !accesses(s.value, queue[0], "") {
				return !d.failed
			}
			target, ok := s.target.(*nameExpr)
			if !ok {
				d.failed = true
				return false
			}
			found = append(found, target.name)
			if target.name != queue[0] && len(found) < 1000 {
				queue = append(queue, target.name)
			}
			return true
		})
	}
	return found
}

// loopTargets gives the variables of loops over one of the names.
func (d *detector) loopTargets(names []string) []string {
	var found []string
	d.walk(d.root, func(n node) bool {
		loop, ok := n.(*forStmt)
		if !ok || d.failed || !accessesAny(loop.iter, names, "") {
			return !d.failed
		}
		target, ok := loop.target.(*nameExpr)
		if !ok {
			d.failed = true
			return false
		}
		found = append(found, target.name)
		return true
	})
	return found
}

// contentLoop looks for a loop over item.content, over a parameter of a macro that is given such a content, or, outside
// of macros, over a variable of the name "content".
func (d *detector) contentLoop(items []string) bool {
	inMacro := map[*forStmt]bool{}
	contentOf := map[*forStmt]map[string]bool{}
	d.walk(d.root, func(n node) bool {
		m, ok := n.(*macroStmt)
		if !ok {
			return true
		}
		given := d.contentParams(m, items)
		d.walk(m, func(n node) bool {
			if loop, ok := n.(*forStmt); ok {
				inMacro[loop] = true
				if len(given) > 0 {
					contentOf[loop] = given
				}
			}
			return true
		})
		return true
	})
	found := false
	d.walk(d.root, func(n node) bool {
		loop, ok := n.(*forStmt)
		if !ok || found || d.failed {
			return !found && !d.failed
		}
		name, isName := loop.iter.(*nameExpr)
		if accessesAny(loop.iter, items, "content") || isName && contentOf[loop][name.name] ||
			isName && !inMacro[loop] && name.name == "content" {
			_, found = loop.target.(*nameExpr)
			d.failed = !found
		}
		return true
	})
	return found
}

// contentParams gives the parameters of a macro that some call gives item.content.
func (d *detector) contentParams(m *macroStmt, items []string) map[string]bool {
	given := map[string]bool{}
	d.walk(d.root, func(n node) bool {
		call, ok := n.(*callExpr)
		if !ok {
			return true
		}
		if callee, ok := call.callee.(*nameExpr); !ok || callee.name != m.name {
			return true
		}
		for i, arg := range call.args.args {
			if i < len(m.args) && accessesAny(arg, items, "content") {
				given[m.args[i].name] = true
			}
		}
		for _, k := range call.args.kwargs {
			for _, a := range m.args {
				if a.name == k.name && accessesAny(k.value, items, "content") {
					given[k.name] = true
				}
			}
		}
		return true
	})
	return given
}

func accessesAny(e expr, names []string, key string) bool {
	for _, name := range names {
		if accesses(e, name, key) {
			return true
		}
	}
	return false
}

// accesses reports whether e is a variable (key is empty) or its member key, behind any filters, tests and slices.
func accesses(e expr, name, key string) bool {
	switch x := e.(type) {
	case *filterExpr:
		return x.object != nil && accesses(x.object, name, key)
	case *testExpr:
		return accesses(x.object, name, key)
	case *itemExpr:
		if _, slice := x.key.(*sliceExpr); slice {
			return accesses(x.object, name, key)
		}
		c, ok := x.key.(*constExpr)
		return key != "" && ok && c.value == key && isVariable(x.object, name)
	case *attrExpr:
		return key != "" && x.name == key && isVariable(x.object, name)
	}
	return key == "" && isVariable(e, name)
}

func isVariable(e expr, name string) bool {
	n, ok := e.(*nameExpr)
	return ok && n.use == useLoad && n.name == name
}

// LoopsOverContentOf reports whether the template loops over the content of a variable of one of the names: SGLang's
// detection (sglang/srt/parser/jinja_template_utils.py, 0.5.9 to 0.5.23).
func (t *Template) LoopsOverContentOf(names ...string) bool {
	found := false
	walk(t.root, func(n node) bool {
		loop, ok := n.(*forStmt)
		found = found || ok && accessesAny(loop.iter, names, "content")
		return !found
	})
	return found
}
