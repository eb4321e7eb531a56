package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/kvscout/kvscout/events"
)

// ErrUnknownWorker is a worker that is not registered, ErrUnknownRank a rank that it lacks.
var (
	ErrUnknownWorker = errors.New("unknown worker")
	ErrUnknownRank   = errors.New("unknown rank")
)

// ErrHasEndpoint is a push to a source that is listened to by ZMQ: two writers would mix two orders.
var ErrHasEndpoint = errors.New("source has an endpoint")

// Published says what became of pushed batches.
type Published struct {
	// Applied batches, those of which not all could be read left out, and Duplicates of ones applied before.
	Applied, Duplicates int
	// Rejected counts what this call did not apply, by reason, duplicates left out.
	Rejected map[events.Reason]uint64
	// Gaps are the runs of numbers that were skipped, first and last; Resets how often the numbers fell back.
	Gaps   [][2]uint64
	Resets int
	// Next continues the stream, when HasNext.
	Next    uint64
	HasNext bool
}

// Publish applies raw batches of a source without an endpoint, in order. It errs with ErrUnknownWorker, ErrUnknownRank
// or ErrHasEndpoint.
func (f *Fleet) Publish(worker string, rank int, batches []events.Message) (Published, error) {
	s, err := f.source(worker, rank)
	if err != nil {
		return Published{}, err
	}
	if s.feed == nil || f.followed.Load().has(worker) {
		return Published{}, fmt.Errorf("%w: %s", ErrHasEndpoint, s.ID())
	}
	s.push.Lock()
	defer s.push.Unlock()
	before, unread := s.writer.Rejected(), s.writer.Unread()
	var out Published
	for _, m := range batches {
		if s.Topic != "" && len(m.Topic) > 0 && !bytes.HasPrefix(m.Topic, []byte(s.Topic)) {
			s.writer.Reject(events.ReasonTopicMismatch)
			continue
		}
		next := s.feed.Next()
		switch s.feed.Message(m, time.Now()) {
		case events.StepDuplicate:
			out.Duplicates++
			continue
		case events.StepGap:
			out.Gaps = append(out.Gaps, [2]uint64{next, m.Seq - 1})
		case events.StepReset:
			out.Resets++
		}
		out.Applied++
	}
	out.Next, out.HasNext = s.feed.Next(), s.writer.Ledger().Freshness().HasSequence
	out.Rejected = make(map[events.Reason]uint64)
	after := s.writer.Rejected()
	for r := range after {
		if n := after[r] - before[r]; n > 0 && events.Reason(r) != events.ReasonDuplicate {
			out.Rejected[events.Reason(r)] = n
		}
	}
	out.Applied -= int(s.writer.Unread() - unread)
	return out, nil
}

func (f *Fleet) source(worker string, rank int) (*source, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.workers[worker]
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrUnknownWorker, worker)
	}
	for _, s := range m.sources {
		if s.Rank != rank {
			continue
		}
		return s, nil
	}
	return nil, fmt.Errorf("%w: %s has no rank %d", ErrUnknownRank, worker, rank)
}
