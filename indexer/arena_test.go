package indexer

import (
	"math/rand/v2"
	"testing"
)

// Extents never overlap, keep what is in them, come back for use, and slabs go when nothing is left in them.
func TestRule17_Arena(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 21))
		type held struct {
			id    uint32
			class int
			mark  Key
		}
		var a arena[Key]
		var list []held
		mark := Key(0)
		for step := range 20000 {
			grow := step%4000 < 2500
			if grow && rng.IntN(3) > 0 || len(list) == 0 {
				n := 1 + rng.IntN(200)
				if rng.IntN(500) == 0 {
					n = slabLen + rng.IntN(slabLen) // larger than a slab
				}
				mark++
				h := held{a.alloc(classOf(n)), classOf(n), mark}
				if h.id == 0 || classLen(h.class) < n {
					t.Fatalf("extent %d of class %d for %d elements", h.id, h.class, n)
				}
				for i := range a.view(h.id, classLen(h.class)) {
					a.view(h.id, classLen(h.class))[i] = mark
				}
				list = append(list, h)
				continue
			}
			at := rng.IntN(len(list))
			a.release(list[at].id, list[at].class)
			list[at] = list[len(list)-1]
			list = list[:len(list)-1]
			if len(list) > 0 && a.vacate() {
				for i, h := range list {
					if a.leaves(h.id) {
						next := a.alloc(h.class)
						copy(a.view(next, classLen(h.class)), a.view(h.id, classLen(h.class)))
						a.release(h.id, h.class)
						list[i].id = next
					}
				}
			}
		}
		used := 0
		for _, h := range list {
			used += classUnits(h.class)
			for _, v := range a.view(h.id, classLen(h.class)) {
				if v != h.mark {
					t.Fatalf("seed %d: %d in an extent of %d", seed, v, h.mark)
				}
			}
		}
		if used != a.used || a.total > 3*used/2+16*slabUnits {
			t.Errorf("seed %d: %d units are used, %d counted, %d in slabs", seed, used, a.used, a.total)
		}
		for _, h := range list {
			a.release(h.id, h.class)
		}
		if n := a.mem.Load(); n != 0 {
			t.Errorf("seed %d: %d bytes left", seed, n)
		}
	}
}

func TestArenaClasses(t *testing.T) {
	last := 0
	for n := 1; n <= 3*slabLen; n += 1 + n/64 {
		c := classOf(n)
		if classLen(c) < n || c < last || c > 1 && classLen(c-1) >= n {
			t.Fatalf("%d elements in class %d of %d, before it one of %d", n, c, classLen(c), classLen(c-1))
		}
		last = c
	}
	if c := classOf(slabLen); c != arenaClasses-1 {
		t.Errorf("a slab is of class %d, want the last below %d", c, arenaClasses)
	}
}
