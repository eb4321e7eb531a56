package indexer

import (
	"math/rand/v2"
	"sync"
	"testing"
)

// The table of edges is compared with a map while it grows, shrinks and fills with dead slots, beside a reader that must
// find what is always there and must never be given another chain.
func TestRule16_EdgeTable(t *testing.T) {
	tree := newChains()
	rng := rand.New(rand.NewPCG(3, 4))
	have := make(map[edge]uint32)
	var list []edge
	enter := func(e edge) {
		id, c := tree.make(e.parent, e.fork, 0)
		tree.extend(id, c, []Key{e.key})
		tree.edges.add(e, id)
		have[e] = id
		list = append(list, e)
	}
	var always []edge
	for i := range 100 {
		e := edge{parent: uint32(i), key: Key(rng.Uint64())}
		enter(e)
		always = append(always, e)
	}
	stop := make(chan struct{})
	var reader sync.WaitGroup
	r := new(Reader)
	r.slot = tree.epochs.join(r)
	reader.Go(func() { // stopped by stop, waited for below
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				e := always[i%len(always)]
				tree.epochs.enter(r.slot)
				if id := tree.find(e); id == 0 || !tree.hangs(id, e) {
					t.Errorf("edge %v leads to %v", e, id)
					return
				}
				tree.epochs.leave(r.slot)
			}
		}
	})
	list = list[:0]
	drop := func(at int) {
		e := list[at]
		list[at] = list[len(list)-1]
		list = list[:len(list)-1]
		tree.edges.drop(e, have[e])
		tree.retire(retiredChain, have[e], 0)
		tree.reclaim()
		delete(have, e)
	}
	for _, goal := range []int{20000, 10, 5000, 4000, 6000, 0} {
		for range 3 * goal / 2 { // churn at a size, to leave dead slots
			enter(edge{parent: uint32(rng.Uint64N(50)), key: Key(rng.Uint64())})
			if at := rng.IntN(len(list)); len(list) >= goal || rng.IntN(4) == 0 {
				drop(at)
			}
		}
		for len(list) > goal {
			drop(len(list) - 1)
		}
		for e, id := range have {
			if tree.find(e) != id {
				t.Fatalf("edge %v is lost at %d", e, len(have))
			}
			if tree.find(edge{parent: e.parent + 1000, key: e.key}) != 0 {
				t.Fatalf("an edge is found that is not there")
			}
		}
		if tree.edges.live != len(have) {
			t.Errorf("%d edges counted, %d there", tree.edges.live, len(have))
		}
	}
	close(stop)
	reader.Wait()
	if n := len(tree.edges.now.Load().slots); n > 2048 {
		t.Errorf("%d slots for %d edges", n, tree.edges.live)
	}
}
