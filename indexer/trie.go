package indexer

import (
	"slices"
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v4"
)

// holder says what one source holds at a place, under one engine hash.
type holder struct {
	slot slot
	// via is the 64-bit form of the engine hash. A source whose engine gives one place several hashes (namespaces
	// that only the hash shows) has one holder for each.
	via  uint64
	mask mask
}

// trie is the plain tree: a map of edges, and for each place a list of holders that is replaced as a whole. It is the
// reference that a faster structure must agree with.
type trie struct {
	last  place
	count atomic.Int64
	nodes map[place]*node // writers only
	edges *xsync.Map[branch, *node]
}

// branch is a block's key after its parent.
type branch struct {
	parent place
	key    Key
}

type node struct {
	id   place
	edge branch
	refs int // references and children; writers only
	held atomic.Pointer[[]holder]
}

func newTrie() *trie {
	return &trie{nodes: make(map[place]*node), edges: xsync.NewMap[branch, *node]()}
}

func (t *trie) root(*scope) (place, uint64) {
	t.last++
	t.nodes[t.last] = &node{id: t.last, refs: 1}
	return t.last, uint64(t.last)
}

func (t *trie) child(parent place, key Key) place {
	e := branch{parent: parent, key: key}
	n, ok := t.edges.Load(e)
	if !ok {
		t.last++
		n = &node{id: t.last, edge: e}
		t.nodes[n.id] = n
		t.nodes[parent].refs++
		t.edges.Store(e, n)
		t.count.Add(1)
	}
	n.refs++
	return n.id
}

func (t *trie) up(p place) (parent place, key Key, root bool) {
	e := t.nodes[p].edge
	return e.parent, e.key, t.nodes[e.parent].edge.parent == 0
}

func (t *trie) release(p place) {
	for p != 0 {
		n := t.nodes[p]
		n.refs--
		if n.refs > 0 {
			return
		}
		delete(t.nodes, p)
		if n.edge.parent != 0 {
			t.edges.Delete(n.edge)
			t.count.Add(-1)
		}
		p = n.edge.parent
	}
}

func (t *trie) hold(p place, l *Ledger, via uint64, _, now mask) {
	n, h := t.nodes[p], holder{slot: l.slot, via: via, mask: now}
	var held []holder
	if old := n.held.Load(); old != nil {
		held = *old
	}
	i, found := slices.BinarySearchFunc(held, h, compareHolders)
	next := make([]holder, 0, len(held)+1)
	next = append(next, held[:i]...)
	if h.mask != 0 {
		next = append(next, h)
	}
	if found {
		i++
	}
	next = append(next, held[i:]...)
	n.held.Store(&next)
}

func compareHolders(a, b holder) int {
	if a.slot != b.slot {
		return int(int64(a.slot) - int64(b.slot))
	}
	switch {
	case a.via < b.via:
		return -1
	case a.via > b.via:
		return 1
	}
	return 0
}

// at is the block with this key after parent and who holds it, sorted by slot. The slice must not be changed.
func (t *trie) at(parent place, key Key) (place, []holder, bool) {
	n, ok := t.edges.Load(branch{parent: parent, key: key})
	if !ok {
		return 0, nil, false
	}
	if held := n.held.Load(); held != nil {
		return n.id, *held, true
	}
	return n.id, nil, true
}

func (t *trie) settle() {}

func (t *trie) close(*Ledger) {}

func (t *trie) bytes() int { return 0 }

func (t *trie) collect(r *Reader, origin uint64, keys *keyer) error {
	view := &viewer{r: r, size: keys.size, pairs: keys.window > keys.size, rows: make(map[slot]*row)}
	at := place(origin)
	for i := range keys.blocks() {
		if err := r.check(i); err != nil {
			return err
		}
		next, holders, ok := t.at(at, keys.at(i))
		if !ok {
			break
		}
		view.add(i, holders)
		at = next
	}
	for id, w := range view.rows {
		r.plain[id] = append(r.plain[id], w)
	}
	return nil
}

func (t *trie) rows(r *Reader, l *Ledger, _ *table) []*row { return r.plain[l.slot] }

// viewer sorts holders into rows, each source in its own way.
type viewer struct {
	r      *Reader
	size   int
	pairs  bool
	rows   map[slot]*row
	expect expected
}

func (v *viewer) add(depth int, holders []holder) {
	for _, h := range holders {
		l, _ := v.r.x.sources.Load(h.slot)
		if l == nil || !sees(v.r.q, l) || told(v.r.q, l) && v.expect.at(v.r.q, v.size, v.pairs, depth) != h.via {
			continue
		}
		w := v.rows[h.slot]
		if w == nil {
			w = &row{size: v.size, pairs: v.pairs, asOf: v.r.asOf}
			v.rows[h.slot] = w
		}
		for len(w.masks) <= depth {
			w.masks = append(w.masks, 0)
		}
		w.masks[depth] |= h.mask
	}
}

func (t *trie) size() int { return int(t.count.Load()) }
