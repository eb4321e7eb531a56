package simulate

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/kvscout/kvscout/events"
)

// radix is SGLang's cache: a radix tree of pages per namespace, whose least recently used leaves are evicted whole.
type radix struct {
	page     int // tokens in a page
	free     int // pages that neither the tree nor the sequence has
	seed     string
	clock    uint64
	roots    map[namespace]*radixRoot
	adapters map[string]string // engine-local ids of adapters
	events   []events.Event
	run      radixRun
	blocks   int
}

// radixRun is the running sequence.
type radixRun struct {
	root   *radixRoot
	tokens []uint32
	node   *radixNode // locked, with all above it
	shared int        // tokens that lie in the tree, down to node
	own    int        // pages of the sequence outside the tree
}

// newRadix makes the cache of a new process, which begins by clearing (wire.md 3.4).
func newRadix(page, blocks int, seed string) *radix {
	c := &radix{page: page, blocks: blocks, seed: seed, adapters: make(map[string]string)}
	c.reset()
	return c
}

func (c *radix) reset() {
	c.free = c.blocks
	c.roots = make(map[namespace]*radixRoot)
	c.events = append(c.events, events.Event{Kind: events.Cleared})
}

func (c *radix) drain() []events.Event {
	out := c.events
	c.events = nil
	return out
}

func (c *radix) start(space namespace, prompt []uint32) int {
	root := c.root(space)
	node, matched := c.match(root, c.whole(prompt[:len(prompt)-1])) // the last token is always computed
	c.run = radixRun{root: root, tokens: slices.Clone(prompt), node: node, shared: matched}
	node.lock(1)
	c.reserve(len(prompt) - matched + c.page) // SGLang asks for a page more than it needs
	c.take((len(prompt) - matched + c.page - 1) / c.page)
	return matched
}

// checkpoint puts the prompt into the tree, so that others can use it while this sequence goes on.
func (c *radix) checkpoint() { c.insert() }

func (c *radix) grow(token uint32) {
	if len(c.run.tokens)%c.page == 0 {
		c.reserve(c.page)
		c.take(1)
	}
	c.run.tokens = append(c.run.tokens, token)
}

func (c *radix) finish() {
	c.insert()
	c.run.node.lock(-1)
	c.free += c.run.own
	if len(c.run.root.children) == 0 {
		delete(c.roots, c.run.root.space)
	}
	c.run = radixRun{}
}

// whole cuts tokens to whole pages.
func (c *radix) whole(tokens []uint32) []uint32 { return tokens[:len(tokens)/c.page*c.page] }

func (c *radix) take(pages int) {
	c.run.own += pages
	c.free -= pages
}

func (c *radix) tick() uint64 {
	c.clock++
	return c.clock
}

func (c *radix) root(space namespace) *radixRoot {
	if r, ok := c.roots[space]; ok {
		return r
	}
	r := &radixRoot{space: space, hash: newSGLangSpace(c.loraID(space.adapter), space.salt)}
	r.radixNode.root = r
	r.children = make(map[string]*radixNode)
	c.roots[space] = r
	return r
}

// loraID is the random id that a process gives an adapter when it loads it.
func (c *radix) loraID(adapter string) string {
	if adapter == "" {
		return ""
	}
	id, ok := c.adapters[adapter]
	if !ok {
		d := sha256.Sum256([]byte(c.seed + "\x00" + adapter))
		id = hex.EncodeToString(d[:16])
		c.adapters[adapter] = id
	}
	return id
}

// match walks down as far as tokens agree, marks the way as used, and cuts the last node where they part.
func (c *radix) match(root *radixRoot, tokens []uint32) (*radixNode, int) {
	node, matched := &root.radixNode, 0
	now := c.tick()
	for matched < len(tokens) {
		child, ok := node.children[pageKey(tokens[matched:matched+c.page])]
		if !ok {
			break
		}
		child.used = now
		n := common(child.tokens, tokens[matched:], c.page)
		matched += n
		if n < len(child.tokens) {
			return child.split(n, c.page, c.tick()), matched
		}
		node = child
	}
	return node, matched
}

// insert puts the whole pages of the sequence into the tree. Pages that are there already are given back.
func (c *radix) insert() {
	r := &c.run
	tokens := c.whole(r.tokens)
	node, matched := c.match(r.root, tokens)
	if matched < len(tokens) {
		node = c.add(node, tokens[matched:])
	}
	c.free += (matched - r.shared) / c.page // computed twice
	r.own -= (len(tokens) - r.shared) / c.page
	node.lock(1)
	r.node.lock(-1)
	r.node, r.shared = node, len(tokens)
}

// add hangs a new leaf under node and announces its pages.
func (c *radix) add(node *radixNode, tokens []uint32) *radixNode {
	root := node.root
	leaf := &radixNode{
		parent: node, children: make(map[string]*radixNode), tokens: slices.Clone(tokens), used: c.tick(), root: root,
	}
	e := events.Event{
		Kind: events.Stored, Tokens: leaf.tokens, BlockSize: c.page, Salt: root.space.salt, LoraName: root.space.adapter,
	}
	if len(node.digests) > 0 {
		e.Parent, e.HasParent = root.hash.wire(node.digests[len(node.digests)-1]), true
	}
	last := node.tail()
	for page := range slices.Chunk(tokens, c.page) {
		d := root.hash.next(last, page)
		last = d[:]
		leaf.digests = append(leaf.digests, d)
		e.Hashes = append(e.Hashes, root.hash.wire(d))
	}
	node.children[pageKey(tokens[:c.page])] = leaf
	c.events = append(c.events, e)
	return leaf
}

// reserve evicts least recently used leaves until as many tokens are gone as are asked for, if fewer are free.
func (c *radix) reserve(tokens int) {
	if c.free*c.page >= tokens {
		return
	}
	for gone := 0; gone < tokens; {
		leaf := c.oldestLeaf()
		if leaf == nil {
			return
		}
		gone += len(leaf.tokens)
		c.evict(leaf)
	}
}

func (c *radix) oldestLeaf() *radixNode {
	var oldest *radixNode
	var walk func(n *radixNode)
	walk = func(n *radixNode) {
		if len(n.children) == 0 && n.parent != nil && n.locks == 0 && (oldest == nil || n.used < oldest.used) {
			oldest = n
		}
		for _, child := range n.children {
			walk(child)
		}
	}
	for _, r := range c.roots {
		walk(&r.radixNode)
	}
	return oldest
}

// evict removes a leaf whole and announces it, joined to the removal before it when the adapter is the same.
func (c *radix) evict(leaf *radixNode) {
	root := leaf.root
	delete(leaf.parent.children, pageKey(leaf.tokens[:c.page]))
	if len(root.children) == 0 && root.locks == 0 {
		delete(c.roots, root.space)
	}
	c.free += len(leaf.digests)
	var last *events.Event
	if n := len(c.events); n > 0 && c.events[n-1].Kind == events.Removed && c.events[n-1].LoraName == root.space.adapter {
		last = &c.events[n-1]
	} else {
		c.events = append(c.events, events.Event{Kind: events.Removed, LoraName: root.space.adapter})
		last = &c.events[n]
	}
	for _, d := range leaf.digests {
		last.Hashes = append(last.Hashes, root.hash.wire(d))
	}
}
