package metrics

import (
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// MaxSources bounds the sources that have metrics of their own. Of more, the first by worker and rank have; all are in the
// sums, and kvscout_sources_omitted tells how many are left out.
const MaxSources = 4096

// Collector tells the statistics of the services. It holds nothing but what keeps counters from falling.
type Collector struct {
	stats func(now time.Time) *kvscoutv1.Stats

	mu sync.Mutex // guards answered
	// answered is the highest number of requests without an error told so far: it is a difference of counters that are read
	// one after the other, and may seem to fall.
	answered uint64
}

var _ prometheus.Collector = (*Collector)(nil)

// NewCollector tells what stats returns at each scrape. Its caller registers it.
func NewCollector(stats func(now time.Time) *kvscoutv1.Stats) *Collector {
	return &Collector{stats: stats}
}

// Describe implements prometheus.Collector. Nothing is described beforehand, so that registering reads no statistics; the
// test of the documents knows every name.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	s := c.stats(time.Now())
	t := telling{out}
	t.index(s)
	t.readiness(s.GetReadiness())
	t.sources(s.GetSources())
	t.score(s.GetScore(), c.answeredOf(s.GetScore()))
	t.renderers(s.GetRenderers())
	t.discovery(s.GetDiscovery())
	t.snapshot(s.GetSnapshot())
	t.log(s.GetLog())
	t.access(s.GetAccess())
}

// answeredOf is how many requests ended without an error.
func (c *Collector) answeredOf(s *kvscoutv1.ScoreStats) uint64 {
	n := s.GetRequests()
	for _, failed := range s.GetErrors() {
		n -= min(n, failed)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered = max(c.answered, n)
	return c.answered
}

// word is a value of an enumeration as labels have it.
func word(name, prefix string) string { return strings.ToLower(strings.TrimPrefix(name, prefix)) }
