package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

var (
	scoreRequests = counter("score_requests_total", "Requests of Score, ScoreBatch, ScoreStream, reports and Render that ended, by outcome (ok, error) and the error's reason.", "outcome", "reason")
	scoreDuration = describe("score_duration_seconds", "Seconds that requests of Score, ScoreBatch and ScoreStream took which ended without an error, a wait for the renderer included and the network not.", nil)
	inFlight      = gauge("score_in_flight", "Requests of Score and Render under way.")
	maxInFlight   = gauge("score_in_flight_max", "How many may be, as kvscout_access_calls_max.")
	scoreWaiting  = gauge("score_waiting", "Of the requests under way those that wait for their turn to be rated.")
	remembered    = gauge("score_remembered", "Answers kept for reports.")
	routed        = counter("routed_credits_total", "Calls of ReportRouted that credited something.")
	routedWaiting = gauge("routed_credits_waiting", "Credits that wait to be confirmed.")
	routedEnded   = counter("routed_credits_ended_total", "Credits that ended, by outcome: confirmed by events, expired, or dropped with their source.", "outcome")

	rendererReady   = gauge("renderer_ready", "1 if the renderer is used, 0 if requests for it are refused.", "model", "renderer")
	rendererCalls   = counter("renderer_calls_total", "Requests asked of a renderer, those answered from its cache not counted.", "model", "renderer")
	rendererHits    = counter("renderer_cache_hits_total", "Requests answered from the renderer's cache.", "model", "renderer")
	rendererErrors  = counter("renderer_errors_total", "Requests of a renderer that failed, by reason.", "model", "renderer", "reason")
	rendererCache   = gauge("renderer_cache_bytes", "Bytes that the renderer's cache holds.", "model", "renderer")
	rendererMemory  = gauge("renderer_memory_bytes", "Bytes that the files of the renderer's model take in memory; 0 for a remote one.", "model", "renderer")
	rendererLoading = counter("renderer_loads_total", "How often the renderer's files were loaded.", "model", "renderer")
)

// scoreBounds are the upper ends of the buckets of kvscout_score_duration_seconds: each octave of package latency
// from 16 us to 17 s.
var scoreBounds = func() (out []time.Duration) {
	for ns := int64(1 << 14); ns <= 1<<34; ns <<= 1 {
		out = append(out, time.Duration(ns))
	}
	return out
}()

func (t telling) score(s *kvscoutv1.ScoreStats, answered uint64) {
	if s == nil {
		return
	}
	t.count(scoreRequests, answered, "ok", "")
	for reason, n := range s.GetErrors() {
		t.count(scoreRequests, n, "error", reason)
	}
	t.latency(s.GetLatency())
	t.count(inFlight, uint64(s.GetInFlight()))
	t.count(maxInFlight, uint64(s.GetMaxInFlight()))
	t.count(scoreWaiting, uint64(s.GetWaiting()))
	t.count(remembered, s.GetRemembered())
	t.count(routed, s.GetRouted())
	t.count(routedWaiting, s.GetRoutedWaiting())
	t.count(routedEnded, s.GetRoutedConfirmed(), "confirmed")
	t.count(routedEnded, s.GetRoutedExpired(), "expired")
	t.count(routedEnded, s.GetRoutedDropped(), "dropped")
}

// latency tells the histogram that the service keeps, in fewer buckets.
func (t telling) latency(l *kvscoutv1.LatencyStats) {
	buckets := make(map[float64]uint64, len(scoreBounds))
	var total uint64
	list := l.GetBuckets()
	for _, bound := range scoreBounds {
		// Half a nanosecond more: the ends of buckets went through a float.
		for len(list) > 0 && list[0].GetUpperSeconds() > 0 && list[0].GetUpperSeconds() <= bound.Seconds()+0.5e-9 {
			total += list[0].GetCount()
			list = list[1:]
		}
		buckets[bound.Seconds()] = total
	}
	for _, b := range list {
		total += b.GetCount()
	}
	m, err := prometheus.NewConstHistogram(scoreDuration, total, l.GetSumSeconds(), buckets)
	if err != nil {
		m = prometheus.NewInvalidMetric(scoreDuration, err)
	}
	t.out <- m
}

func (t telling) renderers(list []*kvscoutv1.RendererStats) {
	for _, r := range list {
		model, name := r.GetModel(), r.GetRenderer()
		t.truth(rendererReady, r.GetReady(), model, name)
		t.count(rendererCalls, r.GetCalls(), model, name)
		t.count(rendererHits, r.GetCacheHits(), model, name)
		t.count(rendererCache, r.GetCacheBytes(), model, name)
		t.count(rendererMemory, r.GetMemoryBytes(), model, name)
		t.count(rendererLoading, r.GetLoads(), model, name)
		for reason, n := range r.GetErrors() {
			t.count(rendererErrors, n, model, name, reason)
		}
	}
}
