package ingest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/discover"
	"github.com/kvscout/kvscout/events/jetstream"
	"github.com/kvscout/kvscout/events/stream"
	"github.com/kvscout/kvscout/indexer"
)

// ErrTooMany is a worker over Options.MaxWorkers.
var ErrTooMany = errors.New("too many workers")

// ErrClosed is a call on a fleet that was closed.
var ErrClosed = errors.New("fleet is closed")

// ErrTaken is a source that something else than this fleet feeds, or a worker of a log that is known otherwise.
var ErrTaken = errors.New("source is taken")

// Options configures a Fleet. The zero value works.
type Options struct {
	// MaxWorkers bounds the fleet; 0 is 65,536.
	MaxWorkers int
	// Stream configures every ZMQ stream, Limits every decoder.
	Stream stream.Options
	Limits events.Limits
	// Policy says which addresses may be dialled for events, by ZMQ and by HTTP.
	Policy discover.Policy
	// Await is how long what a snapshot has of a discovered worker is kept for discovery to find it; 0 is DefaultAwait.
	Await time.Duration
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

	mu sync.Mutex // guards the fields below but called; held while a worker comes or goes
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
	// awaited is what Restore left to discovery; nil if there was nothing.
	awaited *awaited
}

// member is a worker of the fleet.
type member struct {
	Worker
	sources []*source
	// configured: by Restore or discovery. Others were registered by a call, and are registered again after a restart.
	// found: by discovery, which is to find it again after a restart.
	configured, found bool
	// call is how a caller named it that left it to be asked; nil if it is not.
	call *call
	// ill is what is wrong with its serving port; nil if nothing is known to be.
	ill error
}

// source is one event stream of a member.
type source struct {
	events.Source
	writer *indexer.Writer
	run    Runner              // nil without an endpoint
	stream *stream.Stream      // run, if it is by ZMQ
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
	if opts.Await <= 0 {
		opts.Await = DefaultAwait
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

// Deregister takes a worker out, or one rank of it. Once it has returned no lookup credits it. It says whether there
// was such a worker or rank.
func (f *Fleet) Deregister(id string, rank *int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.workers[id]
	if !ok {
		f.forgoLocked(id, DropUnconfigured)
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
