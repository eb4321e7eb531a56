package dashboard

import (
	"context"
	"errors"
	"time"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = 5 * time.Second
)

var (
	errEnded  = errors.New("the server ended the stream")
	errSilent = errors.New("the server sends nothing")
)

// Stream calls StreamStats and hands each answer to take, until ctx or the stream ends. It returns why, never nil.
type Stream func(ctx context.Context, interval time.Duration, take func(*kvscoutv1.Stats)) error

// follow streams until ctx ends, and again whenever the stream broke. send gets an answerMsg for each answer and a
// lostMsg for each break.
func follow(ctx context.Context, opts Options, send func(any)) {
	wait := firstRetry
	for {
		err := streamOnce(ctx, opts, func(stats *kvscoutv1.Stats) {
			wait = firstRetry
			send(answerMsg{stats, time.Now()})
		})
		if ctx.Err() != nil {
			return
		}
		now := time.Now()
		send(lostMsg{err: err, at: now, again: now.Add(wait)})
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, lastRetry)
	}
}

// streamOnce ends a stream that is silent for longer than an answer may take.
func streamOnce(ctx context.Context, opts Options, take func(*kvscoutv1.Stats)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	patience := opts.Interval + opts.Timeout
	timer := time.AfterFunc(patience, func() { cancel(errSilent) })
	defer timer.Stop()
	err := opts.Stream(ctx, opts.Interval, func(stats *kvscoutv1.Stats) {
		timer.Reset(patience)
		take(stats)
	})
	if errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	if err == nil {
		return errEnded
	}
	return err
}
