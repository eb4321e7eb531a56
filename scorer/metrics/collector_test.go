package metrics_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

func TestCollector_Source(t *testing.T) {
	s := &kvscoutv1.Stats{Sources: []*kvscoutv1.SourceStats{
		{
			WorkerId: "10.0.0.7:8000", Rank: 1, Model: "m", Engine: "vllm", StoredEvents: 7, RemovedEvents: 8, Gaps: 2, LagSeconds: proto.Float64(0.25),
			Freshness: &kvscoutv1.Freshness{State: kvscoutv1.FreshnessState_FRESHNESS_STATE_STALE, LastSequence: proto.Uint64(0), AgeSeconds: proto.Float64(40)},
			Rejected:  map[string]uint64{"bad_event": 3},
			Tiers:     []*kvscoutv1.TierBlocks{{Tier: kvscoutv1.Tier_TIER_HOST, Blocks: 5}},
			Accuracy: &kvscoutv1.Accuracy{Outcomes: 6, Equal: 3, Over: 2, Under: 1, Recent: proto.Float64(0.5), Flagged: true,
				Cause: kvscoutv1.AccuracyCause_ACCURACY_CAUSE_BLOCK_SIZE},
		},
		{WorkerId: "bad\xff", Freshness: &kvscoutv1.Freshness{State: kvscoutv1.FreshnessState_FRESHNESS_STATE_LIVE}},
	}}
	got := scrape(t, registry(s))
	at := []string{"worker", "10.0.0.7:8000", "rank", "1"}
	for _, c := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"kvscout_source_state", append(at, "state", "stale"), 1},
		{"kvscout_source_info", append(at, "model", "m", "engine", "vllm"), 1},
		{"kvscout_source_sequence", at, 0},
		{"kvscout_source_event_age_seconds", at, 40},
		{"kvscout_source_lag_seconds", at, 0.25},
		{"kvscout_source_events_total", append(at, "kind", "stored"), 7},
		{"kvscout_source_events_total", append(at, "kind", "removed"), 8},
		{"kvscout_source_gaps_total", at, 2},
		{"kvscout_source_rejected_total", append(at, "reason", "bad_event"), 3},
		{"kvscout_source_blocks", append(at, "tier", "host"), 5},
		{"kvscout_source_outcomes_total", append(at, "result", "over"), 2},
		{"kvscout_source_accuracy_ratio", at, 0.5},
		{"kvscout_source_flagged", append(at, "cause", "block_size"), 1},
		{"kvscout_source_state", []string{"worker", "bad\uFFFD", "state", "live"}, 1},
		{"kvscout_sources", []string{"state", "stale"}, 1},
		{"kvscout_workers", nil, 2},
		{"kvscout_sources_omitted", nil, 0},
	} {
		if v := value(t, got, c.name, c.labels...); v != c.want {
			t.Errorf("%s%v = %v, want %v", c.name, c.labels, v, c.want)
		}
	}
	// What was never heard is absent, not zero (rule 13).
	for _, name := range []string{"kvscout_source_sequence", "kvscout_source_event_age_seconds", "kvscout_source_lag_seconds", "kvscout_source_accuracy_ratio"} {
		if n := len(got[name].GetMetric()); n != 1 {
			t.Errorf("%s has %d series, of sources of which one said nothing", name, n)
		}
	}
}

// The requests without an error are a difference of counters that are read one after the other: they never fall.
func TestCollector_CountersNeverFall(t *testing.T) {
	s := &kvscoutv1.Stats{Score: &kvscoutv1.ScoreStats{Requests: 10, Errors: map[string]uint64{"NO_PROMPT": 2}}}
	reg := registry(s)
	for _, c := range []struct{ requests, failed, want uint64 }{{10, 2, 8}, {10, 4, 8}, {20, 4, 16}, {1, 4, 16}} {
		s.Score.Requests, s.Score.Errors["NO_PROMPT"] = c.requests, c.failed
		got := scrape(t, reg)
		if v := value(t, got, "kvscout_score_requests_total", "outcome", "ok"); v != float64(c.want) {
			t.Errorf("%+v: %v", c, v)
		}
		if v := value(t, got, "kvscout_score_requests_total", "reason", "NO_PROMPT"); v != float64(c.failed) {
			t.Errorf("%+v: %v failed", c, v)
		}
	}
}

// The buckets of a scrape hold what the service counted: each duration in the bucket above it.
func TestCollector_ScoreDuration(t *testing.T) {
	seconds := func(ns int) float64 { return time.Duration(ns).Seconds() }
	s := &kvscoutv1.Stats{Score: &kvscoutv1.ScoreStats{Latency: &kvscoutv1.LatencyStats{Count: 10, SumSeconds: 1.5, Buckets: []*kvscoutv1.LatencyBucket{
		{UpperSeconds: seconds(1 << 10), Count: 1},
		{LowerSeconds: seconds(7 << 11), UpperSeconds: seconds(1 << 14), Count: 2},
		{LowerSeconds: seconds(1 << 14), UpperSeconds: seconds(5 << 12), Count: 3},
		{LowerSeconds: seconds(1 << 36), Count: 4},
	}}}}
	h := scrape(t, registry(s))["kvscout_score_duration_seconds"].GetMetric()[0].GetHistogram()
	if h.GetSampleCount() != 10 || h.GetSampleSum() != 1.5 {
		t.Errorf("%v", h)
	}
	counts := make(map[float64]uint64)
	for _, b := range h.GetBucket() {
		counts[b.GetUpperBound()] = b.GetCumulativeCount()
	}
	for le, want := range map[float64]uint64{seconds(1 << 14): 3, seconds(1 << 15): 6, seconds(1 << 34): 6} {
		if counts[le] != want {
			t.Errorf("up to %v: %d, want %d", le, counts[le], want)
		}
	}
}

func fleet(n int) *kvscoutv1.Stats {
	one := everything()
	out := proto.CloneOf(one)
	out.Sources = nil
	for i := range n {
		src := proto.CloneOf(one.GetSources()[0])
		src.WorkerId = fmt.Sprintf("10.0.%d.%d:8000", i>>8, i&255)
		out.Sources = append(out.Sources, src)
	}
	return out
}

// Rule 17: sources over the bound have no metrics of their own, and are counted.
func TestCollector_BoundsSources(t *testing.T) {
	got := gather(t, registry(fleet(5000)))
	if n := len(got["kvscout_source_info"].GetMetric()); n != 4096 {
		t.Errorf("%d sources have metrics", n)
	}
	if v := value(t, got, "kvscout_sources_omitted"); v != 904 {
		t.Errorf("%v are left out", v)
	}
	if v := value(t, got, "kvscout_workers"); v != 5000 {
		t.Errorf("%v workers", v)
	}
}

// BenchmarkGather is what a scrape of 1,000 sources costs before it is written.
func BenchmarkGather(b *testing.B) {
	reg := registry(fleet(1000))
	for b.Loop() {
		if _, err := reg.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
