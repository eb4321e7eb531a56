package indexer

import "github.com/kvscout/kvscout/events"

// Reuse reports (vLLM kv_cache_report_mode "full") look like stores of a prompt's first blocks and announce nothing new.
// Only a source that is configured so sends them.

// reportedLocked says whether a store is a report: all its blocks are held since an earlier batch.
func (l *Ledger) reportedLocked(e *events.Event, blocks []*block) bool {
	if !l.src.ReuseReports || e.HasParent {
		return false
	}
	id := ungrouped
	if e.HasGroup {
		id = e.Group
	}
	g := l.table.Load().find(id)
	if g < 0 {
		return false
	}
	for _, b := range blocks {
		if !l.heldBeforeLocked(b, bit(g, e.Tier)) {
			return false
		}
	}
	return true
}

// mayRepeatLocked says whether a store may be a report as far as b goes. While history is missing a report also names
// blocks that we never heard of, so that no store can be told from one; to count no copy then keeps answers at or
// under the truth, which is what they claim.
func (l *Ledger) mayRepeatLocked(e *events.Event, b *block, which mask) bool {
	return l.src.ReuseReports && !e.HasParent && !l.HistoryComplete() && l.heldBeforeLocked(b, which)
}

// heldBeforeLocked says whether b is held there since an earlier batch than the one being applied.
func (l *Ledger) heldBeforeLocked(b *block, which mask) bool {
	for _, c := range b.copies {
		if c.bit == which {
			return c.since < l.batch
		}
	}
	return false
}
