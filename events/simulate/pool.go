package simulate

import (
	"container/list"
	"slices"

	"github.com/kvscout/kvscout/events"
)

// pool is vLLM's cache: physical blocks, a free queue in the order of their next use, and a map from digest to the
// blocks that carry it. A free block stays findable until it is taken.
type pool struct {
	size   int  // tokens in a block
	tagged bool // extra keys are hashed with their kind
	none   digest
	blocks []poolBlock
	free   *list.List // of block numbers; the front is taken first
	found  map[digest][]int
	lora   map[string]int64 // ids given to adapters, from 1 in the order of first use
	events []events.Event
	run    poolRun
}

type poolBlock struct {
	digest digest
	cached bool
	place  *list.Element // in the free queue; nil while in use
}

// poolRun is the running sequence.
type poolRun struct {
	space   namespace
	tokens  []uint32
	digests []digest // of its full blocks
	blocks  []int
	stored  int // leading blocks that are cached
}

func newPool(size, blocks int, seed string, tagged bool) *pool {
	p := &pool{
		size: size, tagged: tagged, none: vllmNone(seed), blocks: make([]poolBlock, blocks), free: list.New(),
		found: make(map[digest][]int), lora: make(map[string]int64),
	}
	for i := range p.blocks {
		p.blocks[i].place = p.free.PushBack(i)
	}
	return p
}

func (p *pool) start(space namespace, prompt []uint32) int {
	p.run = poolRun{space: space, tokens: slices.Clone(prompt)}
	p.hash()
	reusable := (len(prompt) - 1) / p.size // the last token is always computed
	for _, d := range p.run.digests[:reusable] {
		copies := p.found[d]
		if len(copies) == 0 {
			break
		}
		p.hold(copies[0])
	}
	cached := len(p.run.blocks)
	p.run.stored = cached
	p.allocate()
	p.store()
	return cached * p.size
}

func (p *pool) checkpoint() {}

func (p *pool) grow(token uint32) {
	p.run.tokens = append(p.run.tokens, token)
	p.hash()
	p.allocate()
	p.store()
}

// finish frees the tail first, so that the tail of a chain is evicted before its head.
func (p *pool) finish() {
	for _, id := range slices.Backward(p.run.blocks) {
		p.blocks[id].place = p.free.PushBack(id)
	}
	p.run = poolRun{}
}

func (p *pool) reset() {
	for i := range p.blocks {
		p.blocks[i].cached = false
	}
	clear(p.found)
	p.events = append(p.events, events.Event{Kind: events.Cleared})
}

func (p *pool) drain() []events.Event {
	out := p.events
	p.events = nil
	return out
}

// hash brings the digests up to the last full block.
func (p *pool) hash() {
	for i := len(p.run.digests); i < len(p.run.tokens)/p.size; i++ {
		parent := p.none
		if i > 0 {
			parent = p.run.digests[i-1]
		}
		p.run.digests = append(p.run.digests, vllmNext(parent, p.run.tokens[i*p.size:(i+1)*p.size], p.run.space.hashed(i, p.tagged)))
	}
}

// extra is what the events say was mixed into block i: the adapter in every block, the salt at token 0 only.
func (n namespace) extra(i int) []events.Extra {
	var out []events.Extra
	if n.adapter != "" {
		out = append(out, events.Extra{Kind: events.ExtraString, Text: n.adapter})
	}
	if n.salt != "" && i == 0 {
		out = append(out, events.Extra{Kind: events.ExtraString, Text: n.salt})
	}
	return out
}

// hashed is what is mixed into block i. Since vllm-project/vllm#44706 each string is tagged, so that a salt cannot pass
// for an adapter; the events still carry the bare strings. The salt's form was checked against bytes recorded from 0.32,
// the adapter's is that of the same change.
func (n namespace) hashed(i int, tagged bool) []any {
	var out []any
	add := func(tag, s string) {
		if tagged {
			out = append(out, []any{tag, s})
			return
		}
		out = append(out, s)
	}
	if n.adapter != "" {
		add("lora", n.adapter)
	}
	if n.salt != "" && i == 0 {
		add("cache_salt", n.salt)
	}
	return out
}

// hold gives a cached block to the sequence.
func (p *pool) hold(id int) {
	p.free.Remove(p.blocks[id].place)
	p.blocks[id].place = nil
	p.run.blocks = append(p.run.blocks, id)
}

// allocate takes blocks for the tokens that have none, evicting what they still carry.
func (p *pool) allocate() {
	for len(p.run.blocks)*p.size < len(p.run.tokens) {
		id := p.free.Front().Value.(int)
		if b := &p.blocks[id]; b.cached {
			p.forget(id)
			p.events = append(p.events, events.Event{Kind: events.Removed, Hashes: []events.Hash{vllmWire(b.digest)}})
		}
		p.hold(id)
	}
}

func (p *pool) forget(id int) {
	b := &p.blocks[id]
	b.cached = false
	rest := slices.DeleteFunc(p.found[b.digest], func(other int) bool { return other == id })
	if len(rest) == 0 {
		delete(p.found, b.digest)
		return
	}
	p.found[b.digest] = rest
}

// store makes the sequence's new full blocks findable, whether or not another block carries the same digest
// (invariant 4).
func (p *pool) store() {
	from, to := p.run.stored, len(p.run.digests)
	if from == to {
		return
	}
	e := events.Event{
		Kind: events.Stored, BlockSize: p.size, Tokens: slices.Clone(p.run.tokens[from*p.size : to*p.size]),
		LoraName: p.run.space.adapter, HasGroup: true, Spec: events.SpecFull,
	}
	if e.LoraName != "" {
		e.LoraID, e.HasLoraID = p.loraID(e.LoraName), true
	}
	if from > 0 {
		e.Parent, e.HasParent = vllmWire(p.run.digests[from-1]), true
	}
	for i := from; i < to; i++ {
		d, id := p.run.digests[i], p.run.blocks[i]
		p.blocks[id].digest, p.blocks[id].cached = d, true
		p.found[d] = append(p.found[d], id)
		e.Hashes = append(e.Hashes, vllmWire(d))
		e.Extras = append(e.Extras, p.run.space.extra(i))
	}
	p.run.stored = to
	p.events = append(p.events, e)
}

func (p *pool) loraID(name string) int64 {
	id, ok := p.lora[name]
	if !ok {
		id = int64(len(p.lora)) + 1
		p.lora[name] = id
	}
	return id
}
