package metrics_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kvscout/kvscout/scorer/calls"
	"github.com/kvscout/kvscout/scorer/metrics"
)

const document = "../../docs/observability.md"

var row = regexp.MustCompile("(?m)^\\| `(kvscout_[a-z0-9_]+)` \\| ([a-z]+) \\| ([^|]*) \\| .+ \\|$")

// all is a registry with every metric that a server can have.
func all() *prometheus.Registry {
	reg := registry(everything())
	c := metrics.NewCalls(reg)
	c.Observe(calls.Done{Method: "a/b", Code: "ok", Duration: time.Millisecond})
	steps := metrics.NewSteps(reg)
	steps.Rendered("m", "cached", time.Millisecond)
	steps.LookedUp(time.Microsecond)
	reg.MustRegister(metrics.Traces{Stats: func() (ended, exported, failed uint64) { return 3, 2, 1 }})
	return reg
}

// The tables of the document list each metric with its type and labels, and nothing else.
func TestDocumentListsEveryMetric(t *testing.T) {
	want := make(map[string]string)
	for name, f := range scrape(t, all()) {
		if !strings.HasPrefix(name, "kvscout_") {
			continue
		}
		names := slices.Sorted(maps.Keys(labels(f.GetMetric()[0])))
		want[name] = strings.ToLower(f.GetType().String()) + " " + strings.Join(names, ", ")
	}
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		if got[m[1]] != "" {
			t.Errorf("%s is listed twice", m[1])
		}
		names := strings.Fields(strings.ReplaceAll(m[3], ",", " "))
		slices.Sort(names)
		got[m[1]] = m[2] + " " + strings.Join(names, ", ")
	}
	for name, is := range want {
		if got[name] != is {
			t.Errorf("%s is %q in a scrape and %q in the document", name, is, got[name])
		}
	}
	for name := range got {
		if want[name] == "" {
			t.Errorf("%s of the document is in no scrape", name)
		}
	}
	if len(want) < 80 {
		t.Errorf("only %d metrics", len(want))
	}
}

// Names are those of base units, and counters end in _total.
func TestNames(t *testing.T) {
	for name, f := range scrape(t, all()) {
		counts := f.GetType().String() == "COUNTER"
		if strings.HasPrefix(name, "kvscout_") && counts != strings.HasSuffix(name, "_total") {
			t.Errorf("%s is a %v", name, f.GetType())
		}
		for _, unit := range []string{"_ms", "_milliseconds", "_micros", "_us", "_kb", "_mb", "_percent", "_minutes"} {
			if strings.HasPrefix(name, "kvscout_") && strings.Contains(name+"_", unit+"_") {
				t.Errorf("%s is in no base unit", name)
			}
		}
	}
}
