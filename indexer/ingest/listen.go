package ingest

import (
	"context"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/discover"
	"github.com/kvscout/kvscout/events/poll"
	"github.com/kvscout/kvscout/events/stream"
)

// Runner is the life of one source with an endpoint.
type Runner interface {
	// Run feeds the sink until ctx ends.
	Run(ctx context.Context) error
}

// Listen prepares to listen to src the way its endpoint asks for: by ZMQ, or by polling where the
// policy allows it. It errs with events.ErrSource.
func Listen(src events.Source, sink events.Sink, o stream.Options, limits events.Limits, policy discover.Policy) (Runner, error) {
	if !src.Polled() {
		return stream.New(src, sink, o)
	}
	return poll.New(src, sink, poll.Options{
		StaleAfter: o.StaleAfter, MaxEvent: limits.PayloadBytes, Policy: policy, Logger: o.Logger,
	})
}
