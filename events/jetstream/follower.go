package jetstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kvscout/kvscout/events"
)

// Target is the index behind a Follower. Its methods are called from the goroutine of Run.
type Target interface {
	// Describe makes a worker known, or changes it. An error is logged and the worker left out.
	Describe(m Member) error
	// Forget takes a worker out.
	Forget(worker string)
	// Sink is where the batches of a source go, nil for a source that is not to be followed. Another sink than before
	// means that what the source held is gone.
	Sink(worker string, rank int) events.Sink
}

// Follower reads the log for one replica.
type Follower struct {
	log    *Log
	target Target
	n      followerCounters

	mu      sync.Mutex // guards the fields below; held while a record is taken
	created time.Time
	next    uint64 // number of the record to be read next
	sources map[place]*source
	members map[string]*member
	goal    uint64    // the log's last record when the session began
	failed  time.Time // since when the log cannot be read; zero while it can
	resumed bool      // by StartFrom, and the log has not shown yet that it is the cursor's
	known   uint64    // up to this record, workers and sources were resumed
	trimmed bool      // records behind the cursor are gone, perhaps of workers
}

// Follow prepares to read the log from its beginning, or from where StartFrom says.
func (l *Log) Follow(target Target) *Follower {
	return &Follower{
		log: l, target: target, next: 1,
		sources: make(map[place]*source), members: make(map[string]*member),
	}
}

const (
	// idle is how long a read waits before states are looked at.
	idle = 250 * time.Millisecond
	// sessionPause is the pause before the log is asked again after a failure.
	sessionPause = 500 * time.Millisecond
)

// Run reads the log until ctx ends and returns ctx's error. It errs with ErrCursor or ErrStream when the log cannot be
// read however often it is tried; after ErrCursor and StartOver it may be called again.
func (f *Follower) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
		err := f.session(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ErrCursor), errors.Is(err, ErrStream):
			f.fail(err)
			return err
		}
		f.log.logger().Debug("log is read anew", "error", err)
		f.mu.Lock()
		if f.failed.IsZero() {
			f.failed = time.Now()
		}
		f.mu.Unlock()
		f.settle(time.Now())
		timer.Reset(sessionPause)
	}
}

// session reads from f.next on until something fails.
func (f *Follower) session(ctx context.Context) error {
	stream, err := f.open(ctx)
	if err != nil {
		return err
	}
	if err := f.describe(ctx, stream); err != nil {
		return err
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: f.next, MaxResetAttempts: 3,
		InactiveThreshold: time.Minute,
	})
	if err != nil {
		return err
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(512))
	if err != nil {
		return err
	}
	defer messages.Stop()
	settled := time.Now()
	for {
		msg, err := messages.Next(jetstream.NextMaxWait(idle))
		now := time.Now()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, nats.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
			f.idle()
		case err != nil:
			return err
		default:
			if err := f.take(msg, now); err != nil {
				return err
			}
		}
		if f.log.unreached(now) > 0 && err != nil {
			f.settle(now)
			return ErrUnreached
		}
		if err != nil || now.Sub(settled) >= idle {
			settled = now
			f.settle(now)
		}
	}
}

// open finds the log, and notes where it ends. A log that was made anew is read from its beginning.
func (f *Follower) open(ctx context.Context) (jetstream.Stream, error) {
	stream, err := f.log.stream(ctx)
	if err != nil {
		return nil, err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	other := !f.created.IsZero() && !f.created.Equal(info.Created) || f.next > info.State.LastSeq+1
	switch {
	case other && f.resumed:
		return nil, fmt.Errorf("%w: it is behind record %d of a log made at %v, and this one was made at %v and ends with record %d",
			ErrCursor, f.next-1, f.created, info.Created, info.State.LastSeq)
	case other:
		f.log.logger().Warn("log was made anew", "before", f.created, "now", info.Created)
		f.doubtLocked()
		f.next, f.known = 1, 0
		for _, s := range f.sources {
			s.record = 0
		}
	case f.resumed && info.State.FirstSeq > f.next:
		f.trimmed = true
	case f.resumed:
		for _, s := range f.sources {
			s.prove()
		}
	}
	f.resumed = false
	f.created, f.goal = info.Created, info.State.LastSeq
	f.n.behind.Store(f.next <= f.goal)
	return stream, nil
}

// take merges one record.
func (f *Follower) take(msg jetstream.Msg, now time.Time) error {
	meta, err := msg.Metadata()
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	seq := meta.Sequence.Stream
	if seq < f.next {
		return nil
	}
	if seq > f.next && f.n.records.Load() > 0 || seq > f.next && f.next > 1 {
		f.n.trimmed.Add(seq - f.next)
		f.log.logger().Warn("records were trimmed from the log before they were read", "from", f.next, "to", seq-1)
		f.doubtLocked()
	}
	f.next, f.failed = seq+1, time.Time{}
	f.n.records.Add(1)
	f.n.bytes.Add(uint64(len(msg.Data())))
	f.n.pending.Store(meta.NumPending)
	f.n.stored.Store(meta.Timestamp.UnixNano())
	f.recordLocked(seq, msg.Subject(), msg.Data(), meta.Timestamp, now)
	f.n.sequence.Store(seq) // last, so that whoever sees it finds the record applied
	late := meta.NumPending > 0 && now.Sub(meta.Timestamp) > f.log.o.MaxLag
	f.n.behind.Store(seq < f.goal || late)
	return nil
}

// idle notes that there is nothing to read.
func (f *Follower) idle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.log.unreached(time.Now()) == 0 {
		f.failed = time.Time{}
		f.n.pending.Store(0)
		f.n.behind.Store(f.next <= f.goal)
	}
}

// doubtLocked notes that records of any source may be missing.
func (f *Follower) doubtLocked() {
	for _, s := range f.sources {
		s.unproven = s.at.Epoch != 0
	}
}

// recordLocked takes what is stored on a subject as record seq.
func (f *Follower) recordLocked(seq uint64, subject string, data []byte, stored, now time.Time) {
	at, err := parseSubject(f.log.prefix, subject)
	var r record
	if err == nil {
		r, err = parseRecord(data)
	}
	if err == nil && (at.rank < 0) != (r.kind >= kindWorker) {
		err = fmt.Errorf("%w: kind %d on subject %.200q", ErrRecord, r.kind, subject)
	}
	if err == nil && at.rank < 0 && seq > f.known {
		err = f.memberLocked(at.worker, &r, stored)
	}
	if err != nil {
		f.n.bad.Add(1)
		f.log.logger().Warn("record is left out", "error", err)
		return
	}
	if at.rank < 0 {
		return
	}
	s := f.sourceLocked(at)
	if s == nil {
		f.n.unknown.Add(1)
		return
	}
	if seq <= s.record { // what the source was restored with has it
		return
	}
	if s.take(&r, stored) {
		s.heard, s.stored = now, stored
		if now.Sub(stored) >= f.log.o.StaleAfter { // of an ingester that may be gone by now
			s.heard = stored
		}
	}
	over, why := f.over(now)
	s.settle(over, why, f.log.o.StaleAfter, now)
}

// sourceLocked is the source at a place, nil for one that is not followed.
func (f *Follower) sourceLocked(at place) *source {
	if s := f.sources[at]; s != nil {
		return s
	}
	if f.members[at.worker] == nil {
		return nil
	}
	sink := f.target.Sink(at.worker, at.rank)
	if sink == nil {
		return nil
	}
	s := &source{sink: sink, lease: f.log.o.Lease}
	f.sources[at] = s
	return s
}

// over is the state of everything, which stands above what ingesters say; StateUnknown for none. Needs f.mu.
func (f *Follower) over(now time.Time) (events.State, error) {
	unreached := f.log.unreached(now)
	if !f.failed.IsZero() {
		unreached = max(unreached, now.Sub(f.failed), 1)
	}
	switch {
	case unreached >= f.log.o.StaleAfter:
		return events.StateStale, ErrUnreached
	case unreached > 0:
		return events.StateConnecting, ErrUnreached
	case f.n.behind.Load():
		return events.StateReplaying, ErrBehind
	default:
		return events.StateUnknown, nil
	}
}

// settle tells states that changed.
func (f *Follower) settle(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	over, why := f.over(now)
	for _, s := range f.sources {
		s.settle(over, why, f.log.o.StaleAfter, now)
	}
}

// fail tells every source that the log will not be read any more.
func (f *Follower) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sources {
		s.settle(events.StateStale, err, f.log.o.StaleAfter, time.Now())
	}
}
