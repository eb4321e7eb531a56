package scorerpc

import (
	"cmp"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/ingest"
	"github.com/kvscout/kvscout/scorer"
)

// pass takes note of a match that is not to be rated: the best of these is told as the best outside. Of a salted request
// nothing can be said of an engine that publishes no salts, nor of a worker that renders otherwise.
func (s *Service) pass(c *choice, m *indexer.Match, p *prompt, w scorer.Weights) {
	score := scorer.Score(m, p.tokens, w)
	if score == 0 || p.query.Salt != "" && !ingest.PublishesSalts(m.Source) {
		return
	}
	if p.render.GetFingerprint() != "" {
		if worker, ok := s.fleet.Worker(m.Source.Worker); ok && rendersOtherwise(worker, p.render.GetFingerprint()) {
			return
		}
	}
	if o := &c.outside; o.Match != nil && (o.Score > score || o.Score == score && cmp.Or(
		cmp.Compare(m.Source.Worker, o.Source.Worker),
		cmp.Compare(m.Source.Rank, o.Source.Rank),
	) >= 0) {
		return
	}
	c.outside = scorer.Ranked{Match: m, Score: score}
}

// outside is the best outside as a message; nil if there is none.
func (a *answer) outside() *kvscoutv1.WorkerScore {
	if a.chosen.outside.Match == nil {
		return nil
	}
	return a.worker(&a.chosen.outside, new(row))
}

// predicted says how many tokens beyond those of every tier ReportRouted announced of a match; nil if of none. Nothing is
// announced of a worker that the index does not know, that serves another model, or whose engine could not confirm it.
func (a *answer) predicted() func(*indexer.Match) int {
	if len(a.credits) == 0 {
		return nil
	}
	return func(m *indexer.Match) int {
		id := m.Source.Worker
		if a.chosen.unknown[id] || a.chosen.saltless[id] || m.Source.Model != a.chosen.model || m.Freshness.State == events.StateStale {
			return 0
		}
		return max(0, a.credits[keyOf(m.Source)]-m.Reach())
	}
}
