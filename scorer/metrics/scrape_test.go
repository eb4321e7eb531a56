package metrics_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.uber.org/goleak"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// registry tells s, as a server does.
func registry(s *kvscoutv1.Stats) *prometheus.Registry {
	reg := metrics.NewRegistry("v1")
	reg.MustRegister(metrics.NewCollector(func(time.Time) *kvscoutv1.Stats { return s }))
	return reg
}

// scrape reads reg over HTTP, as Prometheus' text format is read.
func scrape(t testing.TB, reg *prometheus.Registry) map[string]*dto.MetricFamily {
	t.Helper()
	srv := httptest.NewServer(metrics.Handler(reg, slog.New(slog.DiscardHandler)))
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d", resp.StatusCode)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation) // names must be legal everywhere
	got, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// gather is scrape without the text, which of many sources takes long to read.
func gather(t testing.TB, reg *prometheus.Registry) map[string]*dto.MetricFamily {
	t.Helper()
	list, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]*dto.MetricFamily)
	for _, f := range list {
		out[f.GetName()] = f
	}
	return out
}

// labels are those of a metric but le.
func labels(m *dto.Metric) map[string]string {
	out := make(map[string]string)
	for _, l := range m.GetLabel() {
		out[l.GetName()] = l.GetValue()
	}
	return out
}

// value is that of the series of a family with these labels, given as name, value.
func value(t testing.TB, got map[string]*dto.MetricFamily, name string, want ...string) float64 {
	t.Helper()
next:
	for _, m := range got[name].GetMetric() {
		have := labels(m)
		for i := 0; i < len(want); i += 2 {
			if have[want[i]] != want[i+1] {
				continue next
			}
		}
		if h := m.GetHistogram(); h != nil {
			return float64(h.GetSampleCount())
		}
		return m.GetGauge().GetValue() + m.GetCounter().GetValue()
	}
	t.Fatalf("no %s%v in %v", name, want, got[name])
	return 0
}
