package indexer

import (
	"slices"

	"github.com/kvscout/kvscout/events"
)

// orphanage keeps stores whose parent is not known, until it is (rule 9). It is bounded: the oldest goes first. It
// belongs to a ledger and is guarded like it.
type orphanage struct {
	max    int // blocks
	blocks int
	bytes  int // of tokens and extra keys; at most max x orphanBytes
	stores int
	// byParent finds the stores that wait for a hash; byHash those that announce one.
	byParent map[events.Hash][]*orphan
	byHash   map[events.Hash][]*orphan
	age      []*orphan // oldest first, among them some that left
}

// orphanBytes is the room for the content of a waiting block, on average: 256 tokens.
const orphanBytes = 1024

// orphan is a store that waits.
type orphan struct {
	event events.Event
	// live counts, for each hash of the event, whether it still holds (1) or was removed meanwhile (0).
	live []bool
	left bool
	size int // bytes
}

func (o *orphanage) init(limit int) {
	o.max = limit
	o.clear()
}

func (o *orphanage) clear() {
	o.blocks, o.bytes, o.stores = 0, 0, 0
	o.byParent = make(map[events.Hash][]*orphan)
	o.byHash = make(map[events.Hash][]*orphan)
	o.age = nil
}

// add keeps a copy of e and returns how many waiting stores were given up for it.
func (o *orphanage) add(e *events.Event) (dropped int) {
	size := contentBytes(e)
	if len(e.Hashes) > o.max || size > o.max*orphanBytes {
		return 1
	}
	for o.blocks+len(e.Hashes) > o.max || o.bytes+size > o.max*orphanBytes {
		oldest := o.age[0]
		o.age = o.age[1:]
		if !oldest.left {
			o.drop(oldest)
			dropped++
		}
	}
	w := &orphan{event: cloneEvent(e), live: make([]bool, len(e.Hashes)), size: size}
	o.byParent[e.Parent] = append(o.byParent[e.Parent], w)
	for i, h := range w.event.Hashes {
		w.live[i] = true
		o.byHash[h] = append(o.byHash[h], w)
	}
	o.blocks += len(w.live)
	o.bytes += size
	o.stores++
	o.age = append(o.age, w)
	if len(o.age) > 2*o.stores+64 { // those that left hold their content
		o.age = slices.DeleteFunc(o.age, func(w *orphan) bool { return w.left })
	}
	return dropped
}

func (o *orphanage) drop(w *orphan) {
	w.left = true
	o.blocks -= len(w.live)
	o.bytes -= w.size
	o.stores--
	unlink(o.byParent, w.event.Parent, w)
	for _, h := range w.event.Hashes {
		unlink(o.byHash, h, w)
	}
}

func unlink(m map[events.Hash][]*orphan, h events.Hash, w *orphan) {
	list := m[h]
	switch i := slices.Index(list, w); {
	case i < 0:
	case len(list) == 1:
		delete(m, h)
	case i == 0: // the oldest goes first as a rule, and one hash may have thousands
		list[0] = nil
		m[h] = list[1:]
	default:
		m[h] = slices.Delete(list, i, i+1)
	}
}

// remove takes one waiting copy of h away. The waiting store stays as long as any of its blocks does, since those
// behind h take their place from it.
func (o *orphanage) remove(h events.Hash, group int, tier events.Tier) bool {
	for _, w := range o.byHash[h] {
		e := &w.event
		id := ungrouped
		if e.HasGroup {
			id = e.Group
		}
		if id != group || e.Tier != tier {
			continue
		}
		for i := range e.Hashes {
			if e.Hashes[i] == h && w.live[i] {
				w.live[i] = false
				if !slices.Contains(w.live, true) {
					o.drop(w)
				}
				return true
			}
		}
	}
	return false
}

// take returns the stores that wait for h and forgets them.
func (o *orphanage) take(h events.Hash) []*orphan {
	out := slices.Clone(o.byParent[h])
	for _, w := range out {
		o.drop(w)
	}
	return out
}

// clearTier forgets the stores that wait to enter a tier.
func (o *orphanage) clearTier(tier events.Tier) {
	for _, w := range o.age {
		if !w.left && w.event.Tier == tier {
			o.drop(w)
		}
	}
}

func (o *orphanage) waiting() (stores, blocks int) { return o.stores, o.blocks }

func contentBytes(e *events.Event) int {
	n := 4 * len(e.Tokens)
	for _, row := range e.Extras {
		for i := range row {
			n += 32 + len(row[i].Text)
		}
	}
	return n
}

func cloneEvent(e *events.Event) events.Event {
	c := *e
	c.Hashes = slices.Clone(e.Hashes)
	c.Tokens = slices.Clone(e.Tokens)
	c.Extras = slices.Clone(e.Extras)
	for i := range c.Extras {
		c.Extras[i] = slices.Clone(c.Extras[i])
	}
	return c
}

// adoptLocked applies the stores that waited for these hashes, and those that waited for theirs.
func (l *Ledger) adoptLocked(hashes []events.Hash) {
	queue := slices.Clone(hashes)
	var made []*block
	for len(queue) > 0 {
		h := queue[0]
		queue = queue[1:]
		for _, w := range l.orphans.take(h) {
			id, wait, r, ok := l.identifyLocked(&w.event)
			if wait {
				r = events.ReasonOrphanDropped // cannot be: h is known
			}
			if !ok {
				l.Reject(r)
				continue
			}
			made = append(made, id.fresh...)
			g, ok := l.learnLocked(&w.event, w.event.BlockSize)
			if !ok {
				l.Reject(events.ReasonBadEvent)
				continue
			}
			for i, b := range id.blocks {
				if w.live[i] {
					l.addLocked(b, g, w.event.Tier)
				}
			}
			queue = append(queue, w.event.Hashes...)
		}
	}
	// Blocks removed while they waited hold nothing, but gave those behind them their place.
	l.undoLocked(made)
}
