package indexer

import (
	"github.com/kvscout/kvscout/events"
)

// HeldBlock is a block that a source holds under one engine hash.
type HeldBlock struct {
	Hash  events.Hash
	scope *scope
	mask  mask
}

// In is the scope of the block. Its salt is a secret.
func (b *HeldBlock) In() Scope { return b.scope.Scope }

// On says whether the block lies on a tier, for any KV-cache group.
func (b *HeldBlock) On(t events.Tier) bool { return b.mask&inTier(t) != 0 }

// Dump lists what the source holds, as of one moment, in no stated order. Writers wait while it is copied.
func (l *Ledger) Dump() []HeldBlock {
	l.x.mu.Lock()
	defer l.x.mu.Unlock()
	out := make([]HeldBlock, 0, max(0, l.stats.handles.Load()))
	l.eachLocked(func(h events.Hash, s *scope, _ place, m mask) {
		if m != 0 {
			out = append(out, HeldBlock{Hash: h, scope: s, mask: m})
		}
	})
	return out
}
