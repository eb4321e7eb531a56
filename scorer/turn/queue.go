package turn

import (
	"container/list"
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultMaxWait is far below what a model needs for its first token, and above what a busy machine does to a server that
// has enough of its processors.
const DefaultMaxWait = 50 * time.Millisecond

// For each processor so many calls work, and so many that wait are few.
const (
	atWork = 2
	few    = 8
)

// ErrCrowded is a call that is refused because others wait too long, or too many do.
var ErrCrowded = errors.New("calls wait too long for their turn")

// Options configures a Queue.
type Options struct {
	// MaxWait is how long a call may wait. 0: DefaultMaxWait.
	MaxWait time.Duration
	// MaxWaiting is how many may wait. 0: no bound but MaxWait.
	MaxWaiting int
}

// Queue gives turns. Make it with New; nil lets all work at once.
type Queue struct {
	opts       Options
	turns, few int
	steps      steps
	places     sync.Pool // of *place, for those who will wait

	// oldest is when the first of those that wait came, in nanoseconds from steps.start; 0 while no more than a few wait. It is
	// written under mu.
	oldest atomic.Int64

	mu      sync.Mutex // guards what follows
	working int
	waiting list.List // of *place
}

// place is where a call waits.
type place struct {
	since time.Duration // from steps.start
	turn  chan bool     // gets one value, for which it has room: whether the call has its turn, or is refused
}

// New makes a queue for the processors that there are.
func New(o Options) *Queue {
	if o.MaxWait <= 0 {
		o.MaxWait = DefaultMaxWait
	}
	n := runtime.GOMAXPROCS(0)
	return &Queue{
		opts: o, turns: atWork * n, few: few * n, steps: steps{start: time.Now()},
		places: sync.Pool{New: func() any { return &place{turn: make(chan bool, 1)} }},
	}
}

// now is never 0.
func (q *Queue) now() time.Duration { return time.Since(q.steps.start) + 1 }

// Crowded says whether a call that came now would be refused. It takes no lock.
func (q *Queue) Crowded() bool {
	if q == nil {
		return false
	}
	oldest := time.Duration(q.oldest.Load())
	return oldest != 0 && q.now()-oldest > q.opts.MaxWait
}

// Enter waits for a turn, which Leave ends. It errs with ErrCrowded, or with the cause of ctx's end.
func (q *Queue) Enter(ctx context.Context) error {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	if q.working < q.turns { // then nobody waits
		q.working++
		q.mu.Unlock()
		q.steps.free()
		return nil
	}
	if q.Crowded() || q.opts.MaxWaiting > 0 && q.waiting.Len() >= q.opts.MaxWaiting {
		q.mu.Unlock()
		return ErrCrowded
	}
	p := q.places.Get().(*place)
	p.since = q.now()
	at := q.waiting.PushBack(p)
	q.tell()
	q.mu.Unlock()
	return q.wait(ctx, p, at)
}

// wait waits at a place, and gives it back.
func (q *Queue) wait(ctx context.Context, p *place, at *list.Element) error {
	defer q.places.Put(p)
	select {
	case turn := <-p.turn:
		if !turn {
			return ErrCrowded
		}
	case <-ctx.Done():
		if !q.forget(at) && <-p.turn { // its turn came just now
			q.Leave()
		}
		return context.Cause(ctx)
	}
	q.steps.given()
	return nil
}

// forget takes a place out of the queue. It says no if that was done before, by who decided about it.
func (q *Queue) forget(at *list.Element) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := q.waiting.Len()
	q.waiting.Remove(at)
	q.tell()
	return q.waiting.Len() < before
}

// Leave ends a turn: the first that has not waited too long gets it.
func (q *Queue) Leave() {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	for given := false; !given; {
		first := q.waiting.Front()
		if first == nil {
			q.working--
			break
		}
		p := q.waiting.Remove(first).(*place)
		given = now-p.since <= q.opts.MaxWait || q.waiting.Len() < q.few
		p.turn <- given
	}
	q.tell()
}

// tell lets Crowded know since when the first waits; mu is held.
func (q *Queue) tell() {
	oldest := time.Duration(0)
	if q.waiting.Len() > q.few {
		oldest = q.waiting.Front().Value.(*place).since
	}
	if int64(oldest) != q.oldest.Load() {
		q.oldest.Store(int64(oldest))
	}
}

// Waiting is how many wait now.
func (q *Queue) Waiting() int {
	if q == nil {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.Len()
}
