package token

import "math/bits"

// merge is what two neighbours become, and when: the lowest rank goes first.
type merge struct {
	left, right uint32
	rank, id    uint32
}

// never is the rank of a pair that does not merge.
const never = ^uint32(0)

// merges finds the merge of a pair: open addressing over pairs.
type merges struct {
	table []merge // rank never is free
	shift uint
}

func newMerges(n int) *merges {
	size := bits.Len(uint(2 * n))
	m := &merges{table: make([]merge, 1<<size), shift: uint(64 - size)}
	for i := range m.table {
		m.table[i].rank = never
	}
	return m
}

// find returns the place of a pair, or the free one where it would be.
func (m *merges) find(left, right uint32) *merge {
	h := (uint64(left)<<32 | uint64(right)) * 0x9E3779B97F4A7C15
	for i := h >> m.shift; ; i++ {
		e := &m.table[i&uint64(len(m.table)-1)]
		if e.rank == never || e.left == left && e.right == right {
			return e
		}
	}
}

// put sets the merge of a pair. The last one counts, as in the library's map.
func (m *merges) put(left, right, rank, id uint32) {
	*m.find(left, right) = merge{left, right, rank, id}
}

func (m *merges) size() int64 { return 16 * int64(len(m.table)) }

// shortWord is up to how many symbols a scan for the lowest rank beats a heap.
const shortWord = 48

// apply appends to dst what syms merge to. It uses syms as scratch.
func (m *merges) apply(dst, syms []uint32, q *queue) []uint32 {
	if len(syms) < 2 {
		return append(dst, syms...)
	}
	if len(syms) > shortWord {
		return q.apply(m, dst, syms)
	}
	var ranks, ids [shortWord]uint32
	n := len(syms)
	for i := range n - 1 {
		e := m.find(syms[i], syms[i+1])
		ranks[i], ids[i] = e.rank, e.id
	}
	ranks[n-1] = never
	for {
		best := 0
		for i := 1; i < n; i++ {
			if ranks[i] < ranks[best] {
				best = i
			}
		}
		if ranks[best] == never {
			return append(dst, syms[:n]...)
		}
		syms[best] = ids[best]
		copy(syms[best+1:n-1], syms[best+2:n])
		copy(ranks[best+1:n-1], ranks[best+2:n])
		copy(ids[best+1:n-1], ids[best+2:n])
		n--
		ranks[n-1] = never
		for i := max(best-1, 0); i <= best && i+1 < n; i++ {
			e := m.find(syms[i], syms[i+1])
			ranks[i], ids[i] = e.rank, e.id
		}
	}
}

// queue merges long words: a heap of (rank, place) over a linked list of symbols, n log n whatever the word. It keeps
// its memory for the next word, up to keepQueue symbols.
type queue struct {
	heap       []uint64 // rank<<32 | place
	prev, next []int32
	ranks, ids []uint32
}

const keepQueue = 64 << 10

func (q *queue) apply(m *merges, dst, syms []uint32) []uint32 {
	n := len(syms)
	if cap(q.prev) < n {
		*q = queue{make([]uint64, 0, n), make([]int32, n), make([]int32, n), make([]uint32, n), make([]uint32, n)}
	}
	q.heap = q.heap[:0]
	q.prev, q.next, q.ranks, q.ids = q.prev[:n], q.next[:n], q.ranks[:n], q.ids[:n]
	for i := range n {
		q.prev[i], q.next[i] = int32(i-1), int32(i+1)
		q.ranks[i] = never
		if i+1 < n {
			e := m.find(syms[i], syms[i+1])
			q.ranks[i], q.ids[i] = e.rank, e.id
			if e.rank != never {
				q.heap = append(q.heap, uint64(e.rank)<<32|uint64(i))
			}
		}
	}
	for i := len(q.heap)/2 - 1; i >= 0; i-- {
		q.down(i)
	}
	for len(q.heap) > 0 {
		top := q.pop()
		at := int32(uint32(top))
		if q.ranks[at] != uint32(top>>32) {
			continue // the pair is no more: a pair has one rank and a rank one pair
		}
		q.join(m, syms, at)
	}
	for i := 0; i < n; i = int(q.next[i]) {
		dst = append(dst, syms[i])
	}
	if n > keepQueue {
		*q = queue{}
	}
	return dst
}

// join merges the symbols at at and behind it.
func (q *queue) join(m *merges, syms []uint32, at int32) {
	n := int32(len(syms))
	gone := q.next[at]
	syms[at] = q.ids[at]
	q.ranks[gone] = never
	q.next[at] = q.next[gone]
	if q.next[at] < n {
		q.prev[q.next[at]] = at
	}
	for _, i := range [2]int32{q.prev[at], at} {
		if i < 0 {
			continue
		}
		q.ranks[i] = never
		if q.next[i] < n {
			e := m.find(syms[i], syms[q.next[i]])
			q.ranks[i], q.ids[i] = e.rank, e.id
			if e.rank != never {
				q.push(uint64(e.rank)<<32 | uint64(i))
			}
		}
	}
}

func (q *queue) push(e uint64) {
	h := append(q.heap, e)
	i := len(h) - 1
	for i > 0 && h[(i-1)/2] > e {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = e
	q.heap = h
}

func (q *queue) pop() uint64 {
	top := q.heap[0]
	last := len(q.heap) - 1
	q.heap[0] = q.heap[last]
	q.heap = q.heap[:last]
	q.down(0)
	return top
}

func (q *queue) down(i int) {
	h := q.heap
	if i >= len(h) {
		return
	}
	e := h[i]
	for c := 2*i + 1; c < len(h); c = 2*i + 1 {
		if c+1 < len(h) && h[c+1] < h[c] {
			c++
		}
		if h[c] >= e {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = e
}
