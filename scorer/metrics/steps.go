package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Steps times what requests of Score spend most on. Make it with NewSteps; it is safe for concurrent use.
type Steps struct {
	renders *prometheus.HistogramVec
	lookups prometheus.Histogram
}

// NewSteps registers the metrics of steps.
func NewSteps(reg prometheus.Registerer) *Steps {
	s := &Steps{
		renders: prometheus.NewHistogramVec(histogramOpts("render_duration_seconds",
			"Seconds that renders took, a wait for a free slot included, by model and outcome: rendered, cached, failed."), []string{"model", "outcome"}),
		lookups: prometheus.NewHistogram(histogramOpts("lookup_duration_seconds",
			"Seconds that lookups of a prompt in the index took, the hashing of its blocks included.")),
	}
	reg.MustRegister(s.renders, s.lookups)
	return s
}

// Rendered fits scorerpc.Options.Rendered. Models are those that workers serve, so there are few.
func (s *Steps) Rendered(model, outcome string, took time.Duration) {
	s.renders.WithLabelValues(model, outcome).Observe(took.Seconds())
}

// LookedUp fits scorerpc.Options.LookedUp.
func (s *Steps) LookedUp(took time.Duration) { s.lookups.Observe(took.Seconds()) }
