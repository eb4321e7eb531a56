package indexer

import (
	"sync/atomic"
	"time"

	"github.com/kvscout/kvscout/events"
)

// Freshness says how far a source's answers can be trusted to be of now.
type Freshness struct {
	State events.State
	// LastSequence of the stream, when HasSequence.
	LastSequence uint64
	HasSequence  bool
	// LastEvent is when the last message arrived; zero before the first.
	LastEvent time.Time
	// Why is the error behind the state, "" without one.
	Why string
}

// Age is the time since the last message, false before the first.
func (f Freshness) Age(now time.Time) (time.Duration, bool) {
	if f.LastEvent.IsZero() {
		return 0, false
	}
	return max(0, now.Sub(f.LastEvent)), true
}

// fresh holds a ledger's freshness for concurrent readers.
type fresh struct {
	state    atomic.Uint32
	sequence atomic.Uint64
	heard    atomic.Int64 // Unix nanoseconds; 0 before the first message
	why      atomic.Pointer[string]
	ill      atomic.Pointer[string] // what is wrong beside the stream; nil if nothing is known to be
	lag      atomic.Int64           // nanoseconds from the last message's arrival to its being applied
	since    atomic.Int64           // Unix nanoseconds of the last change of state
}

// now is the state, in view of what is known beside the stream (rule 12).
func (f *fresh) now() events.State {
	if f.ill.Load() != nil {
		return events.StateStale
	}
	return events.State(f.state.Load())
}

func (l *Ledger) heard(seq uint64, at time.Time, bytes int) {
	l.fresh.sequence.Store(seq)
	l.fresh.heard.Store(at.UnixNano())
	l.fresh.lag.Store(int64(max(0, time.Since(at))))
	l.stats.bytes.Add(uint64(bytes))
}

func (l *Ledger) setState(s events.State, why error) {
	text := ""
	if why != nil {
		text = why.Error()
	}
	l.fresh.why.Store(&text)
	before := events.State(l.fresh.state.Swap(uint32(s)))
	if before != s {
		l.fresh.since.Store(time.Now().UnixNano())
	}
	if l.src.Events != "" && !connected(before) && connected(s) {
		l.stats.connections.Add(1)
	}
}

// Freshness of the source now.
func (l *Ledger) Freshness() Freshness {
	f := Freshness{State: l.fresh.now()}
	if f.State == events.StateGap && Doubt(l.doubts.Load())&(DoubtHistory|DoubtGap) == 0 {
		f.State = events.StateLive // a clear has made up for what was lost
	}
	if at := l.fresh.heard.Load(); at != 0 {
		f.LastEvent = time.Unix(0, at)
		f.LastSequence, f.HasSequence = l.fresh.sequence.Load(), true
	}
	if why := l.fresh.why.Load(); why != nil {
		f.Why = *why
	}
	if ill := l.fresh.ill.Load(); ill != nil {
		f.Why = *ill
	}
	return f
}

func (l *Ledger) setHealth(why error) {
	var text *string
	if why != nil {
		s := why.Error()
		text = &s
	}
	if was := l.fresh.ill.Swap(text); (was == nil) != (text == nil) {
		l.fresh.since.Store(time.Now().UnixNano())
	}
}

// connected says whether a stream in state s has a connection. One that has, and has heard nothing yet, is unknown.
func connected(s events.State) bool {
	return s == events.StateUnknown || s == events.StateReplaying || s == events.StateLive || s == events.StateGap
}
