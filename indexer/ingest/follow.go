package ingest

import (
	"fmt"
	"sync"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/jetstream"
)

// Followed is the part of a fleet that a replica reads from the log: it implements jetstream.Target. A worker that this
// process was told of otherwise stays as it is, and is not followed.
type Followed struct {
	fleet *Fleet

	mu       sync.Mutex          // guards the fields below; nothing is called while it is held
	ids      map[string]bool     // of the workers followed
	follower *jetstream.Follower // nil until Attach
	from     *restoring          // while workers of a snapshot are described
	restored int                 // sources that went on from a snapshot, until it shows to be of another log
	lost     int                 // and after that
}

// Follow is what the fleet reads from a log, the same at each call.
func (f *Fleet) Follow() *Followed {
	f.followed.CompareAndSwap(nil, &Followed{fleet: f, ids: make(map[string]bool)})
	return f.followed.Load()
}

// has says whether a worker is followed.
func (w *Followed) has(id string) bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ids[id]
}

// Describe implements jetstream.Target. It errs with ErrTaken for a worker that is known otherwise, and as Register does.
func (w *Followed) Describe(m jetstream.Member) error {
	role, ok := ParseRole(m.Role)
	if !ok {
		return fmt.Errorf("%w: role %.100q is not prefill, decode or both", ErrWorker, m.Role)
	}
	if _, known := w.fleet.Worker(m.ID); known && !w.has(m.ID) {
		return fmt.Errorf("%w: worker %q is not the log's", ErrTaken, m.ID)
	}
	w.mu.Lock()
	w.ids[m.ID] = true // before it is registered: its sources are not to be shared again
	from := w.from
	w.mu.Unlock()
	_, err := w.fleet.register(Worker{
		ID: m.ID, Labels: m.Labels, Role: role, Model: m.Model, Aliases: m.Aliases, Adapters: m.Adapters,
		Fingerprint: m.Fingerprint, Sources: m.Events(),
	}, false, from)
	if _, known := w.fleet.Worker(m.ID); !known {
		w.mu.Lock()
		delete(w.ids, m.ID)
		w.mu.Unlock()
	}
	return err
}

// Forget implements jetstream.Target.
func (w *Followed) Forget(id string) {
	if !w.has(id) {
		return
	}
	w.fleet.Deregister(id, nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.ids, id)
}

// Sink implements jetstream.Target.
func (w *Followed) Sink(worker string, rank int) events.Sink {
	if !w.has(worker) {
		return nil
	}
	s, err := w.fleet.source(worker, rank)
	if err != nil {
		return nil
	}
	return s.writer
}

// Log is where a fleet shares what it hears: a jetstream.Publisher.
type Log interface {
	// Sink takes what a source's stream delivers.
	Sink(src events.Source) events.Sink
	// Members says which workers there are.
	Members(list []jetstream.Member)
}

// shared is where a stream of src delivers: to its writer, and to the log if the fleet shares it. log is nil if it does
// not, or the log's sink cannot go on.
func (f *Fleet) shared(src events.Source, to events.Sink) (sink events.Sink, log jetstream.Resumable) {
	if f.opts.Log == nil || f.followed.Load().has(src.Worker) {
		return to, nil
	}
	b := both{to, f.opts.Log.Sink(src)}
	log, _ = b[1].(jetstream.Resumable)
	return b, log
}

// shareLocked tells the log which workers there are. Needs f.mu.
func (f *Fleet) shareLocked(workers []Worker) {
	if f.opts.Log == nil {
		return
	}
	var list []jetstream.Member
	for _, w := range workers {
		if f.followed.Load().has(w.ID) {
			continue
		}
		m := jetstream.Member{
			ID: w.ID, Role: w.Role.String(), Labels: w.Labels, Model: w.Model, Aliases: w.Aliases, Adapters: w.Adapters,
			Fingerprint: w.Fingerprint,
		}
		for _, s := range w.Sources {
			m.Sources = append(m.Sources, jetstream.SourceOf(s))
		}
		list = append(list, m)
	}
	f.opts.Log.Members(list)
}
