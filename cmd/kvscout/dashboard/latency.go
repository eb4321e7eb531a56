package dashboard

import (
	"math"
	"time"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/latency"
)

// LatencyCounts are the durations that a server counted.
func LatencyCounts(l *kvscoutv1.LatencyStats) latency.Counts {
	c := latency.Counts{Sum: secondsOf(l.GetSumSeconds())}
	for _, b := range l.GetBuckets() {
		c.Buckets = append(c.Buckets, latency.Bucket{
			Lower: secondsOf(b.GetLowerSeconds()), Upper: secondsOf(b.GetUpperSeconds()), Count: b.GetCount(),
		})
	}
	return c
}

// secondsOf rounds, so that what was a duration is the same one again.
func secondsOf(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }
