package ingest

import (
	"slices"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

// DefaultReadyGrace is how long configured sources are waited for, unless told otherwise.
const DefaultReadyGrace = 30 * time.Second

// Readiness tells when a service that has just started knows what its configured sources hold. It is safe for concurrent
// use once made.
type Readiness struct {
	index *indexer.Index
	until time.Time
	// awaited are the configured sources that have an endpoint. Those that are pushed to may stay silent for ever.
	awaited []events.Source
	// asked are ids of configured workers that are known by their address only: they have no source until they answered.
	asked []string
	done  chan struct{} // closed by Wait
}

// NewReadiness waits for the sources of workers, and for those of the workers with the ids asked, which discovery has to ask
// first; from now on for at most grace, of which 0 is DefaultReadyGrace.
func NewReadiness(index *indexer.Index, workers []Worker, asked []string, grace time.Duration) *Readiness {
	if grace <= 0 {
		grace = DefaultReadyGrace
	}
	r := &Readiness{index: index, until: time.Now().Add(grace), asked: asked, done: make(chan struct{})}
	for _, w := range workers {
		for _, s := range w.Sources {
			if s.Events != "" {
				r.awaited = append(r.awaited, s)
			}
		}
	}
	return r
}

// Waiting lists the sources that are still waited for: those that are neither replayed nor lost for good, while their
// grace lasts. A worker that has no source yet stands for itself. Once it has been empty it stays so.
func (r *Readiness) Waiting(now time.Time) []events.Source {
	select {
	case <-r.done:
		return nil
	default:
	}
	if !now.Before(r.until) {
		return nil
	}
	states := make(map[string]events.State)
	var out []events.Source
	answered := make(map[string]bool)
	for _, l := range r.index.Ledgers() {
		src, state := l.Source(), l.Freshness().State
		states[src.ID()], answered[src.Worker] = state, true
		if slices.Contains(r.asked, src.Worker) && src.Events != "" && !settled(state) {
			out = append(out, src)
		}
	}
	for _, id := range r.asked {
		if !answered[id] {
			out = append(out, events.Source{Worker: id})
		}
	}
	for _, s := range r.awaited {
		if state, ok := states[s.ID()]; ok && !settled(state) {
			out = append(out, s)
		}
	}
	return out
}

// settled says whether a source in this state has told all it will: it is live, or what is missing cannot be fetched. A
// source that left is no longer waited for.
func settled(s events.State) bool { return s == events.StateLive || s == events.StateGap }

// readyTick is how often sources are looked at while some are waited for.
const readyTick = 20 * time.Millisecond

// Wait returns when no source is waited for any more, or false when stop is closed before. It is called once.
func (r *Readiness) Wait(stop <-chan struct{}) bool {
	ticker := time.NewTicker(readyTick)
	defer ticker.Stop()
	for now := time.Now(); len(r.Waiting(now)) > 0; {
		select {
		case <-stop:
			return false
		case now = <-ticker.C:
		}
	}
	close(r.done)
	return true
}
