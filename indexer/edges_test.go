package indexer

import (
	"math/rand/v2"
	"sync"
	"testing"
)

// The table of edges is compared with a map while it grows, shrinks and fills with dead slots, beside a reader that must
// find what is always there and must never be given another chain.
func TestRule16_EdgeTable(t *testing.T) {
	var table edgeTable
	table.init()
	rng := rand.New(rand.NewPCG(3, 4))
	have := make(map[edge]*chain)
	var list []*chain
	enter := func(e edge) {
		c := &chain{edge: e}
		table.add(c)
		have[e] = c
		list = append(list, c)
	}
	var always []edge
	for i := range 100 {
		e := edge{parent: place(i), key: Key(rng.Uint64())}
		enter(e)
		always = append(always, e)
	}
	stop := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() { // stopped by stop, waited for below
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				e := always[i%len(always)]
				if c := table.find(e); c == nil || c.edge != e {
					t.Errorf("edge %v leads to %v", e, c)
					return
				}
			}
		}
	})
	list = list[:0]
	for _, goal := range []int{20000, 10, 5000, 4000, 6000, 0} {
		for range 3 * goal / 2 { // churn at a size, to leave dead slots
			enter(edge{parent: place(rng.Uint64N(50)), key: Key(rng.Uint64())})
			at := rng.IntN(len(list))
			c := list[at]
			if len(list) < goal && rng.IntN(4) > 0 {
				continue
			}
			list[at] = list[len(list)-1]
			list = list[:len(list)-1]
			table.drop(c)
			delete(have, c.edge)
		}
		for len(list) > goal {
			c := list[len(list)-1]
			list = list[:len(list)-1]
			table.drop(c)
			delete(have, c.edge)
		}
		for e, c := range have {
			if table.find(e) != c {
				t.Fatalf("edge %v is lost at %d", e, len(have))
			}
			if table.find(edge{parent: e.parent + 1000, key: e.key}) != nil {
				t.Fatalf("an edge is found that is not there")
			}
		}
		if table.live != len(have) {
			t.Errorf("%d edges counted, %d there", table.live, len(have))
		}
	}
	close(stop)
	reader.Wait()
	if n := len(table.now.Load().slots); n > 2048 {
		t.Errorf("%d slots for %d edges", n, table.live)
	}
}
