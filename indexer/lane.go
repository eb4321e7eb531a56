package indexer

import (
	"slices"
	"sync/atomic"
)

// owners finds the source of each lane. Readers see it grow.
type owners struct {
	dir  atomic.Pointer[[]*ownerPage]
	next lane   // writers only, as is free
	free []lane // of closed sources
}

const lanesInPage = 256

type ownerPage [lanesInPage]atomic.Pointer[owner]

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
	t := l.table.Load()
	l.publish(newTable(l.src, t.groups, t.since, append(slices.Clone(t.lanes), laneOf{lane: ln, bit: bit, since: since})))
	return ln
}

// publish makes t what readers know of the source, which they find from it or from its lanes.
func (l *Ledger) publish(t *table) {
	l.table.Store(t)
	for _, of := range t.lanes {
		o := &owner{ledger: l, since: max(t.since, of.since), plain: t.plain}
		if t.plain {
			o.size = t.sizes[0]
		}
		l.x.chains.lanes.page(of.lane)[of.lane%lanesInPage].Store(o)
	}
}

func (o *owners) page(ln lane) *ownerPage { return (*o.dir.Load())[ln/lanesInPage] }

// at is the owner of a lane, nil when its source is closed.
func (o *owners) at(ln lane) *owner { return o.page(ln)[ln%lanesInPage].Load() }

// give takes back the lanes of a source that holds nothing and is closed.
func (o *owners) give(l *Ledger) {
	for i, n := range l.lanes {
		if n != 0 {
			o.page(n - 1)[(n-1)%lanesInPage].Store(nil)
			o.free = append(o.free, n-1)
			l.lanes[i] = 0
		}
	}
}
