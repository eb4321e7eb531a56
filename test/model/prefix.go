package model

import (
	"sync"

	"github.com/kvscout/kvscout/indexer"
)

// Prefixes gives a number to every prompt up to the end of each of its blocks: equal numbers, equal prompts. It compares
// blocks as they are spelled, and may be used by several goroutines.
type Prefixes struct {
	mu  sync.RWMutex // guards ids
	ids map[longer]int
}

// longer is a prefix and one block more.
type longer struct {
	before int // 0 for none
	block  string
}

// NewPrefixes knows no prompt yet.
func NewPrefixes() *Prefixes { return &Prefixes{ids: make(map[longer]int)} }

// add is the number of a prefix and one block more.
func (p *Prefixes) add(before int, block string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := longer{before, block}
	if p.ids[at] == 0 {
		p.ids[at] = len(p.ids) + 1
	}
	return p.ids[at]
}

// find is the same for what may not be known: then false.
func (p *Prefixes) find(before int, block string) (int, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	id, ok := p.ids[longer{before, block}]
	return id, ok
}

// Prompt is a query with the prefixes that it consists of. It belongs to one goroutine.
type Prompt struct {
	indexer.Query
	// KeySize is the block size of the keys that the request comes with instead of tokens, 0 for none.
	KeySize int
	known   *Prefixes
	walks   map[walk][]int
}

// walk is a way to cut a prompt into blocks.
type walk struct {
	size  int
	pairs bool
}

// NewPrompt is a query to sources that number prefixes by known.
func NewPrompt(known *Prefixes, q indexer.Query, keySize int) *Prompt {
	return &Prompt{Query: q, KeySize: keySize, known: known, walks: make(map[walk][]int)}
}

// prefixes are the numbers of the prompt's full blocks, each with all that comes before it, as far as they are known:
// nobody ever held what follows.
func (p *Prompt) prefixes(size int, pairs bool) []int {
	w := walk{size, pairs}
	if out, ok := p.walks[w]; ok {
		return out
	}
	out := []int{}
	at, n := 0, len(p.Tokens)
	if pairs {
		n--
	}
	for i := range n / size {
		var known bool
		if at, known = p.known.find(at, p.block(i, size, pairs)); !known {
			break
		}
		out = append(out, at)
	}
	p.walks[w] = out
	return out
}

// block spells block i.
func (p *Prompt) block(i, size int, pairs bool) string { return queryBlock(p.Query, i, size, pairs) }

// queryBlock spells block i of a query's prompt.
func queryBlock(q indexer.Query, i, size int, pairs bool) string {
	var media []string
	for _, f := range q.Features {
		if f.Offset < (i+1)*size && f.Offset+f.Length > i*size {
			media = append(media, f.Hash)
		}
	}
	return blockText(q.Tokens, i, size, pairs, media)
}
