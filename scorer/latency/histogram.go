package latency

import (
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	minBits = 10 // durations under 2^10 ns are in the first bucket
	maxBits = 36 // those from 2^36 ns on in the last
	subBits = 2  // 4 buckets to each doubling

	bucketCount = (maxBits-minBits)<<subBits + 2
)

// Histogram counts durations. The zero value is empty and ready.
type Histogram struct {
	buckets [bucketCount]atomic.Uint64
	nanos   atomic.Uint64 // of all durations
}

// Add counts one duration; a negative one is as 0.
func (h *Histogram) Add(d time.Duration) {
	ns := uint64(max(0, d))
	h.buckets[bucketOf(ns)].Add(1)
	h.nanos.Add(ns)
}

// Since counts the time since begin, for a deferred call.
func (h *Histogram) Since(begin time.Time) { h.Add(time.Since(begin)) }

// Counts is what was added so far.
func (h *Histogram) Counts() Counts {
	c := Counts{Sum: time.Duration(h.nanos.Load())}
	for i := range h.buckets {
		if n := h.buckets[i].Load(); n > 0 {
			c.Buckets = append(c.Buckets, Bucket{Lower: lowerOf(i), Upper: lowerOf(i + 1), Count: n})
		}
	}
	return c
}

func bucketOf(ns uint64) int {
	switch n := bits.Len64(ns); {
	case n <= minBits:
		return 0
	case n > maxBits:
		return bucketCount - 1
	default:
		sub := ns >> (n - 1 - subBits) & (1<<subBits - 1)
		return 1 + (n-1-minBits)<<subBits + int(sub)
	}
}

// lowerOf is where bucket i begins, 0 behind the last one.
func lowerOf(i int) time.Duration {
	if i == 0 || i == bucketCount {
		return 0
	}
	octave, sub := (i-1)>>subBits, (i-1)&(1<<subBits-1)
	return time.Duration(1<<subBits|sub) << (minBits - subBits + octave)
}
