package indexer

import (
	"slices"

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

// String is the kind as the API and the command have it.
func (k BoundKind) String() string {
	switch k {
	case Upper:
		return "upper"
	case Lower:
		return "lower"
	case Estimate:
		return "estimate"
	default:
		return "exact"
	}
}

// Doubt is a set of reasons why answers about a source are bounds.
type Doubt uint32

const (
	// DoubtHistory: joined late or batches were lost, nothing replayed from the start, nothing cleared since.
	DoubtHistory Doubt = 1 << iota
	// DoubtAmbiguous: a removal fitted blocks of two namespaces, and both were dropped.
	DoubtAmbiguous
	// DoubtGap: batches were lost and what was held was kept (option).
	DoubtGap
	// DoubtNamespace: a namespace is neither in the events nor in the hashes, or in hashes that the query cannot check.
	DoubtNamespace
	// DoubtWindow: evictions of sliding windows are not published, or a window's width is not.
	DoubtWindow
	// DoubtState: recurrent states are not published.
	DoubtState
	// DoubtMedia: the prompt has multimodal content that the request does not name, or not as the engine's events do.
	DoubtMedia
	// DoubtStale: nothing was heard for too long, so the numbers are the last that were known.
	DoubtStale
	// DoubtBlockSize: the request came as keys that are not those of all blocks that the source uses.
	DoubtBlockSize
	// DoubtUnread: a payload or an event could not be read, so stores or removals may be missing.
	DoubtUnread
	// DoubtRefused: a store was read and could not be placed, so the engine holds what we do not know.
	DoubtRefused
	// DoubtOrphans: stores wait for a parent that was never announced.
	DoubtOrphans
	// DoubtCut: the request's keys end before its prompt does, and the source holds all that they cover.
	DoubtCut
	// DoubtGroups: the rule by which a group of a hybrid model accepts a match is not known.
	DoubtGroups
	// DoubtBehind: the connection is lost or missing batches are being fetched, so the numbers are the last that were
	// known.
	DoubtBehind
	// DoubtTiers: a clear may have left blocks in slower tiers than the device.
	DoubtTiers
	// DoubtResumed: what is held was restored from a snapshot, and nothing has shown that the engine is still the same.
	DoubtResumed
	// DoubtCapped: blocks were forgotten because the index was at its bound of memory.
	DoubtCapped
	doubtEnd
)

const (
	// lowering doubts say that the engine may hold more.
	lowering = DoubtHistory | DoubtAmbiguous | DoubtBlockSize | DoubtRefused | DoubtOrphans | DoubtCut | DoubtTiers |
		DoubtCapped
	// raising doubts say that it may reuse less. The others say both.
	raising = DoubtGap | DoubtNamespace | DoubtWindow | DoubtState
	// passing doubts end with the state that they are about: at a clear, or when what was held is dropped.
	passing = DoubtAmbiguous | DoubtGap | DoubtUnread | DoubtRefused | DoubtOrphans | DoubtGroups |
		DoubtResumed | DoubtCapped
)

var doubtNames = map[Doubt]string{
	DoubtHistory:   "history_missing",
	DoubtAmbiguous: "ambiguous_removal",
	DoubtGap:       "gap_kept",
	DoubtNamespace: "hidden_namespace",
	DoubtWindow:    "hidden_window",
	DoubtState:     "hidden_state",
	DoubtMedia:     "media_unnamed",
	DoubtStale:     "stale",
	DoubtBlockSize: "other_block_size",
	DoubtUnread:    "events_unread",
	DoubtRefused:   "stores_refused",
	DoubtOrphans:   "orphans_waiting",
	DoubtCut:       "prompt_cut",
	DoubtGroups:    "group_rules_unknown",
	DoubtBehind:    "behind",
	DoubtTiers:     "tiers_uncleared",
	DoubtResumed:   "resumed",
	DoubtCapped:    "capped",
}

// doubtOf is the doubt that a rejected event leaves about its source, 0 for none: what was rejected was no news, or
// says nothing of what is held.
func doubtOf(r events.Reason) Doubt {
	switch r {
	case events.ReasonBadPayload, events.ReasonTooLarge, events.ReasonBadEvent, events.ReasonUnknownEvent,
		events.ReasonRankUnknown:
		return DoubtUnread
	case events.ReasonBadToken, events.ReasonBadPairs, events.ReasonBadNamespace, events.ReasonBadBlockSize,
		events.ReasonNotDense, events.ReasonPartialBlock, events.ReasonConflict, events.ReasonBlockSizeMismatch,
		events.ReasonAmbiguous, events.ReasonAdapterUnnamed, events.ReasonSelfParent, events.ReasonOrphanDropped,
		events.ReasonUnknownTier: // the engine may reuse what lies there
		return DoubtRefused
	default:
		return 0
	}
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
	case d == 0:
	case d&^lowering == 0:
		b.Kind = Lower
	case d&^raising == 0:
		b.Kind = Upper
	default:
		b.Kind = Estimate
	}
	return b
}

// doubt sets or lifts reasons. Callers are the goroutine that writes the ledger.
func (l *Ledger) doubt(d Doubt, on bool) {
	switch have := l.doubts.Load() & uint32(d); {
	case on && have != uint32(d):
		l.doubts.Or(uint32(d))
	case !on && have != 0:
		l.doubts.And(^uint32(d))
	}
}

// precede puts into m what is to be read before the source's blocks are: its freshness, and the doubts that there are.
func (l *Ledger) precede(m *Match) {
	l.freshness(&m.Freshness)
	m.Bound.Doubt = l.doubtsNow()
}

// doubtsNow are the doubts about the source and its stream.
func (l *Ledger) doubtsNow() Doubt {
	d := Doubt(l.doubts.Load())
	switch l.state() {
	case events.StateStale:
		d |= DoubtStale
	case events.StateConnecting, events.StateReplaying:
		if l.fresh.heard.Load() != 0 {
			d |= DoubtBehind
		}
	}
	return d
}

// bound is the bound of answers to q about the source, whose blocks were read with groups t after precede had found doubts
// (invariant 13).
func (l *Ledger) bound(q *Query, t *table, before Doubt) Bound {
	d := before | l.doubtsNow() | t.unsure | l.foreign(q)
	other := func(size int) bool { return size != q.KeySize }
	if q.Keys != nil && (l.src.PairKeys || slices.ContainsFunc(l.blockSizes(), other)) {
		d |= DoubtBlockSize
	}
	return newBound(d)
}

// foreign says what of the query's namespace and content the source's events cannot show.
func (l *Ledger) foreign(q *Query) (d Doubt) {
	if q.MediaUnnamed || len(q.Features) > 0 && l.src.Engine != events.EngineVLLM {
		d |= DoubtMedia // other engines put images into the tokens
	}
	switch {
	case l.src.Engine == events.EngineSGLang && witnessed(l.src):
		if q.Adapter != "" && q.AdapterID == "" || q.Keys != nil {
			d |= DoubtNamespace
		}
	case l.src.Engine == events.EngineSGLang && q.Extra != "":
		d |= DoubtNamespace
	case l.src.Engine == events.EngineTRTLLM && q.Adapter != "":
		d |= DoubtNamespace | DoubtUnread // its stores name no adapter
	}
	return d
}

// dropsBlock says whether the engine gives up the last block that it matched (rule 7).
func dropsBlock(src *events.Source) bool {
	return src.SpeculativeEAGLE && src.Engine == events.EngineVLLM
}

// Joined says with which batch the known history of the source begins; complete means with the first there was.
func (l *Ledger) Joined(complete bool) {
	l.x.mu.Lock()
	defer l.x.mu.Unlock()
	l.doubt(DoubtHistory, !complete)
}

// Reset drops what the source held: its engine started again (rule 11).
func (l *Ledger) Reset() {
	l.stats.resets.Add(1)
	l.drop(true)
	l.fresh.heard.Store(0) // nothing was heard of the new life yet
}

// Gap says that n batches are lost for good. What was held is dropped, or kept and flagged (rule 11).
func (l *Ledger) Gap(n uint64) {
	l.stats.gaps.Add(1)
	l.stats.lost.Add(n)
	if l.x.opts.KeepOnGap {
		l.x.mu.Lock()
		l.doubt(DoubtGap|DoubtHistory, true)
		l.x.mu.Unlock()
		return
	}
	l.drop(false)
}

func (l *Ledger) drop(restarted bool) {
	l.x.mu.Lock()
	defer l.x.mu.Unlock()
	if l.closed {
		return
	}
	l.doubt(DoubtHistory, true) // before: nothing held must not look like a fact
	l.clearLocked()
	l.doubt(passing, false)
	l.fresh.until.Store(0)
	if restarted {
		l.offloads, l.outlived = false, false
		l.doubt(DoubtTiers, false)
	}
	l.x.version.Add(1)
}
