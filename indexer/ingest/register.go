package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/poll"
	"github.com/kvscout/kvscout/events/stream"
)

// Register adds a worker and starts listening to it; an endpoint that cannot be reached is no error. The same
// description again changes nothing. Another description of the same id replaces it: a rank that is described otherwise
// drops what it held, the others keep it. The worker is the caller's from then on: discovery no longer changes it.
// It errs with ErrWorker, ErrTooMany, ErrTaken or ErrClosed; what was known of the worker then stays as it was.
func (f *Fleet) Register(w Worker) (replaced bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	replaced, err = f.registerLocked(w, false, nil)
	if err == nil {
		f.callLocked(f.workers[w.ID], nil)
	}
	return replaced, err
}

// register registers a worker whose sources go on from a snapshot where that has them.
func (f *Fleet) register(w Worker, configured bool, from *restoring) (replaced bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.registerLocked(w, configured, from)
}

// registerLocked is register. Needs f.mu.
func (f *Fleet) registerLocked(w Worker, configured bool, from *restoring) (replaced bool, err error) {
	w, err = w.normalise()
	if err != nil {
		return false, err
	}
	if f.closed {
		return false, ErrClosed
	}
	old, known := f.workers[w.ID]
	if known && old.equal(w) {
		return false, nil
	}
	if !known && len(f.workers) >= f.opts.MaxWorkers {
		return false, fmt.Errorf("%w: %d", ErrTooMany, len(f.workers))
	}
	if !known {
		old = &member{} // which has no sources
	}
	m := &member{Worker: w, configured: configured, call: old.call, ill: old.ill, sources: old.keep(w.Sources)}
	fresh := m.lacks(w.Sources)
	if err := f.checkLocked(old, fresh); err != nil { // invariant 8: nothing was changed
		return false, err
	}
	for _, s := range m.sources {
		for _, src := range fresh {
			s.writer.Cede(src.Rank)
		}
	}
	f.dropLocked(old, old.without(m.sources))
	err = f.openLocked(m, fresh, from)
	if len(m.sources) > 0 {
		f.workers[w.ID] = m
	}
	f.publishLocked()
	if !configured {
		f.forgoLocked(w.ID, DropChanged) // it is a caller's now
	}
	if err != nil {
		return known, err
	}
	f.log.Info("worker registered", "worker", w.ID, "ranks", len(w.Sources), "model", w.Model, "replaced", known)
	return known, nil
}

// checkLocked says whether sources can be opened once those of their worker's member as it is that have their ranks are
// closed. It errs with ErrWorker or ErrTaken. Needs f.mu.
func (f *Fleet) checkLocked(old *member, fresh []events.Source) error {
	var faults []error
	for _, src := range fresh {
		if src.Events != "" {
			if _, err := Listen(src, nil, f.opts.Stream, f.opts.Limits, f.opts.Policy); err != nil {
				faults = append(faults, fmt.Errorf("%w: %w", ErrWorker, err))
			}
		}
		l, open := f.index.Find(src.Worker, src.Rank)
		if open && !slices.ContainsFunc(old.sources, func(s *source) bool { return s.writer.Feeds(l) }) {
			faults = append(faults, fmt.Errorf("%w: %s", ErrTaken, src.ID()))
		}
	}
	return errors.Join(faults...)
}

// openLocked opens sources of m and then starts them, so that none takes another's rank for its own. Needs f.mu. It errs with
// ErrTaken if another user of the index has opened one since checkLocked; m is left with the sources that it had.
func (f *Fleet) openLocked(m *member, fresh []events.Source, from *restoring) error {
	had, all := m.sources, m.Sources
	for _, src := range fresh {
		s, err := f.open(src, all, from)
		if err != nil {
			f.dropLocked(m, m.without(had))
			return err
		}
		s.writer.Health(m.ill)
		m.sources = append(m.sources, s)
	}
	for _, s := range m.sources[len(had):] {
		f.start(s)
	}
	return nil
}

// keep is which of the member's sources another description of it leaves as they are.
func (m *member) keep(described []events.Source) (same []*source) {
	for _, s := range m.sources {
		if slices.ContainsFunc(described, func(d events.Source) bool { return reflect.DeepEqual(d, s.Source) }) {
			same = append(same, s)
		}
	}
	return same
}

// lacks is which of these sources the member does not have.
func (m *member) lacks(described []events.Source) (rest []events.Source) {
	for _, d := range described {
		if !slices.ContainsFunc(m.sources, func(s *source) bool { return s.Rank == d.Rank }) {
			rest = append(rest, d)
		}
	}
	return rest
}

// without is the member's sources less these.
func (m *member) without(these []*source) (rest []*source) {
	for _, s := range m.sources {
		if !slices.Contains(these, s) {
			rest = append(rest, s)
		}
	}
	return rest
}

// open opens a source, one of all of its worker, in the index and prepares its stream.
func (f *Fleet) open(src events.Source, all []events.Source, from *restoring) (*source, error) {
	writer, err := f.index.NewWriter(src, f.opts.Limits)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrTaken, err)
	}
	s := &source{Source: src, writer: writer, stop: func() {}}
	f.log.Info("listening to source", "source", src.ID(), "model", src.Model, "engine", string(src.Engine),
		"events", cmp.Or(src.Events, "pushed"), "replay", cmp.Or(src.Replay, "none"), "topic", src.Topic)
	cursor, resumed := from.take(src, all, writer)
	var sink events.Sink
	if sink, s.log = f.shared(src, writer); resumed && s.log != nil {
		s.log.Resume(from.note.life(), cursor)
	}
	if src.Events == "" {
		s.feed = events.NewFeed(sink)
		if resumed {
			s.feed.Resume(cursor, writer.Proven)
		}
		return s, nil
	}
	run, err := Listen(src, sink, f.opts.Stream, f.opts.Limits, f.opts.Policy)
	if err != nil {
		writer.Close()
		return nil, fmt.Errorf("%w: %w", ErrWorker, err)
	}
	s.run = run
	s.stream, _ = run.(*stream.Stream)
	if p, polled := run.(*poll.Poller); polled && resumed {
		p.Resume(cursor, from.saved.Buffered)
	} else if resumed {
		s.stream.Resume(cursor, writer.Proven)
	}
	return s, nil
}

// start starts a source's stream, if it has one.
func (f *Fleet) start(s *source) {
	if s.run == nil {
		return
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(f.ctx)
	s.done = make(chan struct{})
	// Ended by s.stop or by Close; dropLocked waits on done, Close on wg.
	f.wg.Go(func() {
		defer close(s.done)
		if err := s.run.Run(ctx); err != nil && ctx.Err() == nil {
			f.log.Error("stream ended", "source", s.ID(), "error", err)
			s.writer.State(events.StateStale, err)
		}
	})
}
