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

// ask fills in what w leaves out from the worker's own answer. It errs with an *Error, or ctx's error.
func (s *Service) ask(ctx context.Context, w ingest.Worker) (ingest.Worker, error) {
	if s.opts.Describe == nil {
		return w, badWorkerf("this server asks no workers; state event_endpoint, engine and model")
	}
	found, err := s.opts.Describe(ctx, discover.Worker{
		ID: w.ID, URL: w.URL, Role: w.Role.String(), Model: w.Model, Aliases: w.Aliases, Adapters: w.Adapters,
		Fingerprint: w.Fingerprint, Sources: w.Sources, // not Labels: those of a call are not interpreted
	})
	switch {
	case errors.Is(err, discover.ErrWorker):
		return w, badWorkerf("%w", err)
	case ctx.Err() != nil:
		return w, ctx.Err()
	case err != nil:
		return w, Failf(ReasonWorkerDown, "asking worker %s: %v", w.ID, err) // %v: a timeout in it is not the caller's
	}
	out, err := ingest.FromDiscovery(found)
	out.Labels = w.Labels
	return out, err
}
