package scorerpc

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/scorer"
	"github.com/kvscout/kvscout/scorer/accuracy"
	"github.com/kvscout/kvscout/scorer/routed"
)

// answer turns what was found into messages.
type answer struct {
	chosen choice
	prompt prompt
	now    time.Time
	// credits are what ReportRouted announced, by source.
	credits  map[routed.Key]int
	accuracy *accuracy.Book
	// explained is what is to be said of sources, by source.
	explained map[routed.Key]*kvscoutv1.Explanation
}

func (a *answer) workers(ranked []scorer.Ranked, sh *sheet) []*kvscoutv1.WorkerScore {
	if len(ranked) == 0 {
		return nil
	}
	sh.make(len(ranked))
	for i := range ranked {
		sh.list[i] = a.worker(&ranked[i], &sh.rows[i])
	}
	return sh.list
}

// worker makes the entry of r in w.
func (a *answer) worker(r *scorer.Ranked, w *row) *kvscoutv1.WorkerScore {
	out := &w.score
	out.WorkerId = r.Source.Worker
	out.Rank = indexrpc.Count(r.Source.Rank)
	out.BlockSize = indexrpc.Count(r.BlockSize)
	out.Freshness = w.fresh.Fill(&r.Freshness, a.now)
	out.Bound = &w.bound
	out.Bound.Reasons = w.reasons[:0]
	indexrpc.FillBound(out.Bound, r.Bound)
	out.Known = !a.chosen.unknown[r.Source.Worker]
	a.bound(out, r)
	out.HeldTokens = indexrpc.Count(r.Held)
	out.Score = r.Score
	out.PredictedTokens = indexrpc.Count(r.Predicted)
	if !a.prompt.skipsCache {
		out.ReusableTokens = indexrpc.Count(r.Reusable)
	}
	out.Tiers = w.tiers[:0]
	for t := range r.Covered {
		if n := r.Covered[t]; n > 0 {
			tier := w.newTier()
			tier.Tier, tier.Tokens = indexrpc.TierOf(events.Tier(t)), indexrpc.Count(n)
			out.Tiers = append(out.Tiers, tier)
		}
	}
	if a.accuracy.AnyFlagged() {
		if report, ok := a.accuracy.Report(r.Source.Worker, r.Source.Rank); ok && report.Flagged {
			out.Flagged = accuracyOf(report)
		}
	}
	if a.explained != nil {
		out.Explanation = a.explained[routed.Key{Worker: r.Source.Worker, Rank: r.Source.Rank}]
	}
	return out
}

// bound says of an answer what this request makes unsure.
func (a *answer) bound(out *kvscoutv1.WorkerScore, r *scorer.Ranked) {
	switch {
	case !out.Known:
		lower(out.Bound, kvscoutv1.BoundReason_BOUND_REASON_UNKNOWN_WORKER)
	case a.chosen.saltless[r.Source.Worker]:
		lower(out.Bound, kvscoutv1.BoundReason_BOUND_REASON_HIDDEN_NAMESPACE)
	case a.prompt.otherModel != "" && r.Covered != [events.TierCount]int{}:
		upper(out.Bound, kvscoutv1.BoundReason_BOUND_REASON_HIDDEN_NAMESPACE) // perhaps an adapter without blocks
	}
	if a.chosen.differing[r.Source.Worker] {
		loosen(out.Bound, kvscoutv1.BoundKind_BOUND_KIND_ESTIMATE, kvscoutv1.BoundReason_BOUND_REASON_RENDER_DIFFERS)
	}
}

// lower adds a reason why the engine may hold more, upper one why it may hold less.
func lower(b *kvscoutv1.Bound, why kvscoutv1.BoundReason) {
	loosen(b, kvscoutv1.BoundKind_BOUND_KIND_LOWER, why)
}

func upper(b *kvscoutv1.Bound, why kvscoutv1.BoundReason) {
	loosen(b, kvscoutv1.BoundKind_BOUND_KIND_UPPER, why)
}

func loosen(b *kvscoutv1.Bound, kind kvscoutv1.BoundKind, why kvscoutv1.BoundReason) {
	switch b.Kind {
	case kvscoutv1.BoundKind_BOUND_KIND_EXACT, kind:
		b.Kind = kind
	default:
		b.Kind = kvscoutv1.BoundKind_BOUND_KIND_ESTIMATE
	}
	if !slices.Contains(b.Reasons, why) {
		b.Reasons = append(b.Reasons, why)
		slices.Sort(b.Reasons)
	}
}

// warnings are for people.
func (a *answer) warnings() []string {
	out := a.prompt.warnings()
	c := &a.chosen
	if len(c.elsewhere) > 0 {
		out = append(out, fmt.Sprintf("candidates serve another model than %q: %s", c.model, few(c.elsewhere)))
	}
	if len(c.saltless) > 0 {
		out = append(out, "engines publish no cache salts, so nothing of this salted request can be credited to "+few(slices.Sorted(maps.Keys(c.saltless))))
	}
	if len(c.differing) > 0 {
		out = append(out, "workers state another render fingerprint than the renderer: "+few(slices.Sorted(maps.Keys(c.differing))))
	}
	switch {
	case len(c.unfit) > 0:
		out = append(out, fmt.Sprintf("%d candidates are left out because they do not serve role %q", len(c.unfit), c.role))
	case len(c.matches) == 0:
		out = append(out, fmt.Sprintf("no worker serves model %q in role %q", c.model, c.role))
	}
	return out
}

// few names at most eight workers.
func few(ids []string) string {
	const most = 8
	text := make([]string, 0, most)
	for _, id := range ids[:min(len(ids), most)] {
		text = append(text, fmt.Sprintf("%.100q", id))
	}
	if len(ids) > most {
		text = append(text, fmt.Sprintf("and %d more", len(ids)-most))
	}
	return strings.Join(text, ", ")
}
