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

// pause waits for at most d.
func pause(d time.Duration) { time.Sleep(min(d, longestWait)) }
