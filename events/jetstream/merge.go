package jetstream

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/kvscout/kvscout/events"
)

const (
	// recentMessages is how many messages back a payload is recognised, by which a late ingester's epoch is found to be
	// the life at hand.
	recentMessages = 256
	// pastEpochs is how many lives that ended are remembered, maxNames how many names one life may have.
	pastEpochs = 8
	maxNames   = 8
)

var (
	// ErrTrimmed stands behind StateReplaying while records went from the log before they were read.
	ErrTrimmed = errors.New("records were trimmed from the log before they were read")
	// ErrSilent stands behind StateStale of a source that no ingester tells anything of.
	ErrSilent = errors.New("no ingester has told of it")
	// ErrLeft stands behind StateConnecting of a source whose ingester stopped listening.
	ErrLeft = errors.New("its ingester has left")
	// ErrBehind stands behind StateReplaying while the replica has records to read.
	ErrBehind = errors.New("the log has records to read")
	// ErrUnreached stands behind a state while the log cannot be reached.
	ErrUnreached = errors.New("the log is not reached")
)

// source is what a Follower knows of one source. It merges what its ingesters tell.
type source struct {
	sink  events.Sink
	lease time.Duration

	at    Position
	names []uint64 // epochs that mean the life at hand, at.Epoch among them
	past  []uint64
	seen  [recentMessages]struct{ seq, sum uint64 }

	// leader is the ingester whose message or reset was taken last, and whose state therefore counts; led is when it spoke
	// last, by the log's clock.
	leader   uint64
	led      time.Time
	lossy    bool // messages of this life were lost
	unproven bool // records of it may have been trimmed
	state    events.State
	why      string    // behind state, as the ingester told it
	heard    time.Time // when a record last came, by our clock
	stored   time.Time // and when that was stored, by the log's

	record uint64 // up to this one of the log, the source has been told everything
	proven func() // of a sink that was restored, until that is proven or is not to be

	told    events.State // to the sink
	toldWhy string
}

// take merges a record that was stored at the given time. It says whether the record told anything of the life at hand.
func (s *source) take(r *record, stored time.Time) bool {
	silent := s.leader != 0 && stored.Sub(s.led) > s.lease
	switch {
	case r.kind == kindMessage:
		return s.message(r, stored, silent)
	case r.kind == kindState:
		return s.report(r, stored, silent)
	case r.kind == kindReset && (r.ingester == s.leader || s.leader == 0):
		s.end()
		s.lead(r, stored)
		return true
	case r.kind == kindClosed && r.ingester == s.leader:
		s.state, s.why = events.StateConnecting, ErrLeft.Error()
		s.led = time.Time{} // whoever comes next takes over
		return true
	}
	return false
}

func (s *source) lead(r *record, stored time.Time) { s.leader, s.led = r.ingester, stored }

// message takes a message: the next one of the life at hand, the first of a new life, or none.
func (s *source) message(r *record, stored time.Time, silent bool) bool {
	sum := xxhash.Sum64(r.body)
	if !slices.Contains(s.names, r.epoch) && s.same(r, sum) && len(s.names) < maxNames {
		s.names = append(s.names, r.epoch)
	}
	switch {
	case slices.Contains(s.names, r.epoch):
		if r.seq <= s.at.Last {
			if r.ingester == s.leader {
				s.led = stored
			}
			s.sink.Reject(events.ReasonDuplicate)
			return true
		}
		if r.seq > s.at.Last+1 {
			s.lose(s.at.Last+1, r.seq-1)
		}
	case !silent && (slices.Contains(s.past, r.epoch) || s.at.Epoch != 0 && !r.complete && r.ingester != s.leader):
		// A life that ended, or one of which this ingester has not heard the beginning.
		s.sink.Reject(events.ReasonStalePublisher)
		return false
	default:
		s.begin(r)
	}
	s.prove()
	s.sink.Apply(r.seq, r.body, r.time)
	s.at.Last, s.at.Sum = r.seq, sum
	s.remember(r.seq, sum)
	s.lead(r, stored)
	return true
}

// same says whether a message of an epoch not known is one of the life at hand: it was applied already, or what was
// applied last is what its ingester heard before it.
func (s *source) same(r *record, sum uint64) bool {
	if s.at.Epoch == 0 {
		return false
	}
	if at := s.seen[r.seq%recentMessages]; at.sum == sum && at.seq == r.seq && r.seq <= s.at.Last {
		return true
	}
	return r.linked && r.seq == s.at.Last+1 && r.link == s.at.Sum
}

func (s *source) remember(seq, sum uint64) {
	s.seen[seq%recentMessages] = struct{ seq, sum uint64 }{seq, sum}
}

// begin starts the life that r's message belongs to.
func (s *source) begin(r *record) {
	empty := s.at.Empty
	if s.at.Epoch != 0 {
		s.end()
	}
	s.at = Position{Epoch: r.epoch}
	s.names = []uint64{r.epoch}
	switch {
	case empty && (r.complete || r.seq == 0): // told already
	case empty:
		s.lose(0, r.seq-1)
	default:
		s.sink.Joined(r.seq, r.complete)
	}
}

// end ends the life at hand: its engine started again, or cannot be followed any further.
func (s *source) end() {
	if s.at != (Position{}) {
		s.sink.Reset()
	}
	s.past = append(s.past, s.names...)
	if n := len(s.past) - pastEpochs; n > 0 {
		s.past = slices.Delete(s.past, 0, n)
	}
	s.at, s.names, s.lossy, s.unproven, s.proven = Position{}, nil, false, false, nil
}

// lose tells that messages are gone.
func (s *source) lose(from, to uint64) {
	s.lossy, s.proven = true, nil
	s.sink.Gap(from, to)
	s.sink.Joined(to+1, false)
}

// report takes the state of the source, and how far its ingester has heard it.
func (s *source) report(r *record, stored time.Time, silent bool) bool {
	known := slices.Contains(s.names, r.epoch)
	if known && r.hasSeq {
		if r.seq > s.at.Last {
			s.lose(s.at.Last+1, r.seq)
			s.at.Last, s.at.Sum = r.seq, 0
		}
		if r.seq == s.at.Last {
			s.prove()
		}
	}
	if s.at == (Position{}) && r.epoch == 0 && r.complete && r.state == events.StateLive {
		s.at.Empty = true
		s.sink.Joined(0, true)
	}
	if r.ingester != s.leader && s.leader != 0 {
		if !silent {
			return known
		}
		if s.at.Epoch != 0 && !known {
			return false // it tells of a life that nothing shows to be ours
		}
	}
	s.lead(r, stored)
	s.state, s.why = r.state, strings.ToValidUTF8(string(r.body), "?")
	return true
}

// judge is the state to tell. over is the state of everything, which stands above what an ingester says; StateUnknown
// for none.
func (s *source) judge(over events.State, why error, staleAfter time.Duration, now time.Time) (events.State, string) {
	text := ""
	if why != nil {
		text = why.Error()
	}
	switch {
	case over != events.StateUnknown:
		return over, text
	case s.leader == 0 && s.at == (Position{}):
		return events.StateUnknown, ""
	case !s.heard.IsZero() && now.Sub(s.heard) >= staleAfter:
		return events.StateStale, ErrSilent.Error()
	case s.unproven:
		return events.StateReplaying, ErrTrimmed.Error()
	case s.lossy && s.state == events.StateLive:
		return events.StateGap, s.why
	default:
		return s.state, s.why
	}
}

// settle tells the sink a state that is new.
func (s *source) settle(over events.State, why error, staleAfter time.Duration, now time.Time) {
	state, text := s.judge(over, why, staleAfter, now)
	if state == s.told && text == s.toldWhy {
		return
	}
	s.told, s.toldWhy = state, text
	if text == "" {
		s.sink.State(state, nil)
		return
	}
	s.sink.State(state, errors.New(text))
}
