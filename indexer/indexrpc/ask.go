package indexrpc

import (
	"context"
	"errors"

	"github.com/kvscout/kvscout/events/discover"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer/ingest"
)

// asks says whether the worker of a spec is asked about itself: it has a URL, and something is left out that is needed.
func asks(spec *kvscoutv1.WorkerSpec) bool {
	return spec.GetUrl() != "" && (spec.GetEventEndpoint() == "" || spec.GetEngine() == "" || spec.GetModel() == "")
}

// registerAsked registers a worker as its own answer fills in what w leaves out. It errs with an *Error, or ctx's error.
func (s *Service) registerAsked(ctx context.Context, w ingest.Worker) (replaced bool, err error) {
	if s.opts.Describe == nil {
		return false, badWorkerf("this server asks no workers; state event_endpoint, engine and model")
	}
	stated := discover.Worker{
		ID: w.ID, URL: w.URL, Role: w.Role.String(), Model: w.Model, Aliases: w.Aliases, Adapters: w.Adapters,
		Fingerprint: w.Fingerprint, Sources: w.Sources, // not Labels: those of a call are not interpreted
	}
	found, err := s.opts.Describe(ctx, stated)
	switch {
	case errors.Is(err, discover.ErrWorker):
		return false, badWorkerf("%w", err)
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil:
		return false, Failf(ReasonWorkerDown, "asking worker %s: %v", w.ID, err) // %v: a timeout in it is not the caller's
	}
	out, err := ingest.FromDiscovery(found)
	if err != nil {
		return false, err
	}
	out.Labels = w.Labels
	return s.fleet.RegisterAsked(out, stated)
}
