package scorerpc

import (
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/latency"
)

func latencyOf(c latency.Counts) *kvscoutv1.LatencyStats {
	out := &kvscoutv1.LatencyStats{Count: c.Total(), SumSeconds: c.Sum.Seconds()}
	for _, b := range c.Buckets {
		out.Buckets = append(out.Buckets, &kvscoutv1.LatencyBucket{
			LowerSeconds: b.Lower.Seconds(), UpperSeconds: b.Upper.Seconds(), Count: b.Count,
		})
	}
	return out
}
