package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/discover"
	"github.com/kvscout/kvscout/events/jetstream"
	"github.com/kvscout/kvscout/events/poll"
	"github.com/kvscout/kvscout/events/stream"
	"github.com/kvscout/kvscout/indexer"
)

// ErrTooMany is a worker over Options.MaxWorkers.
var ErrTooMany = errors.New("too many workers")

// ErrClosed is a call on a fleet that was closed.
var ErrClosed = errors.New("fleet is closed")

// ErrTaken is a source that another worker's batches have claimed.
var ErrTaken = errors.New("source is taken")

// Options configures a Fleet. The zero value works.
type Options struct {
	// MaxWorkers bounds the fleet; 0 is 65,536.
	MaxWorkers int
	// Stream configures every ZMQ stream, Limits every decoder.
	Stream stream.Options
	Limits events.Limits
	// Policy says which addresses may be asked by HTTP for events.
	Policy discover.Policy
	// Log, when set, is where everything that the fleet hears is shared with replicas.
	Log    Log
	Logger *slog.Logger
}

const defaultMaxWorkers = 65536

// Fleet is the set of workers that the index listens to: one goroutine for each source with an endpoint, which ends
// when its worker leaves or the fleet is closed. All methods may be called concurrently.
type Fleet struct {
	index *indexer.Index
	opts  Options
	log   *slog.Logger
	ctx   context.Context // of every stream
	stop  context.CancelFunc
	wg    sync.WaitGroup

	// view is what lookups read; replaced, never changed.
	view atomic.Pointer[view]
	// followed is what is read from a log; nil if nothing is.
	followed atomic.Pointer[Followed]

	mu sync.Mutex // guards workers, closed, discovered, found and refreshed; held while a worker comes or goes
	// workers by id.
	workers map[string]*member
	closed  bool
	// called has room for one: workers that are asked came, changed or went.
	called chan struct{}
	// discovered is what discovery said last of each worker, found the rest of its last update.
	discovered map[string]Worker
	found      discover.Update
	// refreshed is the last update of the discovery of Called, without workers.
	refreshed discover.Update
}

// member is a worker of the fleet.
type member struct {
	Worker
	sources []*source
	// configured: by Restore or discovery. Others were registered by a call, and are registered again after a restart.
	configured bool
	// call is how a caller named it that left it to be asked; nil if it is not.
	call *call
	// ill is what is wrong with its serving port; nil if nothing is known to be.
	ill error
}

// source is one event stream of a member.
type source struct {
	events.Source
	writer *indexer.Writer
	stream *stream.Stream      // nil without an endpoint, and for a polled one
	log    jetstream.Resumable // what it is shared with; nil if it is not
	stop   context.CancelFunc
	done   chan struct{} // closed when the stream's goroutine has ended; nil without an endpoint

	push sync.Mutex   // guards feed: pushes of one source are taken one at a time
	feed *events.Feed // of pushed batches; nil with an endpoint
}

// New returns an empty fleet that feeds index. Close it.
func New(index *indexer.Index, opts Options) *Fleet {
	if opts.MaxWorkers <= 0 {
		opts.MaxWorkers = defaultMaxWorkers
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Stream.StaleAfter <= 0 {
		opts.Stream.StaleAfter = stream.DefaultStaleAfter
	}
	if opts.Stream.Listeners == nil {
		opts.Stream.Listeners = stream.NewListeners() // sources that share a port are told apart by topic
	}
	if opts.Stream.Logger == nil {
		opts.Stream.Logger = opts.Logger
	}
	f := &Fleet{
		index: index, opts: opts, log: opts.Logger, workers: make(map[string]*member), discovered: make(map[string]Worker),
		called: make(chan struct{}, 1),
	}
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.view.Store(&view{})
	return f
}

// Close stops every stream and waits for it. The index keeps what it knows.
func (f *Fleet) Close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.stop()
	f.wg.Wait()
}

// TopicMismatches counts messages on shared ports whose topic belongs to no source.
func (f *Fleet) TopicMismatches() uint64 { return f.opts.Stream.Listeners.Mismatched() }

// RefusedConnections counts connections refused at bound ports: too many, from where none is allowed, or without a
// handshake in time.
func (f *Fleet) RefusedConnections() uint64 { return f.opts.Stream.Listeners.Refused() }

// Register adds a worker and starts listening to it; an endpoint that cannot be reached is no error. The same
// description again changes nothing. Another description of the same id replaces it: a rank that is described otherwise
// drops what it held, the others keep it. The worker is the caller's from then on: discovery no longer changes it.
// It errs with ErrWorker, ErrTooMany, ErrTaken or ErrClosed.
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
	m := &member{Worker: w, configured: configured}
	if known {
		m.call = old.call
		m.sources = old.keep(w.Sources)
		f.dropLocked(old, old.without(m.sources))
		m.ill = old.ill
	}
	for _, src := range w.Sources {
		if slices.ContainsFunc(m.sources, func(s *source) bool { return s.Rank == src.Rank }) {
			continue
		}
		s, err := f.open(src, w.Sources, from)
		if err != nil {
			f.dropLocked(m, m.sources)
			f.publishLocked()
			return known, err
		}
		s.writer.Health(m.ill)
		m.sources = append(m.sources, s)
	}
	f.workers[w.ID] = m
	f.publishLocked()
	f.log.Info("worker registered", "worker", w.ID, "ranks", len(w.Sources), "model", w.Model, "replaced", known)
	return known, nil
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

// without is the member's sources less these.
func (m *member) without(these []*source) (rest []*source) {
	for _, s := range m.sources {
		if !slices.Contains(these, s) {
			rest = append(rest, s)
		}
	}
	return rest
}

// open opens a source, one of all of its worker, in the index and starts its stream.
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
	s.stream, _ = run.(*stream.Stream)
	if p, polled := run.(*poll.Poller); polled && resumed {
		p.Resume(cursor, from.saved.Buffered)
	} else if resumed {
		s.stream.Resume(cursor, writer.Proven)
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(f.ctx)
	s.done = make(chan struct{})
	// Ended by s.stop or by Close; dropLocked waits on done, Close on wg.
	f.wg.Go(func() {
		defer close(s.done)
		if err := run.Run(ctx); err != nil && ctx.Err() == nil {
			f.log.Error("stream ended", "source", src.ID(), "error", err)
			writer.State(events.StateStale, err)
		}
	})
	return s, nil
}

// Deregister takes a worker out, or one rank of it. Once it has returned no lookup credits it. It says whether there
// was such a worker or rank.
func (f *Fleet) Deregister(id string, rank *int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.workers[id]
	if !ok {
		return false
	}
	gone := m.sources
	if rank != nil {
		gone = nil
		for _, s := range m.sources {
			if s.Rank == *rank {
				gone = append(gone, s)
			}
		}
		if len(gone) == 0 {
			return false
		}
	}
	f.dropLocked(m, gone)
	f.publishLocked()
	if m.call != nil {
		if rank != nil {
			m.call.without = append(m.call.without, *rank)
		}
		f.recall()
	}
	f.log.Info("worker deregistered", "worker", id, "ranks", len(gone))
	return true
}

// Reset drops what a worker, or one rank of it, is known to hold. It says whether there was such a worker or rank.
func (f *Fleet) Reset(id string, rank *int) (known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.workers[id]
	if !ok {
		return false
	}
	for _, s := range m.sources {
		if rank == nil || s.Rank == *rank {
			s.writer.Empty()
			known = true
		}
	}
	f.log.Info("worker reset by a call", "worker", id, "known", known)
	return known
}

// dropLocked ends sources of m and forgets m with the last of them. Needs f.mu.
func (f *Fleet) dropLocked(m *member, gone []*source) {
	rest := m.without(gone)
	for _, s := range gone {
		s.writer.Close() // credit ends here; what the stream still delivers goes nowhere
		s.stop()
	}
	for _, s := range gone {
		if s.done != nil {
			<-s.done
		}
	}
	m.sources = rest
	m.Sources = nil
	for _, s := range rest {
		m.Sources = append(m.Sources, s.Source)
	}
	if len(rest) == 0 {
		delete(f.workers, m.ID)
	}
}
