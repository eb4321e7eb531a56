package ingest

import (
	"context"
	"fmt"

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

// Listen prepares to listen to src the way its endpoint asks for: by ZMQ, or by polling; in both where the policy allows
// it, also once names are resolved. It errs with events.ErrSource, or discover.ErrRefused for an address as such.
func Listen(src events.Source, sink events.Sink, o stream.Options, limits events.Limits, policy discover.Policy) (Runner, error) {
	for _, endpoint := range []string{src.Events, src.Replay} {
		if err := policy.CheckEndpoint(endpoint); err != nil {
			return nil, fmt.Errorf("source %q: %w", src.ID(), err)
		}
	}
	if !src.Polled() {
		o.Control = policy.Control
		return stream.New(src, sink, o)
	}
	return poll.New(src, sink, poll.Options{
		StaleAfter: o.StaleAfter, MaxEvent: limits.PayloadBytes, Policy: policy, Logger: o.Logger,
	})
}
