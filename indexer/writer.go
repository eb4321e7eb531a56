package indexer

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kvscout/kvscout/events"
)

// Writer turns one stream's payloads into changes of the index: it is the events.Sink behind which the index lies.
// Batches may name another rank than the stream's; the rank on the wire wins, and each rank keeps a ledger of its own.
// Like every sink it is called from one goroutine at a time; only Close may come from another.
type Writer struct {
	x       *Index
	src     events.Source
	limits  events.Limits
	decoder *events.Decoder
	batch   events.Batch
	main    *Ledger
	// partial: a rank that is heard of from now on may have been heard of before, by who had read everything.
	partial atomic.Bool
	// unread counts payloads of which not all could be read.
	unread atomic.Uint64

	// cursor is behind the batch applied last, if applied; restored: that was before Restore; buffered is what the decoder
	// remembers of each rank. All are guarded by the stripe's mu, so that they are the books'.
	cursor            events.Cursor
	applied, restored bool
	buffered          map[int]events.BufferedRank
	// wasPartial is partial as it was restored. It counts once the source is proven, which it needs to be while unproven.
	wasPartial bool
	unproven   atomic.Bool

	mu     sync.Mutex      // guards ranks, ceded, closed and ill; taken before the stripe's
	ranks  map[int]*Ledger // of other ranks than the stream's
	ceded  map[int]bool    // ranks that were given up by Cede; nil if none was
	closed bool
	ill    error // what Health noted last
}

// maxWireRanks bounds the ranks that one stream may name beside its own.
const maxWireRanks = 1024

// NewWriter opens the source. It errs with ErrSourceExists.
func (x *Index) NewWriter(src events.Source, limits events.Limits) (*Writer, error) {
	l, err := x.Open(src)
	if err != nil {
		return nil, err
	}
	w := &Writer{
		x: x, src: src, limits: limits, decoder: events.NewSourceDecoder(src, limits), main: l, ranks: make(map[int]*Ledger),
		buffered: make(map[int]events.BufferedRank),
	}
	w.partial.Store(true)
	return w, nil
}

// Ledger is the book of the stream's own rank.
func (w *Writer) Ledger() *Ledger { return w.main }

// Apply decodes a payload and applies it.
func (w *Writer) Apply(seq uint64, payload []byte, received time.Time) {
	err := w.decoder.Decode(payload, &w.batch)
	l := w.of(&w.batch)
	if err != nil {
		reason := events.ReasonBadPayload
		if errors.Is(err, events.ErrTooLarge) {
			reason = events.ReasonTooLarge
		}
		w.unread.Add(1)
		w.batch.Rejects = append(w.batch.Rejects, reason)
		if !w.batch.HasRank { // it could be any rank's
			w.partial.Store(true)
			w.each(func(o *Ledger) { o.doubt(doubtOf(reason), true) })
		}
	}
	w.main.x.mu.Lock()
	l.applyBatchLocked(&w.batch)
	first := w.restored
	w.cursor, w.applied, w.restored = events.CursorAt(seq, payload, received), true, false
	if r, ok := w.decoder.Buffered(w.batch.Rank); ok {
		w.buffered[r.Rank] = r
	}
	w.main.x.mu.Unlock()
	if first {
		w.each(func(o *Ledger) { o.fresh.until.Store(0) })
	}
	// Last, so that whoever sees the number finds the batch applied.
	w.main.heard(seq, received, len(payload))
	if l != w.main {
		l.heard(seq, received, 0)
	}
}

// of is the ledger of the batch's rank.
func (w *Writer) of(b *events.Batch) *Ledger {
	if !b.HasRank || b.Rank == w.src.Rank {
		return w.main
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if l, ok := w.ranks[b.Rank]; ok {
		return l
	}
	src := w.src
	src.Rank = b.Rank
	if !w.closed && !w.ceded[b.Rank] && len(w.ranks) < maxWireRanks && b.Rank >= 0 {
		if l, err := w.x.Open(src); err == nil {
			l.doubt(DoubtHistory, w.partial.Load())
			l.setState(events.State(w.main.fresh.state.Load()), nil)
			l.setHealth(w.ill)
			w.ranks[b.Rank] = l
			return l
		}
	}
	// Another stream owns that rank: its own events are the ones to believe.
	w.main.Reject(events.ReasonRankUnknown)
	b.Events, b.Rejects = nil, nil
	return w.main
}

// Cede gives up a rank beside the stream's own, for good: it has a stream of its own from now on. What batches that named it
// have stored is dropped.
func (w *Writer) Cede(rank int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ceded == nil {
		w.ceded = make(map[int]bool)
	}
	w.ceded[rank] = true
	if l, ok := w.ranks[rank]; ok {
		delete(w.ranks, rank)
		l.Close()
	}
}

// Feeds says whether the books of l are this writer's.
func (w *Writer) Feeds(l *Ledger) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return l == w.main || w.ranks[l.src.Rank] == l
}

func (w *Writer) each(do func(*Ledger)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do(w.main)
	for _, l := range w.ranks {
		do(l)
	}
}

// Unread counts the payloads of which not all could be read.
func (w *Writer) Unread() uint64 { return w.unread.Load() }

// Rejected counts by events.Reason what was not applied, of whatever rank.
func (w *Writer) Rejected() (sum [events.ReasonCount]uint64) {
	w.each(func(l *Ledger) {
		for r := range sum {
			sum[r] += l.stats.rejected[r].Load()
		}
	})
	return sum
}

// Reset drops what the source held.
func (w *Writer) Reset() {
	w.partial.Store(true)
	w.each((*Ledger).Reset)
	w.main.x.mu.Lock()
	clear(w.buffered)
	w.applied, w.restored = false, false // after: no cursor may stand for books that are another life's
	w.main.x.mu.Unlock()
}

// Joined notes where the known history begins.
func (w *Writer) Joined(_ uint64, complete bool) {
	w.partial.Store(!complete)
	w.each(func(l *Ledger) { l.Joined(complete) })
}

// Gap notes that batches from..to are lost.
func (w *Writer) Gap(from, to uint64) {
	w.partial.Store(true)
	w.each(func(l *Ledger) { l.Gap(to - from + 1) })
}

// State notes a change of state.
func (w *Writer) State(s events.State, why error) {
	w.each(func(l *Ledger) { l.setState(s, why) })
}

// Health notes what is wrong with the worker beside its stream, nil if nothing is known to be. While something is, the
// source is stale. It may be called from any goroutine.
func (w *Writer) Health(why error) {
	w.mu.Lock()
	w.ill = why
	w.mu.Unlock()
	w.each(func(l *Ledger) { l.setHealth(why) })
}

// Empty drops what the source is known to hold, on somebody's word that its engine holds nothing. What that word is worth
// only the engine's next clear shows, so that until then the history counts as incomplete. It may be called from any
// goroutine.
func (w *Writer) Empty() { w.each(func(l *Ledger) { l.drop(false) }) }

// Reject counts something not applied.
func (w *Writer) Reject(r events.Reason) { w.main.Reject(r) }

// Replayed counts batches fetched by replay.
func (w *Writer) Replayed(n int) { w.main.stats.replayed.Add(uint64(max(n, 0))) }

// Close takes the source out of the index. What is done to the writer afterwards goes nowhere.
func (w *Writer) Close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.each((*Ledger).Close)
}
