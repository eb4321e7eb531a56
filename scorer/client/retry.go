package client

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"connectrpc.com/connect"
)

// The pause before the second try of a call is random below firstPause; that before each further one below twice as much.
const (
	firstPause = 10 * time.Millisecond
	maxPause   = time.Second
)

// The budget allows a burst of tries, and in the long run one for every ten calls that succeed.
const (
	budgetBurst = 100
	budgetGain  = 0.1
)

// budget bounds the tries of all calls together.
type budget struct {
	mu   sync.Mutex // guards left
	left float64
}

func newBudget() *budget { return &budget{left: budgetBurst} }

func (b *budget) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

func (b *budget) gain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = min(budgetBurst, b.left+budgetGain)
}

// safety says after what a call may be sent again.
type safety bool

const (
	reads   safety = true  // it changes nothing
	changes safety = false // only if nothing was sent
)

// method is a unary method of a server.
type method[Req, Res any] func(*server, context.Context, *connect.Request[Req]) (*connect.Response[Res], error)

// call makes a unary call in as many tries as are allowed.
func call[Req, Res any](ctx context.Context, c *Client, s safety, req *Req, m method[Req, Res]) (*Res, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	for try := 0; ; try++ {
		server, i := c.at()
		res, err := m(server, ctx, connect.NewRequest(req))
		if err == nil {
			c.budget.gain()
			return res.Msg, nil
		}
		err = named(ctx, err)
		if connect.CodeOf(err) == connect.CodeUnavailable {
			c.leave(i)
		}
		if !c.again(ctx, s, try, err) {
			return nil, err
		}
	}
}

// again is whether the call may be tried once more after err; it returns when it is time.
func (c *Client) again(ctx context.Context, s safety, try int, err error) bool {
	if try >= c.opts.Retries || ended(ctx) {
		return false
	}
	if unsent(err) {
		if try+1 < len(c.servers) {
			return true // on to the next server, which has not been asked
		}
	} else if s == changes || !passing(err) {
		return false
	}
	return c.budget.take() && pause(ctx, wait(try, err))
}

// named is err, and UNAVAILABLE if the connection broke: connect calls some of those CANCELED, which nobody did, or UNKNOWN.
func named(ctx context.Context, err error) error {
	if ended(ctx) || connect.IsWireError(err) || connect.CodeOf(err) == connect.CodeUnavailable {
		return err
	}
	var op *net.OpError
	if errors.As(err, &op) || errors.Is(err, io.ErrUnexpectedEOF) || connect.CodeOf(err) == connect.CodeCanceled {
		var named *connect.Error
		if errors.As(err, &named) {
			err = named.Unwrap() // without the other code
		}
		return connect.NewError(connect.CodeUnavailable, err)
	}
	return err
}

// ended is whether ctx is over. A connection that is being made ends by the clock, which may be a moment before ctx does.
func ended(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// unsent is whether no connection was made, so that nothing can have happened.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// passing is whether the same call may succeed later.
func passing(err error) bool {
	switch connect.CodeOf(err) {
	case connect.CodeUnavailable:
		return true
	case connect.CodeResourceExhausted:
		_, ok := RetryAfter(err)
		return ok
	default:
		return false
	}
}

// wait is how long to wait after a try: what the server asks for, and a random time that grows.
func wait(try int, err error) time.Duration {
	limit := min(maxPause, firstPause<<min(try, 16))
	asked, _ := RetryAfter(err)
	return asked + rand.N(limit)
}

// pause waits, or returns false if ctx would end before.
func pause(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
