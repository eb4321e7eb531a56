package indexer

// rooms says which records of a list of slabs are in use. The slabs lie with their owner; a record that is not in use
// links to the next such one of its slab, so that a slab goes without a list to be searched.
//
//  1. A slab goes when none of its records is in use, unless it is the one that records are taken from.
//  2. Record 0 is never in use.
type rooms struct {
	list []room
	cur  int   // slab to take from, if there is one
	gone []int // numbers of slabs that went
	used int
	size int // slabs that are there
}

// room is one slab.
type room struct {
	next  uint32 // first record never used, counted in the slab
	free  uint32 // 1 + a free record, counted in the slab; 0: none
	used  uint32
	there bool
}

// slabOwner has the slabs that a rooms is about.
type slabOwner interface {
	// link is where a record that is not in use may say which is next.
	link(id uint32) *uint32
	// addSlab makes a slab; its number is that of one that went, or the next.
	addSlab(n int)
	dropSlab(n int)
}

const (
	slabRecords = 1 << 10
	// roomWorth is how many records of a slab must be free so that records are taken from it.
	roomWorth = slabRecords / 16
)

// limit is above every id.
func (r *rooms) limit() uint32 { return uint32(len(r.list)) * slabRecords }

// has says whether the slab of an id is there.
func (r *rooms) has(id uint32) bool { return id < r.limit() && r.list[id/slabRecords].there }

// take is a record that is not in use.
func (r *rooms) take(of slabOwner) uint32 {
	if len(r.list) == 0 || r.list[r.cur].used == r.list[r.cur].holds(r.cur) {
		r.choose(of)
	}
	s := &r.list[r.cur]
	s.used++
	r.used++
	base := uint32(r.cur) * slabRecords
	if s.free != 0 {
		id := base + s.free - 1
		s.free = *of.link(id)
		return id
	}
	s.next++
	return base + s.next - 1
}

// holds is how many records slab n can give out.
func (s *room) holds(n int) uint32 {
	if n == 0 {
		return slabRecords - 1
	}
	return slabRecords
}

// choose makes cur a slab with room: the fullest with enough of it to be worth the search, so that the others empty.
func (r *rooms) choose(of slabOwner) {
	best := -1
	for n := range r.list {
		if s := &r.list[n]; s.there && s.used <= slabRecords-roomWorth && (best < 0 || s.used > r.list[best].used) {
			best = n
		}
	}
	if best >= 0 {
		r.cur = best
		return
	}
	if k := len(r.gone); k > 0 {
		r.cur, r.gone = r.gone[k-1], r.gone[:k-1]
	} else {
		r.cur = len(r.list)
		r.list = append(r.list, room{})
	}
	r.list[r.cur] = room{there: true}
	if r.cur == 0 {
		r.list[0].next = 1
	}
	r.size++
	of.addSlab(r.cur)
}

// give takes a record back. It is true when none is left in use; then all slabs are gone.
func (r *rooms) give(of slabOwner, id uint32) (none bool) {
	n := int(id / slabRecords)
	s := &r.list[n]
	*of.link(id) = s.free
	s.free = id%slabRecords + 1
	s.used--
	if r.used--; r.used == 0 {
		for n := range r.list {
			if r.list[n].there {
				of.dropSlab(n)
			}
		}
		*r = rooms{}
		return true
	}
	if s.used == 0 && n != r.cur {
		*s = room{}
		r.gone = append(r.gone, n)
		r.size--
		of.dropSlab(n)
	}
	return false
}
