package simulate

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kvscout/kvscout/events"
)

// A model of an engine predicts cached_tokens. It is written to be obvious, on strings of whole prefixes.
type model interface {
	serve(space string, prompt, output []uint32) (cached int)
	reset()
}

// naiveVLLM is a queue of slots, each named by the whole prefix that it holds the last block of.
type naiveVLLM struct {
	size, blocks, born int
	queue              []slot
}

type slot struct {
	prefix string
	born   int // of two copies, the older is found
}

func (m *naiveVLLM) reset() { m.queue = make([]slot, m.blocks) }

func (m *naiveVLLM) serve(space string, prompt, output []uint32) int {
	all := slices.Concat(prompt, output[:max(len(output)-1, 0)])
	prefix := func(blocks int) string { return space + fmt.Sprint(all[:blocks*m.size]) }
	var held []slot
	for len(held) < (len(prompt)-1)/m.size {
		best, want := -1, prefix(len(held)+1)
		for i, s := range m.queue {
			if s.prefix == want && (best < 0 || s.born < m.queue[best].born) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		held = append(held, m.queue[best])
		m.queue = slices.Delete(m.queue, best, best+1)
	}
	cached := len(held) * m.size
	for total := len(prompt); total <= len(all); total++ {
		for len(held)*m.size < total {
			held, m.queue = append(held, slot{}), m.queue[1:]
		}
		for i := range total / m.size {
			if held[i].prefix == "" {
				m.born++
				held[i] = slot{prefix: prefix(i + 1), born: m.born}
			}
		}
	}
	for _, s := range slices.Backward(held) {
		m.queue = append(m.queue, s)
	}
	return cached
}

// naiveSGLang is a set of pages, each named by the whole prefix that it ends. A page with end set is the last of a node.
type naiveSGLang struct {
	size, blocks, clock int
	pages               map[string]*page
	lock                string // every prefix of it is in use
}

type page struct {
	parent string // "" at the root
	used   int
	end    bool
}

func (m *naiveSGLang) reset() { m.pages = map[string]*page{} }

func (m *naiveSGLang) prefix(space string, tokens []uint32, pages int) string {
	s := space
	for _, t := range tokens[:pages*m.size] {
		s += fmt.Sprintf("/%d", t)
	}
	return s + "/"
}

func (m *naiveSGLang) serve(space string, prompt, output []uint32) int {
	all := slices.Concat(prompt, output[:max(len(output)-1, 0)])
	cached := m.match(space, prompt[:len(prompt)-1])
	m.lock = m.prefix(space, prompt, cached)
	own := (len(prompt)+m.size-1)/m.size - cached
	m.reserve(len(prompt)-cached*m.size+m.size, 0)
	if len(output) > 1 {
		m.insert(space, prompt)
		own = (len(prompt)+m.size-1)/m.size - len(prompt)/m.size
		m.lock = m.prefix(space, prompt, len(prompt)/m.size)
	}
	for total := len(prompt); total < len(all); total++ {
		if total%m.size == 0 {
			m.reserve(m.size, own)
			own++
		}
	}
	m.insert(space, all)
	m.lock = ""
	return cached * m.size
}

// match counts the leading pages held, marks them used, and cuts the node in which they end.
func (m *naiveSGLang) match(space string, tokens []uint32) int {
	m.clock++
	n := 0
	for (n+1)*m.size <= len(tokens) && m.pages[m.prefix(space, tokens, n+1)] != nil {
		n++
		m.pages[m.prefix(space, tokens, n)].used = m.clock
	}
	if n == 0 {
		return 0
	}
	at := m.prefix(space, tokens, n)
	rest := at
	for !m.pages[rest].end { // the lower part of the cut node counts as used too
		for name, p := range m.pages {
			if p.parent == rest {
				p.used, rest = m.clock, name
				break
			}
		}
	}
	m.pages[at].end = true
	return n
}

func (m *naiveSGLang) insert(space string, tokens []uint32) {
	n := m.match(space, tokens[:len(tokens)/m.size*m.size])
	m.clock++
	for i := n + 1; i <= len(tokens)/m.size; i++ {
		parent := ""
		if i > 1 {
			parent = m.prefix(space, tokens, i-1)
		}
		m.pages[m.prefix(space, tokens, i)] = &page{parent: parent, used: m.clock, end: i == len(tokens)/m.size}
	}
}

// reserve removes whole nodes, the least recently used tips first, until the tokens asked for are gone.
func (m *naiveSGLang) reserve(tokens, own int) {
	if (m.blocks-len(m.pages)-own)*m.size >= tokens {
		return
	}
	for gone := 0; gone < tokens; {
		parents := map[string]bool{}
		for _, p := range m.pages {
			parents[p.parent] = true
		}
		tip := ""
		for name, p := range m.pages {
			locked := len(name) <= len(m.lock) && m.lock[:len(name)] == name
			if !parents[name] && !locked && (tip == "" || p.used < m.pages[tip].used) {
				tip = name
			}
		}
		if tip == "" {
			return
		}
		for more := true; more; {
			up := m.pages[tip].parent
			delete(m.pages, tip)
			gone += m.size
			more = up != "" && !m.pages[up].end
			tip = up
		}
	}
}

// Invariant 1: on random traffic with hits, evictions, copies, resets and restarts, every engine reports what the model
// of its kind says.
func TestCachedTokensEqualModel(t *testing.T) {
	for _, form := range Forms() {
		for _, size := range []int{1, 16, 32} {
			if size == 1 && formTraits[form].engine == events.EngineVLLM {
				size = 5 // vLLM has no such blocks, and the model is slow
			}
			t.Run(fmt.Sprintf("%s/%d", form, size), func(t *testing.T) { compare(t, form, size) })
		}
	}
}

func compare(t *testing.T, form Form, size int) {
	cfg := TrafficConfig{
		SystemPrompts: 3, SystemTokens: 70, Conversations: 6, MaxTokens: 300, TurnTokens: 60, Output: 24, Align: size,
		Tenants: []string{"a", "b"}, RepeatShare: 0.2, AlignedShare: 0.4,
	}
	if formTraits[form].adapters {
		cfg.Adapters = []string{"x", "y"}
	}
	blocks := 800 / size
	e := newEngine(t, Config{Form: form, BlockSize: size, Blocks: blocks, BufferSteps: 1})
	var m model = &naiveVLLM{size: size, blocks: blocks}
	if formTraits[form].engine == events.EngineSGLang {
		m = &naiveSGLang{size: size, blocks: blocks}
	}
	m.reset()
	requests := 250
	if size < 16 {
		requests = 40 // the models are slow
	}
	traffic, hits := NewTraffic(uint64(size), cfg), 0
	for n := range requests {
		switch {
		case n%110 == 109:
			if err := e.Restart(); err != nil {
				t.Fatal(err)
			}
			m.reset()
		case n%60 == 59:
			if err := e.Reset(); err != nil {
				t.Fatal(err)
			}
			m.reset()
		}
		r := traffic.Next()
		got := serve(t, e, r)
		want := m.serve(r.Adapter+"|"+r.CacheSalt+"|", r.Tokens, Generate(r.Tokens, r.Output))
		if got.CachedTokens != want || got.PromptTokens != len(r.Tokens) {
			t.Fatalf("request %d of %d tokens: cached %d, the model says %d", n, len(r.Tokens), got.CachedTokens, want)
		}
		if want > 0 {
			hits++
		}
	}
	if hits < requests/5 {
		t.Errorf("only %d of %d requests hit", hits, requests)
	}
}
