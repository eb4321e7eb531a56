package bench

import (
	"maps"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Report is what a load found.
type Report struct {
	// Requests is how many prompts were scored right a second, P50 and P99 what a call took, in microseconds.
	Requests float64 `json:"requests_per_s"`
	P50      float64 `json:"p50_us"`
	P99      float64 `json:"p99_us"`
	// Errors is how many calls had no right answer, Reasons the same by reason. First is the first of them.
	Errors  uint64            `json:"errors"`
	Reasons map[string]uint64 `json:"error_reasons,omitempty"`
	First   error             `json:"-"`
	// Calls were answered right, in so many seconds.
	Calls   int64   `json:"calls"`
	Seconds float64 `json:"seconds"`
	// Max is the slowest call, in microseconds.
	Max float64 `json:"max_us"`
	// ServerCPU and ClientCPU are microseconds of processor time for each prompt. Absent: the server's is not known.
	ServerCPU *float64 `json:"server_cpu_us,omitempty"`
	ClientCPU float64  `json:"client_cpu_us"`
}

// report puts the tallies together.
func report(tallies []*tally, used spent, scores int) Report {
	all := hdrhistogram.New(leastLatency, mostLatency, digits)
	r := Report{Reasons: make(map[string]uint64)}
	for _, t := range tallies {
		all.Merge(t.latencies)
		for reason, n := range t.failed {
			r.Reasons[reason] += n
			r.Errors += n
		}
		if r.First == nil || t.first != nil && reasonOf(r.First) != ReasonConnection && reasonOf(t.first) == ReasonConnection {
			r.First = t.first
		}
	}
	r.Calls = all.TotalCount()
	r.Seconds = used.lasted.Seconds()
	done := float64(r.Calls) * float64(scores)
	r.Requests = done / max(r.Seconds, 1e-9)
	r.P50, r.P99, r.Max = microseconds(all.ValueAtQuantile(50)), microseconds(all.ValueAtQuantile(99)), microseconds(all.Max())
	if r.Calls == 0 {
		return r
	}
	r.ClientCPU = microseconds(int64(used.client)) / done
	if used.serverKnown {
		cpu := microseconds(int64(used.server)) / done
		r.ServerCPU = &cpu
	}
	return r
}

func microseconds(ns int64) float64 { return float64(ns) / float64(time.Microsecond) }

// Names are the reasons of errors, sorted.
func (r Report) Names() []string { return slices.Sorted(maps.Keys(r.Reasons)) }
