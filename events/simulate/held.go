package simulate

// Held is how many leading tokens of r's prompt the cache holds now, in whole blocks: what an index should say, before
// the cap of invariant 1. It changes nothing.
func (e *Engine) Held(r Request) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cache.held(namespace{adapter: r.Adapter, salt: r.CacheSalt}, r.Tokens)
}

// Resident is how many different blocks the cache holds now.
func (e *Engine) Resident() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cache.resident()
}

func (p *pool) held(space namespace, prompt []uint32) int {
	parent, n := p.none, 0
	for ; (n+1)*p.size <= len(prompt); n++ {
		parent = vllmNext(parent, prompt[n*p.size:(n+1)*p.size], space.hashed(n, p.tagged))
		if len(p.found[parent]) == 0 {
			break
		}
	}
	return n * p.size
}

func (p *pool) resident() int { return len(p.found) }

func (c *radix) held(space namespace, prompt []uint32) int {
	root, ok := c.roots[space]
	if !ok {
		return 0
	}
	tokens, matched := c.whole(prompt), 0
	for node := &root.radixNode; matched < len(tokens); {
		child, ok := node.children[pageKey(tokens[matched:matched+c.page])]
		if !ok {
			break
		}
		n := common(child.tokens, tokens[matched:], c.page)
		matched += n
		if n < len(child.tokens) {
			break
		}
		node = child
	}
	return matched
}

func (c *radix) resident() (pages int) {
	var walk func(n *radixNode)
	walk = func(n *radixNode) {
		pages += len(n.digests)
		for _, child := range n.children {
			walk(child)
		}
	}
	for _, r := range c.roots {
		walk(&r.radixNode)
	}
	return pages
}
