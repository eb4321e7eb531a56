package render

import (
	"context"
	"errors"
)

// errQueueFull is a gate with no room to wait.
var errQueueFull = errors.New("queue is full")

// gate lets a bounded number of calls through and a bounded number wait. Both channels hold one element per call.
type gate struct {
	slots, queue chan struct{}
}

func newGate(slots, queue int) *gate {
	return &gate{slots: make(chan struct{}, slots), queue: make(chan struct{}, queue)}
}

// enter takes a slot. It errs with errQueueFull or, after waiting, with the context's error.
func (g *gate) enter(ctx context.Context) error {
	select {
	case g.slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case g.queue <- struct{}{}:
	default:
		return errQueueFull
	}
	defer func() { <-g.queue }()
	select {
	case g.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave gives the slot back.
func (g *gate) leave() { <-g.slots }
