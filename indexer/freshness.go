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
func (f *Freshness) Age(now time.Time) (time.Duration, bool) {
	if f.LastEvent.IsZero() {
		return 0, false
	}
	return max(0, time.Duration(now.UnixNano()-f.LastEvent.UnixNano())), true // for each source of each answer: Sub takes longer
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
	// until is when a source that was restored, and of which nothing was heard since, is stale; Unix nanoseconds, 0: it is
	// no such source.
	until atomic.Int64
}

func (l *Ledger) heard(seq uint64, at time.Time, bytes int) {
	l.fresh.sequence.Store(seq)
	l.fresh.heard.Store(at.UnixNano())
	l.fresh.lag.Store(int64(max(0, time.Since(at))))
	l.fresh.until.Store(0)
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
func (l *Ledger) Freshness() (f Freshness) {
	l.freshness(&f)
	return f
}

// freshness is Freshness in f, which is zero.
func (l *Ledger) freshness(f *Freshness) {
	f.State = l.state()
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

// state is what the stream told last, unless that has stood for too long, or what is known beside it says otherwise (rule 12).
func (l *Ledger) state() events.State {
	if l.fresh.ill.Load() != nil {
		return events.StateStale
	}
	if u := l.fresh.until.Load(); u != 0 && time.Now().UnixNano() >= u {
		return events.StateStale
	}
	return events.State(l.fresh.state.Load())
}

// connected says whether a stream in state s has a connection. One that has, and has heard nothing yet, is unknown.
func connected(s events.State) bool {
	return s == events.StateUnknown || s == events.StateReplaying || s == events.StateLive || s == events.StateGap
}
