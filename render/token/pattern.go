package token

import "unicode/utf8"

// pattern is a regular expression compiled for backtracking, as Oniguruma runs it: the first alternative that leads to
// a match wins, repetitions take as much as they can. It never matches nothing.
type pattern struct {
	nodes []node
	start int32
	first byteSet // bytes that a match can begin with
	bytes int64   // memory of the sets
}

type op uint8

const (
	opMatch   op = iota
	opRun        // set, min to max times, greedy
	opAlt        // one of alts
	opLoop       // body and back here, or next
	opLook       // body matches here, or does not; takes nothing
	opBehind     // the code point before is in set, or is not; takes nothing
	opAtomic     // body, never tried again in another way
	opLineEnd    // the text ends here, or a line does; takes nothing
)

// noLimit is the max of a run without one.
const noLimit = int(^uint(0) >> 1)

// node is one step. Its first is what the text may go on with for this step and all after it to match; any is set
// where the end of the text will do too.
type node struct {
	op         op
	not        bool
	possessive bool
	any        bool
	min, max   int
	next, body int32
	set        *charset
	alts       []int32
	first      byteSet
}

type byteSet [4]uint64

func (b *byteSet) has(c byte) bool { return b[c>>6]>>(c&63)&1 != 0 }
func (b *byteSet) add(c byte)      { b[c>>6] |= 1 << (c & 63) }
func (b *byteSet) merge(o byteSet) {
	for i := range b {
		b[i] |= o[i]
	}
}

func compilePattern(s string) (*pattern, error) {
	e, err := parsePattern(s)
	if err != nil {
		return nil, err
	}
	p := compileExpr(e)
	if len(p.nodes) > maxNodes {
		return nil, unsupported("pattern %q takes %d steps, over %d", s, len(p.nodes), maxNodes)
	}
	return p, nil
}

// compileExpr makes a pattern of e. One of more than maxNodes is not whole.
func compileExpr(e expr) *pattern {
	p := &pattern{}
	match := p.add(node{op: opMatch, any: true})
	p.start = p.compile(e, match)
	p.first = p.nodes[p.start].first
	if p.nodes[p.start].any { // a look first: nothing is known
		p.first = everyByte
	}
	for i := range p.nodes {
		if s := p.nodes[i].set; s != nil {
			p.bytes += s.size()
		}
	}
	return p
}

// maxNodes bounds a compiled pattern; real ones have up to 30 nodes.
const maxNodes = 512

var everyByte = byteSet{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}

func (p *pattern) add(n node) int32 {
	p.nodes = append(p.nodes, n)
	return int32(len(p.nodes) - 1)
}

// compile adds the nodes of e that lead on to next, and returns the first of them. Over maxNodes it adds no more.
func (p *pattern) compile(e expr, next int32) int32 {
	if len(p.nodes) > maxNodes {
		return next
	}
	switch e := e.(type) {
	case set:
		return p.run(ranges(e), 1, 1, false, next)
	case seq:
		for i := len(e) - 1; i >= 0; i-- {
			next = p.compile(e[i], next)
		}
		return next
	case alt:
		n := node{op: opAlt}
		for _, part := range e {
			n.alts = append(n.alts, p.compile(part, next))
		}
		return p.addAlt(n)
	case *repeat:
		return p.repeat(e, next)
	case lineEnd:
		return p.add(node{op: opLineEnd, any: true, next: next})
	case *sealed:
		return p.closed(node{op: opAtomic, next: next}, e.of)
	case *look:
		if e.behind {
			s, _ := e.of.(set)
			return p.add(node{op: opBehind, not: e.not, next: next, set: newCharset(ranges(s)),
				first: p.nodes[next].first, any: p.nodes[next].any})
		}
		id := p.closed(node{op: opLook, not: e.not, next: next}, e.of)
		p.nodes[id].first, p.nodes[id].any = p.nodes[next].first, p.nodes[next].any
		return id
	}
	panic("unknown expression") // the parser makes no other
}

// closed adds n with the body e, which ends for itself.
func (p *pattern) closed(n node, e expr) int32 {
	n.body = p.compile(e, p.add(node{op: opMatch, any: true}))
	n.first, n.any = p.nodes[n.body].first, p.nodes[n.body].any
	return p.add(n)
}

func (p *pattern) addAlt(n node) int32 {
	for _, a := range n.alts {
		n.first.merge(p.nodes[a].first)
		n.any = n.any || p.nodes[a].any
	}
	return p.add(n)
}

func (p *pattern) run(s ranges, low, high int, possessive bool, next int32) int32 {
	n := node{op: opRun, set: newCharset(s), min: low, max: high, possessive: possessive, next: next}
	for _, r := range s {
		n.first.addRange(r)
	}
	if low == 0 {
		n.first.merge(p.nodes[next].first)
		n.any = p.nodes[next].any
	}
	return p.add(n)
}

// addRange adds the first bytes of the code points of r, as UTF-8 has them.
func (b *byteSet) addRange(r runeRange) {
	if 0xD800 <= r.lo && r.lo <= 0xDFFF { // surrogates, which no text has, have no bytes
		r.lo = 0xE000
	}
	if 0xD800 <= r.hi && r.hi <= 0xDFFF {
		r.hi = 0xD7FF
	}
	if r.lo > r.hi {
		return
	}
	var lo, hi [utf8.UTFMax]byte
	utf8.EncodeRune(lo[:], r.lo)
	utf8.EncodeRune(hi[:], r.hi)
	for c := int(lo[0]); c <= int(hi[0]); c++ {
		b.add(byte(c))
	}
}

func (p *pattern) repeat(e *repeat, next int32) int32 {
	if s, one := e.of.(set); one {
		high := e.max
		if high < 0 {
			high = noLimit
		}
		return p.run(ranges(s), e.min, high, e.possessive, next)
	}
	if e.possessive {
		return p.closed(node{op: opAtomic, next: next}, &repeat{of: e.of, min: e.min, max: e.max})
	}
	if e.max < 0 {
		loop := p.add(node{op: opLoop, next: next, any: true, first: everyByte})
		body := p.compile(e.of, loop)
		p.nodes[loop].body = body
		p.nodes[loop].any = p.nodes[next].any || p.nodes[body].any
		p.nodes[loop].first = p.nodes[next].first
		p.nodes[loop].first.merge(p.nodes[body].first)
		next = loop
	} else {
		for range e.max - e.min { // (x(x)?)?
			next = p.addAlt(node{op: opAlt, alts: []int32{p.compile(e.of, next), next}})
		}
	}
	for range e.min {
		next = p.compile(e.of, next)
	}
	return next
}

// matcher runs a pattern over a text. fuel is how many more steps it may take; below 0 its answers mean nothing.
type matcher struct {
	fuel  int
	depth int // of loops inside of one another: one per round of a repeated group
}

// maxDepth bounds the stack that a repeated group may take, some 20 MB.
const maxDepth = 50_000

// find returns the first match in s that begins at from or later.
func (m *matcher) find(p *pattern, s string, from int) (start, end int, ok bool) {
	for start = from; start < len(s); start++ {
		if !p.first.has(s[start]) || !utf8.RuneStart(s[start]) {
			continue
		}
		if end = m.match(p, p.start, s, start); end >= 0 {
			return start, end, true
		}
	}
	return 0, 0, false
}

// match returns where the match ends that goes on at node id and byte at, or -1.
func (m *matcher) match(p *pattern, id int32, s string, at int) int {
	for {
		if m.fuel--; m.fuel < 0 {
			return -1
		}
		n := &p.nodes[id]
		switch n.op {
		case opMatch:
			return at
		case opRun:
			end, done := m.run(p, n, s, at)
			if done {
				return end
			}
			at = end
		case opAlt:
			for _, a := range n.alts[:len(n.alts)-1] {
				if p.may(a, s, at) {
					if end := m.match(p, a, s, at); end >= 0 {
						return end
					}
				}
			}
			id = n.alts[len(n.alts)-1]
			continue
		case opLoop:
			if p.may(n.body, s, at) {
				if m.depth++; m.depth > maxDepth {
					m.fuel = 0
				}
				end := m.match(p, n.body, s, at)
				m.depth--
				if end >= 0 {
					return end
				}
			}
		case opLook:
			if m.match(p, n.body, s, at) >= 0 == n.not {
				return -1
			}
		case opBehind:
			r, size := utf8.DecodeLastRuneInString(s[:at])
			if (size > 0 && n.set.has(r)) == n.not {
				return -1
			}
		case opLineEnd:
			if at < len(s) && s[at] != '\n' {
				return -1
			}
		case opAtomic:
			if at = m.match(p, n.body, s, at); at < 0 {
				return -1
			}
		}
		id = n.next
	}
}

// may says whether node id can match at all with what the text goes on with.
func (p *pattern) may(id int32, s string, at int) bool {
	n := &p.nodes[id]
	return n.any || at < len(s) && n.first.has(s[at])
}

// run takes what n's set allows. Where it can be settled here it returns the end of the whole match, or -1, and done;
// else where to go on.
func (m *matcher) run(p *pattern, n *node, s string, at int) (end int, done bool) {
	from, low := at, n.min
	if n.max == noLimit {
		at += n.set.run(s[at:])
	} else {
		for count := 0; count < n.max && at < len(s); count++ {
			r, size := utf8.DecodeRuneInString(s[at:])
			if !n.set.has(r) {
				break
			}
			at += size
		}
	}
	for ; low > 0; low-- { // the part that cannot be given back
		if from == at {
			return -1, true
		}
		_, size := utf8.DecodeRuneInString(s[from:at])
		from += size
	}
	if n.possessive || from == at || p.nodes[n.next].op == opMatch {
		return at, false
	}
	for {
		if p.may(n.next, s, at) {
			if end := m.match(p, n.next, s, at); end >= 0 {
				return end, true
			}
		}
		if m.fuel--; from >= at || m.fuel < 0 {
			return -1, true
		}
		_, size := utf8.DecodeLastRuneInString(s[from:at])
		at -= size
	}
}
