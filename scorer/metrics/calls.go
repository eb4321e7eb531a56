package metrics

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kvscout/kvscout/scorer/calls"
)

// durations are the upper ends of the classic buckets, in seconds: a score takes well below a millisecond, a render up to
// seconds. Servers of native histograms get finer ones.
var durations = []float64{50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3, 0.1, 0.2, 0.5, 1, 5}

// histogramOpts are those of every duration.
func histogramOpts(name, help string) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Namespace: namespace, Name: name, Help: help, Buckets: durations,
		NativeHistogramBucketFactor: 1.2, NativeHistogramMaxBucketNumber: 100,
	}
}

// Calls counts calls by method and code. Make it with NewCalls; it is safe for concurrent use.
type Calls struct {
	vec *prometheus.HistogramVec
	// known are the series so far, copied when there is a new one: finding one so costs less than by its labels.
	known atomic.Pointer[map[callSeries]prometheus.Observer]
	mu    sync.Mutex // held while known is replaced; guards nothing else
}

type callSeries struct{ method, code string }

// NewCalls registers the metrics of calls.
func NewCalls(reg prometheus.Registerer) *Calls {
	c := &Calls{vec: prometheus.NewHistogramVec(histogramOpts("call_duration_seconds",
		"Seconds from the headers of a call to the last byte of its answer, by method and code; of a stream, as long as it lasts."),
		[]string{"method", "code"})}
	reg.MustRegister(c.vec)
	c.known.Store(&map[callSeries]prometheus.Observer{})
	return c
}

// Observe counts one call; it fits calls.Options.Observe.
func (c *Calls) Observe(d calls.Done) {
	key := callSeries{d.Method, d.Code}
	series, ok := (*c.known.Load())[key]
	if !ok {
		series = c.add(key)
	}
	if e, ok := series.(prometheus.ExemplarObserver); ok && d.Trace.IsSampled() {
		e.ObserveWithExemplar(d.Duration.Seconds(), prometheus.Labels{"trace_id": d.Trace.TraceID().String()})
		return
	}
	series.Observe(d.Duration.Seconds())
}

// add makes a series. There are as many as methods and codes that go together.
func (c *Calls) add(key callSeries) prometheus.Observer {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := maps.Clone(*c.known.Load())
	known[key] = c.vec.WithLabelValues(key.method, key.code)
	c.known.Store(&known)
	return known[key]
}
