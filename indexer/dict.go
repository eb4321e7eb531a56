package indexer

import (
	"math"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/kvscout/kvscout/events"
)

// dict says which blocks engine hashes name. Only writers use it.
//
// The hashes lie in groups: up to groupLen of them at consecutive positions of one chain, written once, and as a whole
// moved by compactLocked only. The table holds four-byte entries, a part of the hash and a handle (group<<4 | offset); what it finds is proved by the
// hash in the group. No pointer lies in either.
//
// Space 0 is shared: its hash of a position is that of every source that has not announced another. Who announces
// another for a block that has one gets a space of its own, and all its handles go along.
//
//  1. A handle of space 0 lives as long as its position does; whoever of space 0 holds the block plainly (see Ledger.odd)
//     means it by this hash.
//  2. A handle of another space lives as long as its source holds the block plainly.
//  3. In one space a position has at most one hash. In space 0 a hash may name several places, none of which is held
//     plainly by one source beside another; then twins is true.
type dict struct {
	shards [dictShards]dictShard
	slabs  []*[slabRecords]hashGroup
	rooms  rooms // of groups; 0 is none
	live   int
	owned  int // groups that are not of space 0
	twins  bool
	gen    uint32 // counts shards made anew
	// maxMoved and fewSlabs are the constants, but for tests.
	maxMoved, fewSlabs int
	mem                atomic.Int64 // bytes of slabs and tables
	sink               uint32       // keeps reads that only warm up from being optimised away
}

// hashGroup is the hashes of consecutive positions of a chain.
type hashGroup struct {
	chain uint32
	link  uint32 // in space 0 the chain's next group, else the space
	base  uint16 // position of hash[0]
	used  uint16 // which hashes are live
	n     uint8  // hashes written
	owned bool   // not of space 0
	// claimed: its hashes were entered in the table as space 0's.
	claimed bool
	_       uint8
	hash    [groupLen]uint64
}

// dictShard is a part of the table, which may have any length: 0 never used, 1 dead, else fingerprint<<bits | handle.
type dictShard struct {
	slots []uint32
	bits  uint
	used  int // not 0
	dead  int
}

// handle is where a hash is: group<<4 | offset, 0 for nowhere.
type handle uint32

const (
	groupLen    = 14
	dictShards  = 256
	shardBits   = 8
	deadSlot    = 1 // handles begin at 16
	shardGrowth = 2.5

	groupSlabBytes = int64(unsafe.Sizeof([slabRecords]hashGroup{}))
)

func (d *dict) group(id uint32) *hashGroup { return &d.slabs[id/slabRecords][id%slabRecords] }

// of is the group and position of a handle.
func (d *dict) of(h handle) (g *hashGroup, pos int) {
	g = d.group(uint32(h >> 4))
	return g, int(g.base) + int(h&15)
}

// space is that in which a group's hashes are entered in the table.
func (g *hashGroup) space() uint32 {
	if !g.owned || g.claimed {
		return 0
	}
	return g.link
}

// of says whether the group's hashes are a space's.
func (g *hashGroup) of(space uint32) bool {
	if space == 0 {
		return !g.owned
	}
	return g.owned && g.link == space
}

func (d *dict) newGroup(chain uint32, base int, space uint32) uint32 {
	id := d.rooms.take(d)
	g := d.group(id)
	g.chain, g.link, g.base, g.used, g.n = chain, space, uint16(base), 0, 0
	g.owned, g.claimed = space != 0, false
	if g.owned {
		d.owned++
	}
	return id
}

func (d *dict) freeGroup(id uint32) {
	g := d.group(id)
	if g.owned {
		d.owned--
	}
	g.used, g.n, g.chain, g.link, g.owned = 0, 0, 0, 0, false
	if d.rooms.give(d, id) {
		d.slabs = nil
	}
}

func (d *dict) link(id uint32) *uint32 { return &d.group(id).link }

func (d *dict) addSlab(n int) {
	if n == len(d.slabs) {
		d.slabs = append(d.slabs, nil)
	}
	d.slabs[n] = new([slabRecords]hashGroup)
	d.mem.Add(groupSlabBytes)
}

func (d *dict) dropSlab(n int) {
	d.slabs[n] = nil
	d.mem.Add(-groupSlabBytes)
}

// spaceMix keeps equal hashes of different spaces apart.
func spaceMix(space uint32) uint64 {
	x := uint64(space) * 0xFF51AFD7ED558CCD
	x ^= x >> 33
	return x * 0xC4CEB9FE1A85EC53
}

func mixHash(hash uint64, space uint32) uint64 { return mixBits(hash ^ spaceMix(space)) }

func mixBits(x uint64) uint64 {
	x ^= x >> 32
	x *= 0xD6E8FEB86659FD93
	x ^= x >> 32
	return x * 0xD6E8FEB86659FD93
}

// start is the first slot to look at.
func (s *dictShard) start(x uint64) uint32 {
	hi, _ := bits.Mul64(x<<shardBits, uint64(len(s.slots)))
	return uint32(hi)
}

func (s *dictShard) entry(x uint64, h handle) uint32 { return uint32(x)<<s.bits | uint32(h) }

func (d *dict) shard(x uint64) *dictShard { return &d.shards[x>>(64-shardBits)] }

// enter makes a handle findable, from where its hash is looked for on. The hash is in its group.
func (d *dict) enter(p probe, h handle) {
	s := d.shard(p.x)
	if (s.used+1)*32 > len(s.slots)*27 || uint32(h)>>s.bits != 0 {
		d.grow(s)
	}
	if p.gen != d.gen {
		p.at = s.start(p.x)
	}
	s.put(p.at, s.entry(p.x, h))
	d.live++
}

func (s *dictShard) put(at, entry uint32) {
	for s.slots[at] > deadSlot {
		if at++; int(at) == len(s.slots) {
			at = 0
		}
	}
	if s.slots[at] == deadSlot {
		s.dead--
	} else {
		s.used++
	}
	s.slots[at] = entry
}

// grow makes a shard anew, larger if it is full of live entries. Shards begin with sizes spread over one step, so that
// they grow one after the other. Hashes are read back from their groups many at a time, for the same reason as in probes.
func (d *dict) grow(s *dictShard) {
	old := *s
	size := len(old.slots)
	if (old.used-old.dead+1)*32*5 > size*27*4 {
		size = int(float64(size) * shardGrowth)
	}
	if size == 0 {
		for i := range d.shards {
			if s == &d.shards[i] {
				size = int(24 * math.Pow(shardGrowth, float64(i)/dictShards))
			}
		}
	}
	d.remake(s, size)
}

// remake makes a shard anew with so many slots.
func (d *dict) remake(s *dictShard, size int) {
	old := *s
	d.gen++
	d.mem.Add(int64(size-len(old.slots)) * 4)
	s.slots, s.bits, s.used, s.dead = make([]uint32, size), uint(bits.Len32(d.rooms.limit()*16))+1, 0, 0
	low := uint32(1)<<old.bits - 1
	var handles [32]handle
	var xs [32]uint64
	n := 0
	shared := d.owned == 0 // then there is no need to read whose the groups are
	flush := func() {
		for i, h := range handles[:n] {
			g := d.group(uint32(h >> 4))
			xs[i] = g.hash[h&15]
			if !shared {
				xs[i] ^= spaceMix(g.space())
			}
		}
		for i := range n {
			xs[i] = mixBits(xs[i])
		}
		for i, h := range handles[:n] {
			s.put(s.start(xs[i]), s.entry(xs[i], h))
		}
		n = 0
	}
	for _, e := range old.slots {
		if e <= deadSlot {
			continue
		}
		handles[n] = handle(e & low)
		if n++; n == len(handles) {
			flush()
		}
	}
	flush()
}

// drop forgets a handle, but does not free its group.
func (d *dict) drop(h handle) {
	g := d.group(uint32(h >> 4))
	o := h & 15
	x := mixHash(g.hash[o], g.space())
	s := d.shard(x)
	want := s.entry(x, h)
	at := s.start(x)
	for s.slots[at] != want {
		if at++; int(at) == len(s.slots) {
			at = 0
		}
	}
	next := at + 1
	if int(next) == len(s.slots) {
		next = 0
	}
	if s.slots[next] == 0 { // nothing is looked for beyond it
		s.slots[at] = 0
		s.used--
	} else {
		s.slots[at] = deadSlot
		s.dead++
	}
	g.used &^= 1 << o
	if d.live--; (s.used-s.dead)*6 < len(s.slots) && len(s.slots) > 96 {
		d.remake(s, len(s.slots)/2)
	}
}

// inUse is the bytes of the table and of groups in use.
func (d *dict) inUse() int {
	return int(d.mem.Load()) - (d.rooms.size*slabRecords-d.rooms.used)*int(unsafe.Sizeof(hashGroup{}))
}

// dropGroup forgets all handles of a group, and frees it.
func (d *dict) dropGroup(id uint32) {
	g := d.group(id)
	for o := range uint32(g.n) {
		if g.used>>o&1 != 0 {
			d.drop(handle(id<<4 | o))
		}
	}
	d.freeGroup(id)
}

// tidy gives memory back when nothing is left.
func (d *dict) tidy() {
	if d.live == 0 && d.mem.Load() > 0 {
		d.shards, d.slabs, d.rooms, d.owned, d.twins = [dictShards]dictShard{}, nil, rooms{}, 0, false
		d.mem.Store(0)
	}
}

// fill appends as many hashes as fit to a group that was not claimed, and returns how many.
func (d *dict) fill(id uint32, hashes []events.Hash, probes []probe) int {
	g := d.group(id)
	o := int(g.n)
	n := min(len(hashes), groupLen-o)
	for i := range n {
		g.hash[o+i] = hashes[i].Lo
	}
	g.n += uint8(n)
	g.used |= (1<<n - 1) << o
	for i := range n {
		d.enter(probes[i], handle(id<<4|uint32(o+i)))
	}
	return n
}

// end is the position behind the group's last hash.
func (g *hashGroup) end() int { return int(g.base) + int(g.n) }

// before is whether the group ends right before position pos and has room.
func (g *hashGroup) before(pos int) bool { return g.n < groupLen && g.end() == pos }
