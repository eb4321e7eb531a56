package zmq

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-zeromq/zmq4"
)

// settled is how long a connection must have lasted for the next attempt to come at once.
const settled = time.Second

// Dial receives from the publisher at o.Endpoint until ctx ends, connecting again and again. It returns ctx's error, or
// one wrapping ErrOptions at once. h is called from the calling goroutine.
func Dial(ctx context.Context, o Options, h Handler) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if o.Endpoint.Bind {
		return fmt.Errorf("%w: endpoint %s is to be bound, not dialled", ErrOptions, o.Endpoint.Address)
	}
	o = o.withDefaults()
	pause := backoff{min: o.BackoffMin, max: o.BackoffMax}
	for id := uint64(1); ctx.Err() == nil; id++ {
		began := time.Now()
		useful, err := dialOnce(ctx, o, id, h)
		if ctx.Err() != nil {
			break
		}
		if useful || time.Since(began) > o.Handshake+settled {
			pause.reset()
		}
		o.Logger.DebugContext(ctx, "zmq connection ended", "address", o.Endpoint.Address, "error", err)
		pause.wait(ctx)
	}
	return ctx.Err()
}

func dialOnce(ctx context.Context, o Options, id uint64, h Handler) (useful bool, err error) {
	l, err := dial(ctx, o.Endpoint.Network, o.Endpoint.Address, zmq4.Sub, o.limits())
	if err != nil {
		h.Disconnected(0, err)
		return false, err
	}
	return l.deliver(ctx, id, o.Topics, h)
}

// backoff is a pause that doubles from min to max. Each wait is cut by up to half, so that many sources do not all
// dial a restarted host at once.
type backoff struct{ min, max, next time.Duration }

func (b *backoff) reset() { b.next = 0 }

func (b *backoff) wait(ctx context.Context) {
	d := max(b.next, b.min)
	b.next = min(2*d, b.max)
	t := time.NewTimer(d/2 + rand.N(d/2+1))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
