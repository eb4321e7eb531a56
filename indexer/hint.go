package indexer

import "github.com/kvscout/kvscout/events"

// hintLocked takes the identities that dense stores of a batch tell, ahead of sparse stores that name the same blocks
// by hash: vLLM sends a sliding-window group's store before the full group's (rule 6). Dense stores ahead of the sparse
// ones count too: a request may continue what another one stored in the same step. They stand to the end of the
// batch, since the eviction that made room for a sparse store may have taken the block's last copy.
func (l *Ledger) hintLocked(list []events.Event) {
	if len(list) < 2 || !anyStore(list, shapeSparse) {
		return
	}
	for i := range list {
		if !isStore(&list[i], shapeDense) {
			continue
		}
		id, _, _, _ := l.identifyLocked(&list[i]) // faults are counted when the event's turn comes
		for _, b := range id.blocks {
			b.hinted = true
		}
		l.hinted = append(l.hinted, id.blocks...)
	}
}

func isStore(e *events.Event, want shape) bool {
	if e.Kind != events.Stored || len(e.Hashes) == 0 {
		return false
	}
	s, _ := shapeOf(e)
	return s == want
}

func anyStore(list []events.Event, want shape) bool {
	for i := range list {
		if isStore(&list[i], want) {
			return true
		}
	}
	return false
}

// dropHintsLocked forgets hinted blocks that nothing holds at the end of the batch.
func (l *Ledger) dropHintsLocked() {
	for _, b := range l.hinted {
		b.hinted = false
	}
	l.undoLocked(l.hinted)
	l.hinted = l.hinted[:0]
}
