package indexer

import (
	"slices"
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v4"
)

// place names one block of one prompt of one scope: its key and everything before it. Places mean something only to
// the tree that made them.
type place uint64

// slot names one source inside an index. Slots are never used again.
type slot uint32

// holder says what one source holds at a place, under one engine hash.
type holder struct {
	slot slot
	// via is the 64-bit form of the engine hash. A source whose engine gives one place several hashes (namespaces
	// that only the hash shows) has one holder for each.
	via  uint64
	mask mask
}

// tree is the seam between the index and the structure that holds it: who holds which block. Writers are serialised by
// the index; at may run beside them and waits for nobody (rule 16).
type tree interface {
	// root makes the place above the first blocks of a scope and takes a reference to it.
	root() place
	// child is the place of the block with this key after parent, made if new, and takes a reference to it.
	child(parent place, key Key) place
	// release gives one reference back. A place with neither references nor children is gone.
	release(p place)
	// hold replaces what a source holds at p under one hash; an empty mask ends it.
	hold(p place, h holder)
	// at is the block with this key after parent and who holds it, sorted by slot. The slice must not be changed.
	at(parent place, key Key) (place, []holder, bool)
	// size counts the places that exist, roots left out.
	size() int
}

// trie is the plain tree: a map of edges, and for each place a list of holders that is replaced as a whole. It is the
// reference that a faster structure must agree with.
type trie struct {
	last  place
	count atomic.Int64
	nodes map[place]*node // writers only
	edges *xsync.Map[edge, *node]
}

type edge struct {
	parent place
	key    Key
}

type node struct {
	id   place
	edge edge
	refs int // references and children; writers only
	held atomic.Pointer[[]holder]
}

func newTrie() *trie {
	return &trie{nodes: make(map[place]*node), edges: xsync.NewMap[edge, *node]()}
}

func (t *trie) root() place {
	t.last++
	t.nodes[t.last] = &node{id: t.last, refs: 1}
	return t.last
}

func (t *trie) child(parent place, key Key) place {
	e := edge{parent: parent, key: key}
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

func (t *trie) hold(p place, h holder) {
	n := t.nodes[p]
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

func (t *trie) at(parent place, key Key) (place, []holder, bool) {
	n, ok := t.edges.Load(edge{parent: parent, key: key})
	if !ok {
		return 0, nil, false
	}
	if held := n.held.Load(); held != nil {
		return n.id, *held, true
	}
	return n.id, nil, true
}

func (t *trie) size() int { return int(t.count.Load()) }
