package metrics

import (
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	namespace = "kvscout"
	// maxScrapes bounds the scrapes that run at once, scrapeTimeout how long one may take.
	maxScrapes    = 4
	scrapeTimeout = 10 * time.Second
)

// NewRegistry returns a registry with the metrics of the process, the Go runtime and the build.
func NewRegistry(version string) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "Always 1; the labels tell version and Go version.",
	}, []string{"version", "go_version"})
	info.WithLabelValues(version, runtime.Version()).Set(1)
	reg.MustRegister(info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}

// Handler answers scrapes of reg, in OpenMetrics with exemplars for those who ask for it. One metric that cannot be told
// costs that metric: the rest is answered, and the fault is logged and counted.
func Handler(reg *prometheus.Registry, log *slog.Logger) http.Handler {
	return promhttp.InstrumentMetricHandler(reg, promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.ContinueOnError,
		Registry:            reg,
		MaxRequestsInFlight: maxScrapes,
		Timeout:             scrapeTimeout,
		EnableOpenMetrics:   true,
	}))
}
