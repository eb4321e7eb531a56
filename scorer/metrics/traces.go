package metrics

import "github.com/prometheus/client_golang/prometheus"

var traceSpans = counter("trace_spans_total", "Sampled spans, by what became of them: ended, exported, failed. What ended and is neither waits, or was lost because too many did.", "outcome")

// Traces tells what became of spans.
type Traces struct {
	// Stats returns the spans that ended, were exported, and failed to be.
	Stats func() (ended, exported, failed uint64)
}

// Describe implements prometheus.Collector.
func (Traces) Describe(out chan<- *prometheus.Desc) { out <- traceSpans.desc }

// Collect implements prometheus.Collector.
func (c Traces) Collect(out chan<- prometheus.Metric) {
	ended, exported, failed := c.Stats()
	t := telling{out}
	t.count(traceSpans, ended, "ended")
	t.count(traceSpans, exported, "exported")
	t.count(traceSpans, failed, "failed")
}
