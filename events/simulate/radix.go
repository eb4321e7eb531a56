package simulate

import (
	"encoding/binary"
	"slices"
)

// radixNode is a run of whole pages of one namespace. A root has no pages.
type radixNode struct {
	parent   *radixNode
	children map[string]*radixNode // by first page
	tokens   []uint32
	digests  []digest // one a page
	used     uint64   // clock of the last request that passed here
	locks    int      // sequences that need this node
	root     *radixRoot
}

// radixRoot is the tree of one namespace.
type radixRoot struct {
	radixNode
	space namespace
	hash  sglangSpace
}

// pageKey is a page as a map key.
func pageKey(page []uint32) string {
	b := make([]byte, 0, 4*len(page))
	for _, t := range page {
		b = binary.LittleEndian.AppendUint32(b, t)
	}
	return string(b)
}

// common is the number of leading tokens that a and b share, in whole pages.
func common(a, b []uint32, page int) int {
	n := 0
	for n+page <= min(len(a), len(b)) && slices.Equal(a[n:n+page], b[n:n+page]) {
		n += page
	}
	return n
}

// tail is the digest of the last page at or above n, empty at the root.
func (n *radixNode) tail() []byte {
	if len(n.digests) == 0 {
		return nil
	}
	return n.digests[len(n.digests)-1][:]
}

// split cuts n after its first keep tokens and returns the new node above it. No event tells of it.
func (n *radixNode) split(keep, page int, now uint64) *radixNode {
	upper := &radixNode{
		parent: n.parent, children: make(map[string]*radixNode), used: now, locks: n.locks, root: n.root,
		tokens: n.tokens[:keep:keep], digests: n.digests[: keep/page : keep/page],
	}
	n.parent.children[pageKey(upper.tokens[:page])] = upper
	n.tokens, n.digests, n.parent = n.tokens[keep:], n.digests[keep/page:], upper
	upper.children[pageKey(n.tokens[:page])] = n
	return upper
}

// lock adds by to every node from n up to its root: evictions pass them by while the sum is above 0.
func (n *radixNode) lock(by int) {
	for ; n != nil; n = n.parent {
		n.locks += by
	}
}
