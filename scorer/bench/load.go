package bench

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Caller makes calls, one at a time.
type Caller interface {
	// Call makes the caller's n-th call and checks the answer.
	Call(ctx context.Context, n int) error
	Close() error
}

// Load says how callers are driven.
type Load struct {
	// Warmup is time before what counts, During what counts.
	Warmup, During time.Duration
	// Rate is the calls a second of all callers together in an open loop. 0: a closed loop.
	Rate float64
	// Impatient lets calls of an open loop that would begin late fall away, and counts all from when they are sent: for rates
	// that no server could bear.
	Impatient bool
	// ServerPID is the server's process on this machine, whose processor time is read. 0: not known.
	ServerPID int
	// Scores is how many answers a call brings, at least 1.
	Scores int
}

// Histograms reach from a microsecond to a minute.
const (
	leastLatency = int64(time.Microsecond)
	mostLatency  = int64(time.Minute)
	digits       = 3
)

// tally is what one caller saw in the measured time.
type tally struct {
	latencies *hdrhistogram.Histogram // in nanoseconds, of calls that were answered right
	failed    map[string]uint64       // by reason
	first     error                   // that was counted
}

// Run drives the callers and closes them. A cancelled ctx ends it early, with what was measured so far.
func Run(ctx context.Context, callers []Caller, l Load) Report {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var counting atomic.Bool
	var wg sync.WaitGroup
	tallies := make([]*tally, len(callers))
	for i := range callers {
		tallies[i] = &tally{latencies: hdrhistogram.New(leastLatency, mostLatency, digits), failed: make(map[string]uint64)}
	}
	if drive, ok := onThread(ctx, callers, tallies, l, &counting); ok {
		wg.Go(func() { drive(ctx) }) // ended by stop, waited for below
	} else {
		for i, c := range callers {
			pace := newPacer(l.Rate/float64(len(callers)), l.Impatient)
			wg.Go(func() { // ended by stop, waited for below
				tallies[i].drive(ctx, c, pace, &counting)
			})
		}
	}
	sleep(ctx, l.Warmup)
	before := readUsage(l.ServerPID)
	counting.Store(true)
	sleep(ctx, l.During)
	counting.Store(false)
	after := readUsage(l.ServerPID)
	stop()
	wg.Wait()
	return report(tallies, after.since(before), max(1, l.Scores))
}

// drive calls until ctx ends.
func (t *tally) drive(ctx context.Context, c Caller, pace *pacer, counting *atomic.Bool) {
	defer c.Close()
	for n := 0; ctx.Err() == nil; n++ {
		began, ok := pace.next(ctx)
		if !ok {
			return
		}
		err := c.Call(ctx, n)
		took := time.Since(began)
		if ctx.Err() != nil || !counting.Load() {
			continue
		}
		t.add(took, err)
		if err != nil && reasonOf(err) == ReasonConnection {
			sleep(ctx, brokenPause)
		}
	}
}

// brokenPause is how long a caller waits after an error of its connection: a server that is gone is not asked in a tight loop.
const brokenPause = 10 * time.Millisecond

// add counts a call.
func (t *tally) add(took time.Duration, err error) {
	if err == nil {
		_ = t.latencies.RecordValue(min(max(int64(took), leastLatency), mostLatency)) // within its bounds
		return
	}
	t.count(err)
}

// count counts an error.
func (t *tally) count(err error) {
	if t.first == nil || reasonOf(t.first) != ReasonConnection && reasonOf(err) == ReasonConnection {
		t.first = err // of a connection, since its reason says the least
	}
	t.failed[reasonOf(err)]++
}

// pacer tells when calls are due.
type pacer struct {
	mean      time.Duration // between two calls; 0: at once
	due       time.Time
	impatient bool
}

func newPacer(rate float64, impatient bool) *pacer {
	if rate <= 0 {
		return &pacer{}
	}
	mean := time.Duration(float64(time.Second) / rate)
	return &pacer{mean: mean, impatient: impatient, due: time.Now().Add(time.Duration(rand.Float64() * float64(mean)))}
}

// next waits until the next call is due, and tells the time from which it counts: when it was due if that has passed, else
// now, for a timer may be late by itself. It says no when ctx has ended.
func (p *pacer) next(ctx context.Context) (time.Time, bool) {
	if p.mean == 0 {
		return time.Now(), true
	}
	due := p.draw()
	if wait := time.Until(due); wait > 0 {
		ok := sleep(ctx, wait)
		return time.Now(), ok
	}
	return due, true
}

// draw is when the next call is due, if it is by chance.
func (p *pacer) draw() time.Time {
	due := p.due
	if now := time.Now(); p.impatient && due.Before(now) {
		due = now
	}
	p.due = due.Add(time.Duration(rand.ExpFloat64() * float64(p.mean)))
	return due
}

// sleep says whether it slept to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
