package indexer

import (
	"math/bits"
	"slices"
	"sync/atomic"
	"unsafe"
)

// arena hands out extents: runs of T inside slabs without pointers, named by a 32-bit id instead of a pointer. The
// garbage collector sees some hundreds of slabs and never a block.
//
//  1. An extent is used again only after release, which its owner calls once no reader can see it (epochs).
//  2. Slabs that are mostly free are emptied by their owner (vacate, leaves), so memory follows what is used.
type arena[T any] struct {
	dir atomic.Pointer[[][]T] // readers load it; replaced when it changes
	mem atomic.Int64          // bytes of slabs

	// The rest is the writer's.
	cur   uint32 // slab to cut new extents from
	bump  uint32 // its next unit never used
	free  [arenaClasses][]uint32
	total int      // units in slabs
	used  int      // units handed out
	inUse []uint32 // the same by slab
	going []bool   // slabs being emptied: nothing is allocated there
	empty []uint32 // slab numbers without a slab
}

const (
	unitLen      = 8       // elements in a unit of allocation
	slabUnits    = 1 << 12 // units in a slab; the first ones have less
	firstUnits   = 1 << 8
	slabLen      = slabUnits * unitLen
	arenaClasses = 45 // up to a whole slab; what is larger has a slab of its own
)

// classOf is the smallest class that holds n elements. Classes step by a quarter of a power of two: 1..8, 10, 12, 14, 16,
// 20, ... units.
func classOf(n int) int {
	u := (n + unitLen - 1) / unitLen
	if u <= 8 {
		return max(u, 1)
	}
	k := bits.Len(uint(u-1)) - 3 // u-1 is in [4<<k, 8<<k)
	return 4*k + (u-1)>>k + 1
}

// classUnits is the inverse of classOf.
func classUnits(c int) int {
	if c <= 8 {
		return c
	}
	k := (c - 5) / 4
	return (c - 4*k) << k
}

func classLen(c int) int { return classUnits(c) * unitLen }

// alloc is an extent of a class. What lies in it is not cleared.
func (a *arena[T]) alloc(class int) uint32 {
	need := uint32(classUnits(class))
	a.used += int(need)
	if a.dir.Load() == nil {
		a.cutNext(1)
	}
	if class >= arenaClasses {
		slab := a.addSlab(int(need))
		a.inUse[slab] = need
		return slab * slabUnits
	}
	if f := a.free[class]; len(f) > 0 {
		id := f[len(f)-1]
		a.free[class] = f[:len(f)-1]
		a.inUse[id/slabUnits] += need
		return id
	}
	if a.bump+need > a.units(a.cur) {
		a.cutNext(int(need))
	}
	id := a.cur*slabUnits + a.bump
	a.bump += need
	a.inUse[a.cur] += need
	return id
}

// units is the size of a slab.
func (a *arena[T]) units(slab uint32) uint32 { return uint32(len((*a.dir.Load())[slab]) / unitLen) }

// cutNext begins a slab to cut extents from, the first of so many units.
func (a *arena[T]) cutNext(need int) {
	if a.dir.Load() != nil {
		a.spill(a.cur, a.bump)
	}
	a.cur, a.bump = a.addSlab(min(slabUnits, max(firstUnits, a.total, need+1))), 0
	if a.cur == 0 {
		a.bump = 1 // id 0 means none
	}
}

// addSlab makes a slab of so many units.
func (a *arena[T]) addSlab(units int) (slab uint32) {
	var dir [][]T
	if d := a.dir.Load(); d != nil {
		dir = append(dir, *d...)
	}
	if n := len(a.empty); n > 0 {
		slab, a.empty = a.empty[n-1], a.empty[:n-1]
	} else {
		slab = uint32(len(dir))
		dir = append(dir, nil)
		a.inUse, a.going = append(a.inUse, 0), append(a.going, false)
	}
	dir[slab] = make([]T, units*unitLen)
	a.total += units
	a.mem.Add(a.slabBytes(dir[slab]))
	a.dir.Store(&dir)
	return slab
}

func (a *arena[T]) slabBytes(slab []T) int64 {
	var v T
	return int64(len(slab)) * int64(unsafe.Sizeof(v))
}

// spill puts the unused end of a slab on the free lists.
func (a *arena[T]) spill(slab, from uint32) {
	for end := a.units(slab); from < end; {
		c := classOf(int(end-from) * unitLen)
		for uint32(classUnits(c)) > end-from {
			c--
		}
		a.free[c] = append(a.free[c], slab*slabUnits+from)
		from += uint32(classUnits(c))
	}
}

// release takes an extent back that no reader can see.
func (a *arena[T]) release(id uint32, class int) {
	n, slab := classUnits(class), id/slabUnits
	a.used -= n
	a.inUse[slab] -= uint32(n)
	switch {
	case a.used == 0:
		a.reset()
	case class >= arenaClasses:
		a.dropSlab(slab)
	case !a.going[slab]:
		a.free[class] = append(a.free[class], id)
	case a.inUse[slab] == 0:
		a.dropSlab(slab)
	}
}

// reset gives everything back.
func (a *arena[T]) reset() {
	a.cur, a.bump, a.free, a.total, a.inUse, a.going, a.empty = 0, 0, [arenaClasses][]uint32{}, 0, nil, nil, nil
	a.dir.Store(nil)
	a.mem.Store(0)
}

func (a *arena[T]) dropSlab(slab uint32) {
	dir := slices.Clone(*a.dir.Load())
	a.total -= len(dir[slab]) / unitLen
	a.mem.Add(-a.slabBytes(dir[slab]))
	dir[slab] = nil
	a.dir.Store(&dir)
	a.going[slab] = false
	a.empty = append(a.empty, slab)
}

// vacate chooses slabs to be emptied when more than a third of the arena is free; classes are never merged, so this is
// what bounds fragmentation. Where it says true the owner moves each extent that leaves says is in such a slab.
func (a *arena[T]) vacate() bool {
	if a.total-a.used < a.total/3+slabUnits {
		return false
	}
	left := 16
	for s, d := range *a.dir.Load() {
		if d == nil || a.going[s] || s == 0 || uint32(s) == a.cur || a.inUse[s] > slabUnits/2 {
			continue
		}
		a.going[s] = true
		if left--; left == 0 {
			break
		}
	}
	if left == 16 {
		return false
	}
	for c := range a.free {
		a.free[c] = slices.DeleteFunc(a.free[c], func(id uint32) bool { return a.going[id/slabUnits] })
	}
	for s := range a.going {
		if a.going[s] && a.inUse[s] == 0 {
			a.dropSlab(uint32(s))
		}
	}
	return true
}

// leaves says whether an extent lies in a slab that is to be emptied.
func (a *arena[T]) leaves(id uint32) bool { return a.going[id/slabUnits] }

// view is the first n elements of an extent.
func (a *arena[T]) view(id uint32, n int) []T {
	s := (*a.dir.Load())[id/slabUnits]
	o := int(id%slabUnits) * unitLen
	return s[o : o+n : o+n]
}
