package indexer

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// soundRooms checks the numbered invariants of rooms against a walk over all of it.
func soundRooms(of slabOwner, r *rooms) error {
	size, used := 0, 0
	for n := range r.list {
		s := &r.list[n]
		if !s.there {
			if s.used != 0 || n == r.cur {
				return fmt.Errorf("slab %d is not there, and %d of it in use, taken from: %v", n, s.used, n == r.cur)
			}
			continue
		}
		size++
		used += int(s.used)
		if s.used == 0 && n != r.cur {
			return fmt.Errorf("slab %d is there for nothing (invariant 1)", n)
		}
		free, first := uint32(0), uint32(0)
		if n == 0 {
			first = 1
		}
		for at := s.free; at != 0; at = *of.link(uint32(n)*slabRecords + at - 1) {
			if free++; free > slabRecords {
				return fmt.Errorf("slab %d has a ring of free records", n)
			}
			if n == 0 && at == 1 {
				return fmt.Errorf("record 0 is free (invariant 2)")
			}
		}
		if free+s.used+first != s.next || s.next > slabRecords {
			return fmt.Errorf("slab %d: %d free and %d in use of the first %d", n, free, s.used, s.next)
		}
	}
	if size != r.size || used != r.used {
		return fmt.Errorf("%d slabs with %d in use, counted %d with %d", size, used, r.size, r.used)
	}
	return nil
}

// shelves are slabs of links, in a map so that what is not there cannot be read.
type shelves map[int]*[slabRecords]uint32

func (s shelves) link(id uint32) *uint32 { return &s[int(id/slabRecords)][id%slabRecords] }
func (s shelves) addSlab(n int)          { s[n] = new([slabRecords]uint32) }
func (s shelves) dropSlab(n int)         { delete(s, n) }

// Records come and go in any order: none is given out twice, slabs follow what is in use, and what is left after most of it
// went is taken from rather than from new slabs.
func TestRule17_SlabsFollowWhatIsInUse(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var r rooms
	of := make(shelves)
	var have []uint32
	in := make(map[uint32]bool)
	take := func() {
		id := r.take(of)
		if id == 0 || in[id] {
			t.Fatalf("record %d is given out, in use: %v", id, in[id])
		}
		in[id] = true
		have = append(have, id)
	}
	give := func(i int) {
		id := have[i]
		have[i] = have[len(have)-1]
		have = have[:len(have)-1]
		delete(in, id)
		if none := r.give(of, id); none != (len(have) == 0) {
			t.Fatalf("none left: %v, %d in use", none, len(have))
		}
	}
	check := func() {
		t.Helper()
		if err := soundRooms(of, &r); err != nil || len(of) != r.size {
			t.Fatalf("%v; %d slabs, counted %d", err, len(of), r.size)
		}
	}
	for _, target := range []int{20 * slabRecords, 3 * slabRecords, 15 * slabRecords, 100, 0, 5000, 0} {
		for len(have) < target {
			take()
		}
		for len(have) > target {
			give(rng.IntN(len(have)))
		}
		check()
		for range 12 * len(have) { // as many come as go
			give(rng.IntN(len(have)))
			take()
		}
		check()
		if most := target/slabRecords*5/4 + 3; r.size > most {
			t.Errorf("%d slabs for %d records after churn, want at most %d", r.size, target, most)
		}
	}
	if len(of) != 0 || len(r.list) != 0 {
		t.Errorf("%d slabs left, %d noted", len(of), len(r.list))
	}
}
