package routed

import (
	"context"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

const (
	// tick is how often credits are looked at.
	tick = 20 * time.Millisecond
	// perTick bounds the lookups of one tick.
	perTick = 256
)

// Run ends credits in time, until ctx ends.
func (b *Book) Run(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			b.look(ctx, now)
		}
	}
}

// look ends the credits whose time has come, and those that events have confirmed.
func (b *Book) look(ctx context.Context, now time.Time) {
	for _, c := range b.due(now) {
		if b.confirmed(ctx, c) {
			b.mu.Lock()
			b.endLocked(c, &b.stats.Confirmed)
			b.mu.Unlock()
		}
	}
}

// due ends what is over, and returns credits that may be confirmed: those of sources that were heard of since they were
// looked at last.
func (b *Book) due(now time.Time) []*credit {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.sources) == 0 {
		return nil
	}
	heard := b.hearLocked()
	var out []*credit
	for _, c := range b.credits {
		switch {
		case !now.Before(c.until):
			b.endLocked(c, &b.stats.Expired)
		case heard[c.source]:
			c.fresh = true
		}
	}
	for _, c := range b.credits {
		if len(out) == perTick {
			break // the rest stays fresh, and the next tick begins anywhere
		}
		if c.fresh {
			c.fresh = false
			out = append(out, c)
		}
	}
	return out
}

// hearLocked forgets sources that left and credits of engines that started again, and returns the sources that were heard
// of since. Needs b.mu.
func (b *Book) hearLocked() map[*source]bool {
	heard := make(map[*source]bool)
	for l, s := range b.sources {
		open, resets := l.Open(), l.Resets()
		if !open || resets != s.resets {
			b.dropLocked(s)
		}
		if !open {
			s.shadow.Close()
			delete(b.sources, l)
			continue
		}
		s.resets = resets
		if f := l.Freshness(); f.LastEvent != s.seen.LastEvent || f.LastSequence != s.seen.LastSequence {
			s.seen, heard[s] = f, true
		}
	}
	return heard
}

func (b *Book) dropLocked(s *source) {
	if s.waiting == 0 {
		return
	}
	for _, c := range b.credits {
		if c.source == s {
			b.endLocked(c, &b.stats.Dropped)
		}
	}
}

// endLocked takes a credit back, unless it has ended already. Needs b.mu.
func (b *Book) endLocked(c *credit, why *uint64) {
	if b.credits[c.number] != c {
		return
	}
	delete(b.credits, c.number)
	c.source.waiting--
	b.tokens -= len(c.query.Tokens)
	b.waiting.Store(int64(len(b.credits)))
	*why++
	c.source.shadow.Apply(&events.Batch{Events: []events.Event{{Kind: events.Removed, Hashes: c.hashes(), Tier: events.TierDevice}}})
}

// confirmed says whether the source holds all that was credited.
func (b *Book) confirmed(ctx context.Context, c *credit) bool {
	list, err := b.index.Lookup(ctx, c.query)
	if err != nil {
		return false // ctx has ended
	}
	src := c.source.shadow.Source()
	return indexer.ReachOf(list, src.Worker, src.Rank) >= c.tokens
}
