package ingest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kvscout/kvscout/events/discover"
)

// Discovered brings the fleet to what discovery says (invariant 5). Workers that cannot be registered are told among the
// pending of Discovery; they are tried again when they are described otherwise. After Close it does nothing.
func (f *Fleet) Discovered(u discover.Update) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	refused := make(map[string]string)
	for _, p := range f.found.Pending {
		if _, tried := f.discovered[p.ID]; tried {
			refused[p.ID] = p.Why
		}
	}
	named := make(map[string]bool, len(u.Workers))
	for _, d := range u.Workers {
		named[d.ID] = true
		tried, err := f.discoveredLocked(d)
		if !tried {
			continue
		}
		delete(refused, d.ID)
		if err != nil {
			refused[d.ID] = err.Error()
			f.log.Warn("discovered worker is refused", "worker", d.ID, "error", err)
		}
	}
	for id := range f.discovered {
		if !named[id] {
			delete(f.discovered, id)
			delete(refused, id)
			f.loseLocked(id)
		}
	}
	for id, why := range refused {
		u.Pending = append(u.Pending, discover.Pending{ID: id, Why: why})
	}
	f.found = u
}

// discoveredLocked registers a worker as discovery tells it. tried is false if there is no need to: it was told so before, or
// is a caller's. Needs f.mu.
func (f *Fleet) discoveredLocked(d discover.Worker) (tried bool, err error) {
	w, err := FromDiscovery(d)
	if err != nil {
		return true, err
	}
	if said, ok := f.discovered[w.ID]; ok && said.equal(w) {
		return false, nil
	}
	f.discovered[w.ID] = w
	was := f.workers[w.ID]
	if was != nil && !was.configured {
		return false, nil
	}
	if _, err := f.registerLocked(w, true, f.awaitedLocked(w.ID)); err != nil {
		return true, err
	}
	if m := f.workers[w.ID]; m != was {
		m.found = true
	}
	f.forgoLocked(w.ID, DropUnconfigured) // ranks that it has no more
	return true, nil
}

// loseLocked takes out a worker that discovery no longer names. Needs f.mu.
func (f *Fleet) loseLocked(id string) {
	m := f.workers[id]
	if m == nil || !m.configured {
		return
	}
	ranks := len(m.sources)
	f.dropLocked(m, m.sources)
	f.publishLocked()
	f.log.Info("worker is no longer discovered", "worker", id, "ranks", ranks)
}

// Discovery is the last update of discovery, with the workers that were refused among its pending, and what the discovery
// of Called says beside its workers.
func (f *Fleet) Discovery() discover.Update {
	f.mu.Lock()
	defer f.mu.Unlock()
	u, c := f.found, f.refreshed
	u.Pending = slices.Concat(u.Pending, c.Pending)
	u.Discoverers = slices.Concat(u.Discoverers, c.Discoverers)
	u.Asked += c.Asked
	u.AskFailed += c.AskFailed
	return u
}

// errIll stands behind the state of a source whose worker's serving port fails.
var errIll = errors.New("worker is not healthy")

// Health notes what is wrong with a worker's serving port, nil if it is well. While something is, its sources are stale,
// whatever their streams say (rule 12).
func (f *Fleet) Health(worker string, why error) { f.health(worker, why, false) }

// health is Health, of workers that are asked for a caller or of all others.
func (f *Fleet) health(worker string, why error, called bool) {
	if why != nil {
		why = fmt.Errorf("%w: %w", errIll, why)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.workers[worker]
	if m == nil || called != (m.call != nil) {
		return
	}
	m.ill = why
	for _, s := range m.sources {
		s.writer.Health(why)
	}
	f.log.Info("worker's health changed", "worker", worker, "error", why)
}

// Described are the workers that are described whole, as discovery would tell them. It errs with ErrWorker.
func Described(list []discover.Worker) (out []Worker, err error) {
	for _, d := range list {
		if d.URL != "" {
			continue // it is to be asked first
		}
		w, e := FromDiscovery(d)
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		out = append(out, w)
	}
	return out, err
}

// FromDiscovery makes a worker of what was discovered. It errs with ErrWorker.
func FromDiscovery(d discover.Worker) (Worker, error) {
	role, ok := ParseRole(d.Role)
	if !ok {
		return Worker{ID: d.ID}, fmt.Errorf("%w: role %.100q is not prefill, decode or both", ErrWorker, d.Role)
	}
	w := Worker{
		ID: d.ID, Labels: d.Labels, Role: role, Model: d.Model, Aliases: d.Aliases, Adapters: d.Adapters, URL: d.URL,
		Fingerprint: d.Fingerprint, Sources: d.Sources,
	}
	return w.normalise()
}
