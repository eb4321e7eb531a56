package dashboard

import (
	"fmt"
	"strings"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/latency"
)

// callLines is how the calls of Score do.
func callLines(s *sample, w int) []string {
	score := s.stats.GetScore()
	var out []string
	add := func(label, text string) { out = append(out, labelled(label, text, w)...) }
	graph := func(label, now string, of func(point) float64) {
		out = append(out, labelled(label, fit(now, 12, false)+faint.in(spark(points(s.history, of), min(maxHistory, w-25))), w)...)
	}
	graph("Scores", perSecond(s.scores), func(p point) float64 { return p.scores })
	graph("Errors", perSecond(s.errors), func(p point) float64 { return p.errors })
	recent, span := s.recent()
	graph("p99", brief(recent.Quantile(0.99)), func(p point) float64 { return float64(p.p99) })
	add("Under way", fmt.Sprintf("%d of %d calls", score.GetInFlight(), score.GetMaxInFlight()))
	out = append(out, "", strong.in("Latency     "+latencyHead))
	out = append(out, latencyLine("last "+brief(span), recent), latencyLine("all", s.latency))
	out = append(out, bars(recent, w)...)
	out = append(out, "")
	add("By reason", countsText(score.GetErrors()))
	add("Routed", fmt.Sprintf("%d credited: %d waiting, %d confirmed, %d expired, %d dropped", score.GetRouted(), score.GetRoutedWaiting(),
		score.GetRoutedConfirmed(), score.GetRoutedExpired(), score.GetRoutedDropped()))
	add("Remembered", plural(score.GetRemembered(), "answer"))
	return append(out, rendererLines(s.stats.GetRenderers(), w)...)
}

// points are the history without its first, of which no rate is known.
func points(history []point, of func(point) float64) []float64 {
	var out []float64
	for _, p := range history[1:] {
		out = append(out, of(p))
	}
	return out
}

const latencyHead = "    p50     p90     p99   p99.9    mean   calls"

func latencyLine(label string, c latency.Counts) string {
	line := fit(label, 12, false)
	if c.Total() == 0 {
		return line + "no answer"
	}
	for _, q := range []float64{0.5, 0.9, 0.99, 0.999} {
		line += fit(brief(c.Quantile(q)), 7, true) + " "
	}
	return line + fit(brief(c.Mean()), 7, true) + " " + fit(count(c.Total()), 7, true)
}

// bars draws how durations spread, a line for each doubling that has some.
func bars(c latency.Counts, w int) []string {
	total := c.Total()
	if total == 0 {
		return nil
	}
	octaves := make(map[int]uint64)
	first, last := 1<<30, 0
	for _, b := range c.Buckets {
		o := 0
		for d := b.Lower; d > 1024; d /= 2 {
			o++
		}
		octaves[o] += b.Count
		first, last = min(first, o), max(last, o)
	}
	var out []string
	const label = 20
	for o := first; o <= last; o++ {
		n := octaves[o]
		width := int(float64(w-label-10) * float64(n) / float64(total))
		if n > 0 {
			width = max(1, width)
		}
		out = append(out, fit(octaveText(o), 12, false)+fit(percentText(float64(n)/float64(total)), 6, true)+"  "+
			faint.in(strings.Repeat("█", max(0, width))))
	}
	return out
}

// octaveText is the range of durations of a bar.
func octaveText(o int) string {
	if o == 0 {
		return "below " + brief(1024)
	}
	return brief(512<<o) + ".." + brief(1024<<o)
}

// rendererLines has a line for each renderer; nothing without any.
func rendererLines(list []*kvscoutv1.RendererStats, w int) []string {
	if len(list) == 0 {
		return nil
	}
	out := []string{"", strong.in("Renderers")}
	for _, r := range list {
		model := clean(r.GetModel())
		if model == "" {
			model = "(others)"
		}
		state := good.in("ready")
		if !r.GetReady() {
			state = bad.in("not ready")
		}
		text := fmt.Sprintf("  %s by %s: %s, %s calls, %s from its cache, errors: %s", model, clean(r.GetRenderer()), state,
			count(r.GetCalls()), count(r.GetCacheHits()), countsText(r.GetErrors()))
		if r.GetError() != "" {
			text += "; " + clean(r.GetError())
		}
		out = append(out, wrap(text, w)...)
	}
	return out
}
