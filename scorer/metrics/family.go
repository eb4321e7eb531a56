package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// family is one metric that is told at a scrape.
type family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func gauge(name, help string, labels ...string) family {
	return family{describe(name, help, labels), prometheus.GaugeValue}
}

func counter(name, help string, labels ...string) family {
	return family{describe(name, help, labels), prometheus.CounterValue}
}

func describe(name, help string, labels []string) *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_"+name, help, labels, nil)
}

// telling sends values to one scrape.
type telling struct{ out chan<- prometheus.Metric }

// value sends one. Ids come from files and calls, so what is no UTF-8 in them is replaced.
func (t telling) value(f family, v float64, labels ...string) {
	for i, l := range labels {
		labels[i] = strings.ToValidUTF8(l, "\uFFFD")
	}
	m, err := prometheus.NewConstMetric(f.desc, f.kind, v, labels...)
	if err != nil {
		m = prometheus.NewInvalidMetric(f.desc, err)
	}
	t.out <- m
}

// count is value for a counter of ours.
func (t telling) count(f family, n uint64, labels ...string) { t.value(f, float64(n), labels...) }

// truth is value for yes and no.
func (t telling) truth(f family, yes bool, labels ...string) {
	v := 0.0
	if yes {
		v = 1
	}
	t.value(f, v, labels...)
}
