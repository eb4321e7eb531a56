package indexer

import (
	"slices"
	"sync/atomic"
)

// lane is one residency of one source: one tier of one group, or for a source that is told by its hashes all of them.
// Its number is used again after its source is closed; whoever read it before is then out of date (table.since).
type lane uint32

// laneOf is a lane with what it stands for in the masks of its source.
type laneOf struct {
	lane lane
	bit  mask // 0: in the masks under each hash
	// since is stripe.clears when the source got it: what was read of the tree before that was another's.
	since uint64
}

// owners finds the source of each lane. Readers see it grow.
type owners struct {
	dir atomic.Pointer[[]*ownerPage]
	// slots are of the lanes' sources. A longer list is published as a whole; a shorter one stays good for its lanes that
	// were in use when it was loaded.
	slots atomic.Pointer[[]atomic.Uint32]
	// fancy counts the lanes of which more than the leading run counts.
	fancy atomic.Int32
	next  lane   // writers only, as is free
	free  []lane // of closed sources
}

const lanesInPage = 256

type ownerPage [lanesInPage]owner

// owner is whose a lane is, and what of the source's table readers of one lane need. since is written before ledger.
type owner struct {
	ledger atomic.Pointer[Ledger]
	// since is stripe.clears<<1; what was read of the tree before that is gone. The lowest bit is 1 for table.plain.
	since atomic.Uint64
}

// ready says whether the source has its lane i or can be given one.
func (o *owners) ready(l *Ledger, i int) bool {
	return l.lanes[i] != 0 || len(o.free) > 0 || o.next < maxLanes
}

// of is the source's lane i, made if new; bit is what it stands for in masks.
func (o *owners) of(l *Ledger, i int, bit mask) lane {
	if n := l.lanes[i]; n != 0 {
		return n - 1
	}
	var ln lane
	since := uint64(0)
	if n := len(o.free); n > 0 {
		ln, o.free = o.free[n-1], o.free[:n-1]
		since = l.x.clears.Load()
	} else {
		ln = o.next
		o.next++
		if ln%lanesInPage == 0 {
			var dir []*ownerPage
			if d := o.dir.Load(); d != nil {
				dir = append(dir, *d...)
			}
			dir = append(dir, new(ownerPage))
			o.dir.Store(&dir)
		}
	}
	l.lanes[i] = ln + 1
	o.setSlot(ln, l.slot)
	t := l.table.Load()
	l.publish(newTable(l.src, t.groups, t.since, append(slices.Clone(t.lanes), laneOf{lane: ln, bit: bit, since: since})))
	return ln
}

func (o *owners) setSlot(ln lane, s slot) {
	var list []atomic.Uint32
	if p := o.slots.Load(); p != nil {
		list = *p
	}
	if int(ln) >= len(list) {
		longer := make([]atomic.Uint32, max(lanesInPage, 2*len(list)))
		for i := range list {
			longer[i].Store(list[i].Load())
		}
		list = longer
		o.slots.Store(&longer)
	}
	list[ln].Store(uint32(s))
}

// publish makes t what readers know of the source, which they find from it or from its lanes.
func (l *Ledger) publish(t *table) {
	l.table.Store(t)
	for _, of := range t.lanes {
		o := l.x.chains.lanes.at(of.lane)
		since := max(t.since, of.since) << 1
		if t.plain {
			since |= 1
		}
		if was := o.plain(); was && !t.plain {
			l.x.chains.lanes.fancy.Add(1) // before: who sees none meets none
		} else if !was && t.plain {
			defer l.x.chains.lanes.fancy.Add(-1)
		}
		o.since.Store(since)
		o.ledger.Store(l)
	}
}

func (o *owners) at(ln lane) *owner { return &(*o.dir.Load())[ln/lanesInPage][ln%lanesInPage] }

// give takes back the lanes of a source that holds nothing and is closed.
func (o *owners) give(l *Ledger) {
	for i, n := range l.lanes {
		if n != 0 {
			was := o.at(n - 1)
			if !was.plain() {
				o.fancy.Add(-1)
			}
			was.ledger.Store(nil)
			o.free = append(o.free, n-1)
			l.lanes[i] = 0
		}
	}
}

// plain says whether of the lane only its leading run counts: its source has no other, or is closed.
func (o *owner) plain() bool { return o.ledger.Load() == nil || o.since.Load()&1 != 0 }
