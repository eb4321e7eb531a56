package turn

import (
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// shortStep is a step back that says nobody waits: it lasts a few calls at most.
	shortStep = 250 * time.Microsecond
	// stepEvery is how often calls step back while steps are short, which costs them something for nothing.
	stepEvery = 8
	// slice is how long calls that get a turn from each other go on before one steps back: short enough for those that are to be
	// refused, and long enough for the others to get on whatever is to be refused.
	slice = 4 * time.Millisecond
)

// steps lets calls with a turn step back behind the goroutines that are ready to run.
type steps struct {
	start time.Time     // what last counts from
	last  atomic.Int64  // end of the last step, in nanoseconds
	long  atomic.Bool   // it was no short one
	count atomic.Uint32 // of turns that were free
}

// free is for a call whose turn was free.
func (s *steps) free() {
	if s.long.Load() || s.count.Add(1)%stepEvery == 0 {
		s.back()
	}
}

// given is for a call that waited for its turn.
func (s *steps) given() {
	if time.Since(s.start)-time.Duration(s.last.Load()) >= slice {
		s.back()
	}
}

func (s *steps) back() {
	begin := time.Since(s.start)
	runtime.Gosched()
	end := time.Since(s.start)
	s.last.Store(int64(end))
	if long := end-begin >= shortStep; long != s.long.Load() {
		s.long.Store(long)
	}
}
