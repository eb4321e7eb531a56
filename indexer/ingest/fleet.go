package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/kvscout/kvscout/events"
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

	mu sync.Mutex // guards workers and closed; held while a worker comes or goes
	// workers by id.
	workers map[string]*member
	closed  bool
}

// member is a worker of the fleet.
type member struct {
	Worker
	sources    []*source
	configured bool // by Restore; others are registered again after a restart
}

// source is one event stream of a member.
type source struct {
	events.Source
	writer *indexer.Writer
	stream *stream.Stream // nil without an endpoint
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
	f := &Fleet{index: index, opts: opts, log: opts.Logger, workers: make(map[string]*member)}
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

// Register adds a worker and starts listening to it; an endpoint that cannot be reached is no error. The same
// description again changes nothing. Another description of the same id replaces the worker: what it held is dropped.
// It errs with ErrWorker, ErrTooMany, ErrTaken or ErrClosed.
func (f *Fleet) Register(w Worker) (replaced bool, err error) { return f.register(w, false, nil) }

// register registers a worker whose sources go on from a snapshot where that has them.
func (f *Fleet) register(w Worker, configured bool, from *restoring) (replaced bool, err error) {
	w, err = w.normalise()
	if err != nil {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
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
	if known {
		f.dropLocked(old, old.sources)
	}
	m := &member{Worker: w, configured: configured}
	for _, src := range w.Sources {
		s, err := f.open(src, w.Sources, from)
		if err != nil {
			f.dropLocked(m, m.sources)
			f.publishLocked()
			return known, err
		}
		m.sources = append(m.sources, s)
	}
	f.workers[w.ID] = m
	f.publishLocked()
	f.log.Info("worker registered", "worker", w.ID, "ranks", len(w.Sources), "model", w.Model, "replaced", known)
	return known, nil
}

// open opens a source, one of all of its worker, in the index and starts its stream.
func (f *Fleet) open(src events.Source, all []events.Source, from *restoring) (*source, error) {
	writer, err := f.index.NewWriter(src, f.opts.Limits)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrTaken, err)
	}
	s := &source{Source: src, writer: writer, stop: func() {}}
	cursor, resumed := from.take(src, all, writer)
	if src.Events == "" {
		s.feed = events.NewFeed(writer)
		if resumed {
			s.feed.Resume(cursor, writer.Proven)
		}
		return s, nil
	}
	run, err := stream.New(src, writer, f.opts.Stream)
	if err != nil {
		writer.Close()
		return nil, fmt.Errorf("%w: %w", ErrWorker, err)
	}
	if resumed {
		run.Resume(cursor, writer.Proven)
	}
	s.stream = run
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
	f.log.Info("worker deregistered", "worker", id, "ranks", len(gone))
	return true
}

// dropLocked ends sources of m and forgets m with the last of them. Needs f.mu.
func (f *Fleet) dropLocked(m *member, gone []*source) {
	var rest []*source
	for _, s := range m.sources {
		left := true
		for _, g := range gone {
			left = left && s != g
		}
		if left {
			rest = append(rest, s)
		}
	}
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
