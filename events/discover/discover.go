package discover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
)

// ErrTooMany is a report of more than MaxWorkers workers.
var ErrTooMany = errors.New("too many workers")

// ErrWorker is a worker that cannot be described so.
var ErrWorker = errors.New("bad worker")

// MaxWorkers bounds what one discoverer may name.
const MaxWorkers = 65536

// Discoverer knows of workers.
type Discoverer interface {
	// Name tells it from others, in logs and statistics: "file", "kubernetes".
	Name() string
	// Run reports until ctx ends, and returns ctx's error. It must not fail for reasons that may pass.
	Run(ctx context.Context, r Reporter) error
}

// Reporter takes what a discoverer finds out. Its methods may be called from any goroutine.
type Reporter interface {
	// Workers says which workers there are: all of them, in place of what was said before. The list is the callee's.
	Workers(list []Worker)
	// Failed says that nothing new is known. What was said before stays (invariant 1).
	Failed(err error)
}

// Status is what became of one discoverer.
type Status struct {
	Name string
	// Workers that it names now; Reports and Failures so far.
	Workers           int
	Reports, Failures uint64
	// Err is its last failure, "" since a report came.
	Err string
}

// Pending is a worker that cannot be listened to yet.
type Pending struct {
	ID, Why string
}

// Update is the state of discovery, whole.
type Update struct {
	// Workers can be listened to; Pending cannot yet. Both by id.
	Workers []Worker
	Pending []Pending
	// Discoverers in order.
	Discoverers []Status
	// Asked counts the questions put to workers, AskFailed those that brought nothing.
	Asked, AskFailed uint64
}

// Options of Run.
type Options struct {
	// Discoverers, those first go first (invariant 2).
	Discoverers []Discoverer
	// Asker asks workers with a URL; nil asks none.
	Asker *Asker
	// Apply takes the state whenever it changes.
	Apply func(Update)
	// Health tells of a worker that Apply named what is wrong with it (its serving port fails, or it is Unready), or that
	// nothing is, err nil. May be nil.
	Health func(worker string, err error)
	// Logger may be nil.
	Logger *slog.Logger
}

// Run discovers until ctx ends, and returns ctx's error when all its goroutines have ended.
func Run(ctx context.Context, o Options) error {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	l := newLoop(o, &wg)
	for i, d := range o.Discoverers {
		wg.Go(func() { // ends with ctx; waited for above
			err := d.Run(ctx, reporter{ctx, i, l.news})
			if ctx.Err() == nil {
				reporter{ctx, i, l.news}.Failed(fmt.Errorf("%s ended: %w", d.Name(), err))
			}
		})
	}
	l.run(ctx)
	return ctx.Err()
}

// news is one thing that a discoverer or a worker told.
type news struct {
	from    int // the discoverer, or -1: the worker asked
	workers []Worker
	err     error
	worker  string  // of from -1
	url     string  // that was asked
	answer  *Worker // nil: a failure, or news of health
	health  bool    // err is the worker's health
}

// reporter brings a discoverer's news to the loop.
type reporter struct {
	ctx  context.Context
	from int
	news chan<- news
}

// Workers implements Reporter.
func (r reporter) Workers(list []Worker) { send(r.ctx, r.news, news{from: r.from, workers: list}) }

// Failed implements Reporter.
func (r reporter) Failed(err error) { send(r.ctx, r.news, news{from: r.from, err: err}) }

func send(ctx context.Context, to chan<- news, n news) {
	select {
	case to <- n:
	case <-ctx.Done():
	}
}

// Static is a Discoverer that knows its workers from the start: those of flags.
type Static struct {
	Called string
	List   []Worker
}

// Name implements Discoverer.
func (s Static) Name() string { return s.Called }

// Run implements Discoverer.
func (s Static) Run(ctx context.Context, r Reporter) error {
	r.Workers(s.List)
	<-ctx.Done()
	return ctx.Err()
}

// check refuses a report that cannot be whole.
func check(list []Worker) error {
	if len(list) > MaxWorkers {
		return fmt.Errorf("%w: %d, limit %d", ErrTooMany, len(list), MaxWorkers)
	}
	if slices.ContainsFunc(list, func(w Worker) bool { return w.ID == "" }) {
		return fmt.Errorf("%w: one has no id", ErrWorker)
	}
	return nil
}
