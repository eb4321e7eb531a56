package indexer

import (
	"github.com/kvscout/kvscout/events"
)

// BoundKind says what an answer is: a fact or a bound (rule 13).
type BoundKind uint8

const (
	// Exact: the answer is what the engine would report.
	Exact BoundKind = iota
	// Upper: the engine may reuse less.
	Upper
	// Lower: the engine may hold more.
	Lower
	// Estimate: reasons for both apply, so the answer is neither.
	Estimate
)

// Doubt is a set of reasons why answers about a source are bounds.
type Doubt uint32

const (
	// doubtHistory: joined late, nothing replayed from the start, nothing cleared since.
	doubtHistory Doubt = 1 << iota
	// doubtAmbiguous: a removal fitted blocks of two namespaces, and both were dropped.
	doubtAmbiguous
	// doubtGap: batches were lost and what was held was kept (option).
	doubtGap
	// doubtNamespace: a namespace is neither in the events nor in the hashes.
	doubtNamespace
	// doubtWindow: evictions of sliding windows are not published, or a window's width is not.
	doubtWindow
	// doubtState: recurrent states are not published.
	doubtState
	// doubtMedia: the prompt has multimodal content that the request does not name.
	doubtMedia
	doubtEnd
)

const lowerDoubts = doubtHistory | doubtAmbiguous

var doubtNames = map[Doubt]string{
	doubtHistory:   "history_missing",
	doubtAmbiguous: "ambiguous_removal",
	doubtGap:       "gap_kept",
	doubtNamespace: "hidden_namespace",
	doubtWindow:    "hidden_window",
	doubtState:     "hidden_state",
	doubtMedia:     "media_unnamed",
}

// Bound is the kind of an answer with the reasons for it.
type Bound struct {
	Kind  BoundKind
	Doubt Doubt
}

// Reasons names why the bound is not exact, in a fixed vocabulary.
func (b Bound) Reasons() []string {
	var out []string
	for d := Doubt(1); d < doubtEnd; d <<= 1 {
		if b.Doubt&d != 0 {
			out = append(out, doubtNames[d])
		}
	}
	return out
}

func newBound(d Doubt) Bound {
	b := Bound{Doubt: d}
	switch {
	case d&lowerDoubts != 0 && d&^lowerDoubts != 0:
		b.Kind = Estimate
	case d&lowerDoubts != 0:
		b.Kind = Lower
	case d != 0:
		b.Kind = Upper
	}
	return b
}

// doubt sets or lifts reasons. Callers are the goroutine that writes the ledger.
func (l *Ledger) doubt(d Doubt, on bool) {
	if on {
		l.doubts.Or(uint32(d))
	} else {
		l.doubts.And(^uint32(d))
	}
}

// bound is the bound of answers to q about the source.
func (l *Ledger) bound(q Query) Bound {
	d := Doubt(l.doubts.Load())
	if l.table.Load().opaque() {
		d |= doubtWindow
	}
	if l.src.Engine == events.EngineSGLang {
		switch {
		case witnessed(l.src):
			if q.Adapter != "" && q.AdapterID == "" || q.Keys != nil {
				d |= doubtNamespace
			}
		case q.Extra != "":
			d |= doubtNamespace
		}
	}
	return newBound(d)
}

// Joined says with which batch the known history of the source begins; complete means with the first there was.
func (l *Ledger) Joined(complete bool) {
	l.x.mu.Lock()
	defer l.x.mu.Unlock()
	l.doubt(doubtHistory, !complete)
}

// Reset drops what the source held: its engine started again (rule 11).
func (l *Ledger) Reset() {
	l.stats.resets.Add(1)
	l.drop()
}

// Gap says that n batches are lost for good. What was held is dropped, or kept and flagged (rule 11).
func (l *Ledger) Gap(n uint64) {
	l.stats.gaps.Add(1)
	l.stats.lost.Add(n)
	if l.x.opts.KeepOnGap {
		l.x.mu.Lock()
		l.doubt(doubtGap|doubtHistory, true)
		l.x.mu.Unlock()
		return
	}
	l.drop()
}

func (l *Ledger) drop() {
	l.x.mu.Lock()
	defer l.x.mu.Unlock()
	if l.closed {
		return
	}
	l.clearLocked()
	l.doubt(doubtGap|doubtAmbiguous, false)
	l.doubt(doubtHistory, true)
	l.x.version.Add(1)
}
