package bench

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kvscout/kvscout/indexer/workload"
)

// ErrWrong is an answer of the index that is not the right one.
var ErrWrong = errors.New("wrong")

// MaxReps bounds Options.Reps.
const MaxReps = 1000

// Options says how to run.
type Options struct {
	// Reps is how often everything is measured, on a new index each time; at least 1.
	Reps int
	// OwnHashes lets each holder of pinned hash blocks in its own way, as engines with a random seed do; else equal
	// prefixes have equal hashes.
	OwnHashes bool
	// Progress, if set, is told how much of a repetition's work is done.
	Progress func(stage string, done, total int)
}

func (o Options) progress(stage string, done, total int) {
	if o.Progress != nil {
		o.Progress(stage, done, total)
	}
}

// checks gathers what is not as it should be.
type checks struct{ faults []error }

func (c *checks) equal(what string, got, want int) {
	if got != want {
		c.faults = append(c.faults, fmt.Errorf("%w: %s is %d, want %d", ErrWrong, what, got, want))
	}
}

func (c *checks) answer(what string, got answer, want workload.Answer) {
	c.equal(what+" depth sum", got.DepthSum, want.DepthSum)
	c.equal(what+" matched", got.Matched, want.Matched)
}

// err is all faults joined, nil without any.
func (c *checks) err() error { return errors.Join(c.faults...) }

// stopwatch reads the clock once for each reading, where time.Now reads two.
type stopwatch time.Time

func newStopwatch() stopwatch { return stopwatch(time.Now()) }

func (s stopwatch) elapsed() time.Duration { return time.Since(time.Time(s)) }

// percentile of sorted nanoseconds, p in [0, 1]: the nearest one, as the peers' drivers take it. 0 of none.
func percentile[T time.Duration | uint32](sorted []T, p float64) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return int64(sorted[int(float64(len(sorted)-1)*p+0.5)])
}

// median of the values that get finds in list; the lower of two in the middle.
func median[T any, V cmp.Ordered](list []T, get func(T) V) V {
	values := make([]V, len(list))
	for i, x := range list {
		values[i] = get(x)
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}
