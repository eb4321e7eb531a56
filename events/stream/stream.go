package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/zmq"
)

// Stream is the life of one source.
type Stream struct {
	src          events.Source
	sink         events.Sink
	o            Options
	live, replay events.Endpoint // replay is zero if there is none

	resume *events.Cursor // where to go on, nil at the beginning
	proven func()
	// epoch is that of the batches applied last, nil if they have none. It is set behind them and taken back before a Reset
	// is told, so who reads the same before and after reading the sink knows whose its state is.
	epoch atomic.Pointer[string]
}

// New prepares a stream. It errs with events.ErrSource or zmq.ErrOptions, joined.
func New(src events.Source, sink events.Sink, o Options) (*Stream, error) {
	faults := []error{src.Validate(), o.Validate()}
	s := &Stream{src: src, sink: sink, o: o.withDefaults()}
	var err error
	if s.live, err = events.ParseEndpoint(src.Events); err != nil {
		faults = append(faults, err)
	}
	if src.Replay != "" {
		if s.replay, err = events.ParseEndpoint(src.Replay); err != nil {
			faults = append(faults, err)
		} else if s.replay.Bind {
			faults = append(faults, fmt.Errorf("%w: replay endpoint %q names no host", events.ErrSource, src.Replay))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("stream of %q: %w", src.ID(), err)
	}
	return s, nil
}

// Resume makes Run go on behind a cursor, as if the batches up to it had been applied: it asks for the batch of the
// cursor and what follows. proven is called once, from the goroutine of Run, if the publisher shows that it is the one of
// the cursor: by replaying the cursor's batch, or by its epoch. One that shows to be another, or to have lost what
// follows, is told by Reset or Gap as ever. One that goes on with the next number and shows nothing is taken, unproven.
// Resume must be called before Run.
func (s *Stream) Resume(c events.Cursor, proven func()) { s.resume, s.proven = &c, proven }

// Epoch is the id of the publisher's life, "" if it sends none. It may be called from any goroutine.
func (s *Stream) Epoch() string {
	if e := s.epoch.Load(); e != nil {
		return *e
	}
	return ""
}

// Run receives until ctx ends, calling the sink from this goroutine only, and returns ctx's error when every goroutine
// of the stream has ended. It errs at once with ErrTopicTaken. It must be called once.
func (s *Stream) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	in := newInbox(ctx, s.o.QueueBytes)
	// Ends with ctx, which is cancelled above; waited for above.
	wg.Go(func() {
		if err := s.receive(ctx, in); ctx.Err() == nil {
			cancel(err)
		}
	})
	l := newLoop(s, in, &wg)
	l.run(ctx)
	return context.Cause(ctx)
}

// receive fills the inbox until ctx ends.
func (s *Stream) receive(ctx context.Context, in *inbox) error {
	if s.live.Bind {
		return s.o.Listeners.receive(ctx, s.live, s.src, s.o, in)
	}
	return zmq.Dial(ctx, s.o.live(s.live, s.src.Topic), in)
}
