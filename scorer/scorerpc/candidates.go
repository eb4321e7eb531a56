package scorerpc

import (
	"slices"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/indexer/ingest"
	"github.com/kvscout/kvscout/scorer"
)

// selection is whom a request wants rated, and by what.
type selection struct {
	candidates []string // each once, sorted; empty means all
	role       ingest.Role
	weights    scorer.Weights
}

func (s *Service) readSelection(req *kvscoutv1.ScoreRequest) (selection, error) {
	list := req.GetCandidates()
	if len(list) > s.opts.MaxCandidates {
		return selection{}, indexrpc.Failf(indexrpc.ReasonTooManyCandidates, "%d candidates, limit %d", len(list), s.opts.MaxCandidates)
	}
	role, err := indexrpc.RoleFrom(req.GetRole())
	if err != nil {
		return selection{}, err
	}
	weights := readWeights(s.opts.Weights, req.GetTierWeights())
	if err := weights.Validate(); err != nil {
		return selection{}, err
	}
	return selection{candidates: sortedOnce(list), role: role, weights: weights}, nil
}

// sortedOnce is the ids sorted, each once: the list itself where it is that already.
func sortedOnce(list []string) []string {
	for i := 1; i < len(list); i++ {
		if list[i-1] >= list[i] {
			return slices.Compact(slices.Sorted(slices.Values(list)))
		}
	}
	return list
}

// readWeights puts the weights that are present in place of the server's.
func readWeights(w scorer.Weights, asked *kvscoutv1.TierWeights) scorer.Weights {
	if asked == nil {
		return w
	}
	for tier, v := range map[events.Tier]*float64{
		events.TierDevice: asked.Device, events.TierHost: asked.Host, events.TierDisk: asked.Disk,
		events.TierShared: asked.Shared, events.TierUnknown: asked.Unknown,
	} {
		if v != nil {
			w[tier] = *v
		}
	}
	return w
}

// choice is the sources to be rated. Its sets are nil as long as nothing is in them.
type choice struct {
	matches []*indexer.Match
	// unknown candidates have a match without numbers in matches.
	unknown map[string]bool
	// elsewhere are candidates of another model, sorted. Each of their sources has a match without numbers.
	elsewhere []string
	// saltless workers publish no salts: nothing of a salted request can be credited to them.
	saltless map[string]bool
	// differing workers state another render fingerprint than the renderer.
	differing map[string]bool
	// unfit candidates are left out because of their role.
	unfit map[string]bool
	role  ingest.Role
	model string
	// outside is the best of the sources that are not to be rated, without a match if none of them holds anything.
	outside scorer.Ranked
}

// mark puts an id into one of the sets of a choice.
func mark(set *map[string]bool, id string) {
	if *set == nil {
		*set = make(map[string]bool)
	}
	(*set)[id] = true
}

// choose narrows matches to the candidates and the role, and adds what is to be said of candidates without a match. The
// choice points into matches, some of which it changes, and into d.
func (s *Service) choose(d *desk, matches []indexer.Match, p *prompt, want selection) choice {
	q := &p.query
	c := choice{role: want.role, model: q.Model, matches: d.matches[:0]}
	matched := append(d.matched[:0], make([]bool, len(want.candidates))...)
	// Only a role, or a fingerprint to compare with, makes it matter who the worker is.
	plain := want.role == ingest.RoleAny && p.render.GetFingerprint() == ""
	for i := range matches {
		m := &matches[i]
		id := m.Source.Worker
		if len(want.candidates) > 0 {
			at, ok := slices.BinarySearch(want.candidates, id)
			if !ok {
				s.pass(&c, m, p, want.weights)
				continue
			}
			matched[at] = true
		}
		if plain {
			c.add(m, q.Salt != "")
			continue
		}
		// A worker that is just leaving or arriving may be missing from the fleet; then no role is known to exclude it.
		if w, ok := s.fleet.Worker(id); !ok || w.Role.Serves(want.role) {
			c.add(m, q.Salt != "")
			if rendersOtherwise(w, p.render.GetFingerprint()) {
				mark(&c.differing, id)
			}
			continue
		}
		s.pass(&c, m, p, want.weights)
		if len(want.candidates) > 0 {
			mark(&c.unfit, id)
		}
	}
	for i, id := range want.candidates {
		if !matched[i] {
			s.addUnmatched(&c, id)
		}
	}
	s.addElsewhere(&c)
	d.matches, d.matched = c.matches, matched
	return c
}

// add takes a match, without its numbers if the request is salted and the source's engine publishes no salts: whatever
// was found, it was not found in the request's namespace.
func (c *choice) add(m *indexer.Match, salted bool) {
	if salted && !ingest.PublishesSalts(m.Source) {
		*m = indexer.Match{Source: m.Source, BlockSize: m.BlockSize, Bound: m.Bound, Freshness: m.Freshness}
		mark(&c.saltless, m.Source.Worker)
	}
	c.matches = append(c.matches, m)
}

// addUnmatched says of a candidate that no source of the model has what it is: unknown, or of another model.
func (s *Service) addUnmatched(c *choice, id string) {
	w, known := s.fleet.Worker(id)
	switch {
	case !known || w.Model == c.model: // of the model but without a source: it is just leaving
		mark(&c.unknown, id)
		c.matches = append(c.matches, &indexer.Match{Source: events.Source{Worker: id}})
	case !w.Role.Serves(c.role):
		mark(&c.unfit, id)
	default:
		c.elsewhere = append(c.elsewhere, id)
	}
}

// addElsewhere lists the sources of candidates of another model. That they hold nothing of the prompt is a fact:
// nothing matches across models (rule 3).
func (s *Service) addElsewhere(c *choice) {
	if len(c.elsewhere) == 0 {
		return
	}
	for _, l := range s.index.Ledgers() {
		src := l.Source()
		if _, ok := slices.BinarySearch(c.elsewhere, src.Worker); !ok {
			continue
		}
		m := &indexer.Match{Source: src, Freshness: l.Freshness()}
		if sizes := l.BlockSizes(); len(sizes) > 0 {
			m.BlockSize = sizes[0]
		}
		c.matches = append(c.matches, m)
	}
}
