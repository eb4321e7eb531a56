package indexer

import (
	"sync/atomic"
	"time"

	"github.com/kvscout/kvscout/events"
)

// counters are a source's running counts. They are read while the source is written.
type counters struct {
	batches        atomic.Uint64
	kinds          [events.TierCleared + 1]atomic.Uint64
	rejected       [events.ReasonCount]atomic.Uint64
	reports        atomic.Uint64
	replayed       atomic.Uint64
	bytes          atomic.Uint64
	connections    atomic.Uint64
	gaps, resets   atomic.Uint64
	lost           atomic.Uint64
	handles        atomic.Int64
	orphansDropped atomic.Int64
	evicted        atomic.Uint64
	resident       [events.TierCount]atomic.Int64
	memory         atomic.Int64 // bytes of the book
}

func (c *counters) clearGauges() {
	c.handles.Store(0)
	for i := range c.resident {
		c.resident[i].Store(0)
	}
}

// SourceStats is what one source did since it was opened, and what it holds now.
type SourceStats struct {
	// Batches applied; events in them by kind.
	Batches, Stored, Removed, Cleared uint64
	// Rejected counts by events.Reason what was not applied.
	Rejected [events.ReasonCount]uint64
	// ReuseReports counts stores taken as reports of what is held (only for sources configured so).
	ReuseReports uint64
	// Replayed counts batches fetched by replay; Bytes the payloads received.
	Replayed, Bytes uint64
	// Connections made so far; 0 for a source without an endpoint.
	Connections uint64
	// Gaps counts losses that could not be filled, Lost the batches in them, Resets the restarts of the engine.
	Gaps, Lost, Resets uint64
	// Handles is the number of engine hashes known now; Resident the blocks now in each tier, a block in two groups
	// counting twice.
	Handles  int
	Resident [events.TierCount]int
	// OrphanStores and OrphanBlocks wait for a parent now; OrphansDropped were given up.
	OrphanStores, OrphanBlocks, OrphansDropped int
	// Evicted counts what was forgotten for Options.MaxBytes: a block counts for each tier and group that had it.
	Evicted uint64
	// Lag is the time from the arrival of the last message to its being applied, 0 before the first; Since is when the
	// state of freshness last changed.
	Lag   time.Duration
	Since time.Time
	// BlockSizes that the source uses now, in tokens.
	BlockSizes []int
	Bound      Bound
}

// Stats is a snapshot of the source.
func (l *Ledger) Stats() SourceStats {
	c := &l.stats
	s := SourceStats{
		Batches:        c.batches.Load(),
		Stored:         c.kinds[events.Stored].Load(),
		Removed:        c.kinds[events.Removed].Load(),
		Cleared:        c.kinds[events.Cleared].Load() + c.kinds[events.TierCleared].Load(),
		ReuseReports:   c.reports.Load(),
		Replayed:       c.replayed.Load(),
		Bytes:          c.bytes.Load(),
		Connections:    c.connections.Load(),
		Gaps:           c.gaps.Load(),
		Lost:           c.lost.Load(),
		Resets:         c.resets.Load(),
		Handles:        int(c.handles.Load()),
		OrphansDropped: int(c.orphansDropped.Load()),
		Evicted:        c.evicted.Load(),
		Lag:            time.Duration(l.fresh.lag.Load()),
		Since:          time.Unix(0, l.fresh.since.Load()),
		BlockSizes:     l.blockSizes(),
		Bound:          l.bound(&Query{}, l.table.Load(), 0),
	}
	for i := range c.rejected {
		s.Rejected[i] = c.rejected[i].Load()
	}
	for i := range c.resident {
		s.Resident[i] = int(c.resident[i].Load())
	}
	l.x.mu.Lock()
	s.OrphanStores, s.OrphanBlocks = l.orphans.waiting()
	l.x.mu.Unlock()
	return s
}

// Reject counts something of the source that was not applied, and notes what that leaves in doubt. It may be called
// from any goroutine.
func (l *Ledger) Reject(r events.Reason) {
	if r >= events.ReasonCount {
		return
	}
	l.stats.rejected[r].Add(1)
	if d := doubtOf(r); d != 0 {
		l.doubt(d, true)
	}
}

// Stats describes the whole index.
type Stats struct {
	Version uint64
	// Sources that are open; Scopes with at least one block; Blocks that anyone holds or that lead to one.
	Sources, Scopes, Blocks int
	// HolderBlocks is the sum of what the sources hold.
	HolderBlocks int
	// Bytes is about how much memory blocks, holders and the sources' books take. The plain structure counts its books only.
	Bytes int
	// Retired is the part of Bytes that is of no use any more and waits for lookups under way to end.
	Retired int
}

// Stats is a snapshot of the index.
func (x *Index) Stats() Stats {
	s := Stats{Version: x.Version()}
	x.each(func(p *stripe) {
		s.Blocks += p.tree.size()
		s.Bytes += p.tree.bytes()
		if p.chains != nil {
			s.Retired += int(p.chains.waiting.Load())
		}
		p.families.Range(func(_ family, list []*scope) bool {
			s.Scopes += len(list)
			return true
		})
	})
	x.sources.Range(func(_ slot, l *Ledger) bool {
		s.Sources++
		s.Bytes += int(l.stats.memory.Load())
		for i := range l.stats.resident {
			s.HolderBlocks += int(l.stats.resident[i].Load())
		}
		return true
	})
	return s
}
