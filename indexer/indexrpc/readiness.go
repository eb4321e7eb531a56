package indexrpc

import (
	"time"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// maxNamed bounds the sources that Readiness names.
const maxNamed = 256

// readiness sums up how ready the service is, from what its sources say.
func (s *Service) readiness(sources []*kvscoutv1.SourceStats, now time.Time) *kvscoutv1.Readiness {
	out := &kvscoutv1.Readiness{State: kvscoutv1.ServiceState_SERVICE_STATE_READY}
	for _, src := range sources {
		id := events.Source{Worker: src.GetWorkerId(), Rank: int(src.GetRank())}.ID()
		if src.GetFreshness().GetState() != kvscoutv1.FreshnessState_FRESHNESS_STATE_LIVE && len(out.Degraded) < maxNamed {
			out.Degraded = append(out.Degraded, id)
		}
		if src.GetAccuracy().GetFlagged() && len(out.Flagged) < maxNamed {
			out.Flagged = append(out.Flagged, id)
		}
	}
	if len(out.Degraded)+len(out.Flagged) > 0 {
		out.State = kvscoutv1.ServiceState_SERVICE_STATE_DEGRADED
	}
	if s.opts.Waiting != nil {
		for _, src := range s.opts.Waiting(now) {
			if len(out.Waiting) < maxNamed {
				out.Waiting = append(out.Waiting, src.ID())
			}
			out.State = kvscoutv1.ServiceState_SERVICE_STATE_STARTING
		}
	}
	if s.draining.Load() {
		out.State = kvscoutv1.ServiceState_SERVICE_STATE_DRAINING
	}
	return out
}

// Ready says whether calls may be sent to a service in that state: a degraded one answers too, and says what it lacks.
func Ready(s kvscoutv1.ServiceState) bool {
	return s == kvscoutv1.ServiceState_SERVICE_STATE_READY || s == kvscoutv1.ServiceState_SERVICE_STATE_DEGRADED
}

// Drain says that the service is shutting down; answers show it.
func (s *Service) Drain() { s.draining.Store(true) }
