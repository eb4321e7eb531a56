package indexer

import (
	"cmp"
	"slices"

	"github.com/kvscout/kvscout/events"
)

// clearLocked drops everything the source holds.
func (l *Ledger) clearLocked() {
	var all []held
	for h, b := range l.blocks {
		for ; b != nil; b = b.next {
			all = append(all, held{h.Lo, b.scope, b.place, b.mask})
		}
	}
	// From the ends of prompts to their starts: what is held shrinks without holes.
	slices.SortFunc(all, func(a, b held) int { return cmp.Compare(b.place, a.place) })
	for _, b := range all {
		if b.mask != 0 {
			l.x.tree.hold(b.place, l, b.via, b.mask, 0)
		}
		l.x.tree.release(b.place)
		l.x.leaveLocked(b.scope, 1)
	}
	l.blocks = make(map[events.Hash]*block)
	clear(l.alias)
	if l.compact {
		l.clearSimpleLocked()
	}
	l.chains = nil
	l.orphans.clear()
	l.publish(newTable(l.src, nil, l.x.clears.Add(1), l.table.Load().lanes))
	l.x.tree.settle()
	l.weighLocked()
	l.stats.clearGauges()
}

func (l *Ledger) clearTierLocked(tier events.Tier) {
	l.orphans.clearTier(tier)
	var hashes []events.Hash
	l.eachLocked(func(h events.Hash, _ *scope, _ place, m mask) {
		if m&inTier(tier) != 0 {
			hashes = append(hashes, h)
		}
	})
	var all []*block
	slices.SortFunc(hashes, func(a, b events.Hash) int { return cmp.Or(cmp.Compare(a.Hi, b.Hi), cmp.Compare(a.Lo, b.Lo)) })
	for _, h := range slices.Compact(hashes) {
		for b := l.findLocked(h); b != nil; b = b.next {
			all = append(all, b)
		}
	}
	for _, b := range all {
		for g := range maxGroups {
			if which := bit(g, tier); b.mask&which != 0 {
				l.takeLocked(b, which, true)
			}
		}
	}
}
