package ingest

import (
	"context"
	"slices"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/discover"
)

// call is how a caller named a worker that is asked about itself.
type call struct {
	// stated is what the caller said of it. Its Known is what the worker was known as then, and tells this call from
	// others of the same worker.
	stated discover.Worker
	// without are the ranks that a call has taken out since.
	without []int
}

// RegisterAsked is Register of a worker that was asked about itself: stated is what the caller said of it, w what it is
// with its answer. Called brings it to discovery, which asks it again and again, until it is registered otherwise or leaves.
func (f *Fleet) RegisterAsked(w Worker, stated discover.Worker) (replaced bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if replaced, err = f.registerLocked(w, false, nil); err != nil {
		return replaced, err
	}
	m := f.workers[w.ID]
	stated.Labels = nil // those of a call are not interpreted
	f.callLocked(m, &call{stated: stated})
	return replaced, nil
}

// callLocked notes how a worker was called by now; nil if it is not to be asked. Needs f.mu.
func (f *Fleet) callLocked(m *member, c *call) {
	if m.configured = false; m.call == nil && c == nil {
		return
	}
	if m.call = c; c != nil {
		known := m.discovered()
		c.stated.Known = &known
	}
	f.recall()
}

// restoreCall lets a worker of a snapshot be asked again, if it was.
func (f *Fleet) restoreCall(s savedWorker) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.workers[s.Worker.ID]; m != nil && s.Stated != nil && s.Stated.ID == s.Worker.ID {
		f.callLocked(m, &call{stated: *s.Stated, without: s.Without})
	}
}

// recall lets Called report anew.
func (f *Fleet) recall() {
	select {
	case f.called <- struct{}{}:
	default: // it is about to
	}
}

// discovered is the worker as discovery would tell it, labels aside.
func (w Worker) discovered() discover.Worker {
	return discover.Worker{
		ID: w.ID, URL: w.URL, Role: w.Role.String(), Model: w.Model, Aliases: w.Aliases, Adapters: w.Adapters,
		Fingerprint: w.Fingerprint, Sources: slices.Clone(w.Sources),
	}
}

// Called is the discoverer of the workers of RegisterAsked. It is for a discovery of its own, since other discoverers do
// not change what is a caller's (invariant 6); Refreshed and Health take what that finds out.
func (f *Fleet) Called() discover.Discoverer { return caller{f} }

type caller struct{ f *Fleet }

// Name implements discover.Discoverer.
func (c caller) Name() string { return "calls" }

// Run implements discover.Discoverer.
func (c caller) Run(ctx context.Context, r discover.Reporter) error {
	for {
		r.Workers(c.f.stated())
		select {
		case <-c.f.called:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// stated lists what callers said of the workers that are asked.
func (f *Fleet) stated() []discover.Worker {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := []discover.Worker{}
	for _, m := range f.workers {
		if m.call != nil {
			list = append(list, m.call.stated)
		}
	}
	return list
}

// Refreshed brings the workers of Called to what they tell of themselves by now. It never takes one out. One whose answer
// cannot be used stays as it was, and is told among the pending of Discovery.
func (f *Fleet) Refreshed(u discover.Update) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	for _, d := range u.Workers {
		m := f.workers[d.ID]
		if m == nil || m.call == nil || m.call.stated.Known != d.Known {
			continue // a call came in between
		}
		if err := f.refreshLocked(m, d); err != nil {
			u.Pending = append(u.Pending, discover.Pending{ID: d.ID, Why: err.Error()})
			f.log.Warn("what a worker tells of itself is refused", "worker", d.ID, "error", err)
		}
	}
	u.Workers = nil
	f.refreshed = u
}

// refreshLocked registers m as it is now. Needs f.mu.
func (f *Fleet) refreshLocked(m *member, d discover.Worker) error {
	w, err := FromDiscovery(d)
	if err != nil {
		return err
	}
	w.Labels = m.Labels
	w.Sources = slices.DeleteFunc(w.Sources, func(s events.Source) bool { return slices.Contains(m.call.without, s.Rank) })
	if len(w.Sources) == 0 {
		return nil // a call has taken out all ranks that there are by now
	}
	_, err = f.registerLocked(w, false, nil)
	return err
}

// CalledHealth is Health of the workers of Called.
func (f *Fleet) CalledHealth(worker string, why error) { f.health(worker, why, true) }
