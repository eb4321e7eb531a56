package latency

import (
	"math"
	"slices"
	"time"
)

// Counts is a histogram as of one moment.
type Counts struct {
	// Buckets in ascending order; those without a duration are left out.
	Buckets []Bucket
	// Sum of all durations.
	Sum time.Duration
}

// Bucket counts durations from Lower up to, not including, Upper. An Upper of 0 is none.
type Bucket struct {
	Lower, Upper time.Duration
	Count        uint64
}

// Total is the number of durations.
func (c Counts) Total() uint64 {
	var n uint64
	for _, b := range c.Buckets {
		n += b.Count
	}
	return n
}

// Mean of all durations, 0 without any.
func (c Counts) Mean() time.Duration {
	n := c.Total()
	if n == 0 {
		return 0
	}
	return c.Sum / time.Duration(min(n, math.MaxInt64))
}

// Quantile is about the duration that the share q of all do not exceed: q 0.5 is the median. It lies in the right bucket,
// in proportion within it; of a bucket without an upper end it is the lower. It is 0 without durations.
func (c Counts) Quantile(q float64) time.Duration {
	total := c.Total()
	if total == 0 {
		return 0
	}
	rank := min(1, max(0, q)) * float64(total)
	var below float64
	for _, b := range c.Buckets {
		n := float64(b.Count)
		if below+n >= rank && b.Count > 0 {
			width := max(0, b.Upper-b.Lower)
			return b.Lower + time.Duration(float64(width)*max(0, rank-below)/n)
		}
		below += n
	}
	return c.Buckets[len(c.Buckets)-1].Lower
}

// Sub is what came since earlier, of the same histogram. If it is not, or counts fell because its process began anew, all
// of c came since.
func (c Counts) Sub(earlier Counts) Counts {
	out := Counts{Sum: c.Sum - earlier.Sum}
	at := 0
	for _, b := range c.Buckets {
		if at < len(earlier.Buckets) && earlier.Buckets[at].Lower == b.Lower {
			if earlier.Buckets[at].Count > b.Count {
				return c
			}
			b.Count -= earlier.Buckets[at].Count
			at++
		}
		if b.Count > 0 {
			out.Buckets = append(out.Buckets, b)
		}
	}
	if at < len(earlier.Buckets) || out.Sum < 0 { // it had a bucket that c has not
		return Counts{Buckets: slices.Clone(c.Buckets), Sum: c.Sum}
	}
	return out
}
