package indexer

import (
	"cmp"
	"slices"

	"github.com/kvscout/kvscout/events"
)

// Forget drops everything the source holds, though its engine may hold it still: its history is missing until the
// engine clears its cache. It returns how many blocks that were. It may be called from any goroutine.
func (l *Ledger) Forget() int {
	l.x.mu.Lock()
	blocks := 0
	if !l.closed {
		l.eachLocked(func(_ events.Hash, _ *scope, _ place, m mask) {
			if m != 0 {
				blocks++
			}
		})
	}
	l.x.mu.Unlock()
	l.drop(false)
	return blocks
}

// ForgetNamespace drops what the source holds in one namespace of its model, as Forget does. Stores that wait for their
// parent are given up whatever their namespace, which only the parent would tell.
func (l *Ledger) ForgetNamespace(ns Namespace) int {
	l.x.mu.Lock()
	defer l.x.mu.Unlock()
	if l.closed {
		return 0
	}
	in := func(s *scope) bool { return s.Salt == ns.Salt && s.Adapter == ns.Adapter }
	var hashes []events.Hash
	blocks := 0
	l.eachLocked(func(h events.Hash, s *scope, _ place, m mask) {
		if m != 0 && in(s) {
			hashes = append(hashes, h)
			blocks++
		}
	})
	if blocks == 0 {
		return 0
	}
	l.doubt(DoubtHistory, true) // before: nothing held must not look like a fact
	l.orphans.clear()
	slices.SortFunc(hashes, func(a, b events.Hash) int { return cmp.Or(cmp.Compare(a.Hi, b.Hi), cmp.Compare(a.Lo, b.Lo)) })
	var all []*block
	for _, h := range slices.Compact(hashes) {
		for b := l.findLocked(h); b != nil; b = b.next {
			if in(b.scope) {
				all = append(all, b)
			}
		}
	}
	for _, b := range all {
		for m := b.mask; m != 0; m &= m - 1 {
			l.takeLocked(b, m&-m, true)
		}
	}
	l.deflateLocked()
	l.weighLocked()
	l.x.tree.settle()
	l.x.version.Add(1)
	return blocks
}
