package stream

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/zmq"
)

const (
	// fetchReplies is how many replies may wait for the sink.
	fetchReplies = 1024
	// dialAttempts is how often a replay endpoint that refuses is tried within one recovery.
	dialAttempts = 3
	dialPause    = 100 * time.Millisecond
	// longAnswer is how many batches of one answer may have filled the publisher's queue for us (ROUTERs hold 1000
	// messages unless told otherwise). It then drops what comes, and has room again when END comes. Shorter answers are
	// doubted only when a live number shows that there was more: behind a busy publisher the next answer always brings
	// something, so asking until one brings nothing would not end.
	longAnswer = 100
)

// errHole stops a replay at a number that is missing in its middle.
var errHole = errors.New("hole in replay")

// errUnusable is an answer of which no reply could be read: it says neither what there is nor that there is nothing.
var errUnusable = errors.New("no reply of the replay could be used")

// reply is what a fetch tells the stream: a batch, or with done set its end.
type reply struct {
	events.Message
	received time.Time
	weight   int64
	// first: it opens the answer to one question. again: the question was not the fetch's first, so it may have been
	// answered by another life of the publisher.
	first, again bool

	done bool
	// ended: the publisher said that it has no more. empty: the last question brought no batch at all.
	ended, empty bool
	// err is why the fetch gave up; nil if ended.
	err error
	// rejected counts replies that were not usable.
	rejected [events.ReasonCount]int
}

// fetch is one recovery: it asks until the publisher says that it has no more, again from where an answer broke off or
// may have lost its tail.
// It runs in a goroutine of its own; the stream's goroutine takes its replies.
type fetch struct {
	options zmq.ReplayOptions
	total   time.Duration
	slots   chan struct{}
	out     chan reply
	limit   int64
	room    *semaphore.Weighted // of limit bytes of batches not yet taken
	// wants is the number of the live message that showed a hole, 0 if none did.
	wants uint64

	// What follows belongs to the fetch's goroutine.
	next     uint64 // the number after the last batch handed over
	got      bool   // whether there was one
	asked    uint64 // start of the question under way
	opened   bool   // whether its first batch was handed over
	taken    int    // how many were
	junk     bool   // whether it brought replies that were not usable
	missing  uint64 // number of a hole already asked for
	holed    bool   // whether there is one
	again    bool
	rejected [events.ReasonCount]int
}

// took gives the room of a reply back.
func (f *fetch) took(r reply) {
	if r.weight > 0 {
		f.room.Release(r.weight)
	}
}

// run does the recovery. When ctx ends it stops without a last word.
func (f *fetch) run(ctx context.Context) {
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		return
	}
	limited, cancel := context.WithTimeout(ctx, f.total)
	defer cancel()
	end := f.questions(limited)
	end.done, end.again, end.rejected = true, f.again, f.rejected
	select {
	case f.out <- end:
	case <-ctx.Done():
	}
}

// questions asks until an answer ended or no progress is made (cases 48 and 128).
func (f *fetch) questions(ctx context.Context) reply {
	for failed := 0; ; {
		had := f.next
		r, err := f.question(ctx)
		switch {
		case r.Ended && f.junk && !f.opened:
			return reply{err: errUnusable}
		case r.Ended && f.cut():
			failed = 0
			continue
		case r.Ended:
			return reply{ended: true, empty: !f.opened}
		case ctx.Err() != nil:
			return reply{err: ctx.Err()}
		case errors.Is(err, errHole) || f.next > had:
			failed = 0
			continue
		}
		failed++
		if !errors.Is(err, zmq.ErrConnect) || failed == dialAttempts || !pause(ctx, dialPause) {
			return reply{err: err}
		}
	}
}

// cut says whether the answer that ended may have lost its tail on the way, and one more may bring it. The first batch
// of an answer is mostly one that was there before.
func (f *fetch) cut() bool { return f.taken >= longAnswer || f.taken > 1 && f.next < f.wants }

// question asks once. After an interruption it asks for the last batch again, to see that the publisher is still the
// same.
func (f *fetch) question(ctx context.Context) (zmq.Result, error) {
	f.asked, f.opened, f.taken, f.junk, f.again = f.next, false, 0, false, f.got
	if f.got {
		f.asked--
	}
	o := f.options
	o.From = f.asked
	r, err := zmq.Replay(ctx, o, func(m events.Message) error { return f.take(ctx, m) })
	for reason, n := range r.Rejected {
		f.rejected[reason] += n
		f.junk = f.junk || n > 0
	}
	return r, err
}

// take hands one batch over. A number missing in the middle of an answer may have been dropped on the way, so the
// answer is broken off there and asked for again, once.
func (f *fetch) take(ctx context.Context, m events.Message) error {
	if m.Seq < f.asked || f.opened && m.Seq < f.next || m.Seq == events.EndSequence {
		f.rejected[events.ReasonBadReply]++
		f.junk = true
		return nil
	}
	if f.opened && m.Seq > f.next && (!f.holed || f.missing != f.next) {
		f.holed, f.missing = true, f.next
		return errHole
	}
	r := reply{Message: m, received: time.Now(), first: !f.opened, again: f.again}
	r.weight = min(max(int64(len(m.Payload)), f.limit/fetchReplies, 1), f.limit)
	if err := f.room.Acquire(ctx, r.weight); err != nil {
		return err
	}
	select {
	case f.out <- r:
	case <-ctx.Done():
		return ctx.Err()
	}
	f.next, f.got, f.opened = m.Seq+1, true, true
	f.taken++
	return nil
}

// pause waits and reports whether ctx still goes on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
