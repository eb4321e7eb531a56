package scorer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

// ErrWeight is a tier weight outside 0 to 1.
var ErrWeight = errors.New("bad tier weight")

// Weights is what a token is worth by the fastest tier that holds it, each 0 to 1.
type Weights [events.TierCount]float64

// DefaultWeights is device 1, host 0.75, disk and shared 0.25, unknown 0.
func DefaultWeights() Weights {
	var w Weights
	w[events.TierDevice] = 1
	w[events.TierHost] = 0.75
	w[events.TierDisk] = 0.25
	w[events.TierShared] = 0.25
	return w
}

// Validate reports every weight that is not between 0 and 1, NaN included, each wrapping ErrWeight.
func (w Weights) Validate() error {
	var faults []error
	for t, v := range w {
		if !(v >= 0 && v <= 1) {
			faults = append(faults, fmt.Errorf("%w: %s is %v, want 0 to 1", ErrWeight, events.Tier(t), v))
		}
	}
	return errors.Join(faults...)
}

// Score rates a match between 0 and 1: the sum over tiers of weight times the tokens newly covered by the tier, by the
// tokens of the prompt. A stale source is worth nothing (rule 12).
func Score(m *indexer.Match, prompt int, w Weights) float64 { return score(m, prompt, &w) }

func score(m *indexer.Match, prompt int, w *Weights) float64 {
	if prompt <= 0 || m.Freshness.State == events.StateStale {
		return 0
	}
	sum := 0.0
	for t := range m.Covered {
		if n := m.Covered[t]; n > 0 {
			sum += w[t] * float64(n)
		}
	}
	return min(1, sum/float64(prompt))
}

// Predicted rates a match of which so many more tokens, beyond those of every tier, were announced by the router only:
// they count as lying on the device. The score is never above that of the match once the device holds all of it, if that
// is above the score without them.
func Predicted(m *indexer.Match, tokens, prompt int, w Weights) float64 {
	plain := Score(m, prompt, w)
	if tokens <= 0 || prompt <= 0 || m.Freshness.State == events.StateStale {
		return plain
	}
	confirmed := *m
	confirmed.Covered = [events.TierCount]int{events.TierDevice: m.Reach() + tokens}
	lifted := min(1, plain+w[events.TierDevice]*float64(tokens)/float64(prompt))
	return min(lifted, max(plain, Score(&confirmed, prompt, w)))
}

// Ranked is a match, not copied, with its score.
type Ranked struct {
	*indexer.Match
	// Predicted tokens are in the score and not in the match.
	Predicted int
	Score     float64
}

// Rank scores matches and sorts them, the best first, ties by worker and rank. The answer points into matches.
func Rank(matches []indexer.Match, prompt int, w Weights) []Ranked {
	list := make([]*indexer.Match, len(matches))
	for i := range matches {
		list[i] = &matches[i]
	}
	return RankPredicted(nil, list, nil, prompt, w)
}

// RankPredicted is Rank with what the router announced of each match; nil announces nothing. It makes the answer in memory, in
// the place of what that held, and in memory of its own where that is too small.
func RankPredicted(memory []Ranked, matches []*indexer.Match, predicted func(*indexer.Match) int, prompt int, w Weights) []Ranked {
	out := memory[:0]
	for _, m := range matches {
		n := 0
		if predicted != nil {
			n = predicted(m)
		}
		out = append(out, rate(m, n, prompt, &w))
	}
	slices.SortFunc(out, compareRanked)
	return out
}

// rate gives a match its score; predicted is how many tokens beyond those of every tier the router announced.
func rate(m *indexer.Match, predicted, prompt int, w *Weights) Ranked {
	if predicted <= 0 {
		return Ranked{Match: m, Score: score(m, prompt, w)}
	}
	return Ranked{Match: m, Predicted: predicted, Score: Predicted(m, predicted, prompt, *w)}
}

func compareRanked(a, b Ranked) int {
	switch { // never NaN
	case a.Score > b.Score:
		return -1
	case a.Score < b.Score:
		return 1
	}
	if c := cmp.Compare(a.Source.Worker, b.Source.Worker); c != 0 {
		return c
	}
	return cmp.Compare(a.Source.Rank, b.Source.Rank)
}
