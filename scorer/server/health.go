package server

import (
	"context"
	"sync"
	"time"

	"connectrpc.com/grpchealth"

	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
)

// watchEvery is how often the health that somebody watches is looked at; only changes are sent.
const watchEvery = 200 * time.Millisecond

// health is the state of each service. Rendering has one of its own: scores of token ids need no renderer, so a dead
// renderer takes nothing from the other services.
type health struct {
	*grpchealth.StaticChecker
	renders func() bool
}

func newHealth(opts Options) *health {
	if opts.RenderReady == nil {
		opts.RenderReady = func() bool { return true }
	}
	return &health{StaticChecker: grpchealth.NewStaticChecker(opts.services()...), renders: opts.RenderReady}
}

// Check is the state of one service, or with an empty name of the server.
func (h *health) Check(ctx context.Context, req *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	out, err := h.StaticChecker.Check(ctx, req)
	if err == nil && req.Service == kvscoutv1connect.RenderServiceName && !h.renders() {
		out.Status = grpchealth.StatusNotServing
	}
	return out, err
}

// Watch looks at the health of a service until stop is called: a renderer tells nobody of its changes.
func (h *health) Watch(ctx context.Context, req *grpchealth.CheckRequest, onChange func()) (stop func(), err error) {
	if _, err := h.Check(ctx, req); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // ended by stop, which waits for it
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				onChange()
			case <-done:
				return
			}
		}
	})
	return func() { close(done); wg.Wait() }, nil
}
