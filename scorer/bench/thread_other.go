//go:build !linux

package bench

import (
	"context"
	"sync/atomic"
	"time"
)

// onThread is for Linux.
func onThread(context.Context, []Caller, []*tally, Load, *atomic.Bool) (drive func(context.Context), ok bool) {
	return nil, false
}

// longestWait bounds a wait that does not see the end of its context.
const longestWait = 10 * time.Millisecond

// pause waits for at most d.
func pause(d time.Duration) { time.Sleep(min(d, longestWait)) }
