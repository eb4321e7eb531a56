package zmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/kvscout/kvscout/events"
)

// ReplayOptions say what to ask which replay endpoint for. Zero means the default, but for From.
type ReplayOptions struct {
	// Endpoint is the publisher's ROUTER.
	Endpoint events.Endpoint
	// From is the first sequence number wanted.
	From uint64
	// MaxFrame, MaxFrames, MaxMessage and Handshake are as in Options.
	MaxFrame, MaxFrames, MaxMessage int
	Handshake                       time.Duration
	// Control is as in Options.
	Control Control
	// IdleTimeout is how long to wait for the next reply. Publishers answer between two batches and may take 0.1 s.
	IdleTimeout time.Duration
	// MaxBatches bounds the replies of one request.
	MaxBatches int
}

// Result says what one replay request brought.
type Result struct {
	// First and Last are sequence numbers of the first and last batch; they mean nothing when Count is 0.
	First, Last uint64
	// Count is the number of batches handed over.
	Count int
	// Ended says that the publisher said it has no more. Batches may be missing all the same, in the middle and at the
	// end: a ROUTER drops silently what a slow reader leaves at its high-water mark.
	Ended bool
	// Rejected counts replies that could not be read, by reason.
	Rejected [events.ReasonCount]int
}

// Replay asks once for the batches from o.From on and hands them to fn as they come, until the publisher says that
// there are no more. The messages are fn's to keep. It errs with ErrOptions, with ErrConnect, with ErrSilent when no
// reply comes in time, with ErrTooManyBatches, with an error of fn, or with ctx's; the Result counts in any case. Numbers
// are not checked: a replay may start later than asked and have holes.
func Replay(ctx context.Context, o ReplayOptions, fn func(events.Message) error) (Result, error) {
	lim, err := o.limits()
	if err != nil {
		return Result{}, err
	}
	l, err := dial(ctx, o.Endpoint.Network, o.Endpoint.Address, zmq4.Dealer, lim)
	if err != nil {
		return Result{}, cause(ctx, err)
	}
	defer l.close()
	stop := context.AfterFunc(ctx, l.close) // ends the blocking read; stopped when Replay returns
	defer stop()
	if err := l.send(events.ReplayRequest(o.From)...); err != nil {
		return Result{}, cause(ctx, fmt.Errorf("%w: %w", ErrConnect, err))
	}
	var r Result
	err = r.collect(l, orInt(o.MaxBatches, DefaultMaxBatches), fn)
	return r, cause(ctx, err)
}

// cause prefers the end of ctx to the error that it makes of a read.
func cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (o ReplayOptions) limits() (limits, error) {
	lim := limits{
		frame: o.MaxFrame, frames: o.MaxFrames, message: o.MaxMessage,
		idle: orDuration(o.IdleTimeout, DefaultIdleTimeout), handshake: o.Handshake, control: o.Control,
	}.withDefaults()
	if o.Endpoint.Address == "" || o.Endpoint.Bind {
		return lim, fmt.Errorf("%w: replay endpoint %q cannot be dialled", ErrOptions, o.Endpoint.Address)
	}
	if o.MaxBatches < 0 || lim.idle < 0 || lim.handshake < 0 {
		return lim, fmt.Errorf("%w: negative replay limit", ErrOptions)
	}
	return lim, lim.validate()
}

// collect reads replies until the end, at most limit of them.
func (r *Result) collect(l *link, limit int, fn func(events.Message) error) error {
	for range limit {
		frames, err := l.recv()
		if err != nil {
			return err
		}
		m, end, err := events.ParseReply(frames)
		if err != nil {
			r.Rejected[replyReason(err)]++
			continue
		}
		if end {
			r.Ended = true
			return nil
		}
		if r.Count == 0 {
			r.First = m.Seq
		}
		r.Last = m.Seq
		r.Count++
		if err := fn(m); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %d without an end", ErrTooManyBatches, limit)
}

// replyReason names the counter of a reply that events.ParseReply refused.
func replyReason(err error) events.Reason {
	if errors.Is(err, events.ErrSequence) {
		return events.ReasonBadSequence
	}
	return events.ReasonBadReply
}
