package scorerpc

import (
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/scorer"
)

// desk is what one call works on while it rates, used again by later ones. Nothing of an answer points into it.
type desk struct {
	reader  *indexer.Reader // what it finds lies in its own memory
	matches []*indexer.Match
	matched []bool // by candidate
	ranked  []scorer.Ranked
}

// rank is scorer.RankPredicted in the desk's memory.
func (d *desk) rank(matches []*indexer.Match, predicted func(*indexer.Match) int, prompt int, w scorer.Weights) []scorer.Ranked {
	out := d.ranked[:0]
	for _, m := range matches {
		n := 0
		if predicted != nil {
			n = predicted(m)
		}
		out = append(out, scorer.Rate(m, n, prompt, w))
	}
	scorer.Sort(out)
	d.ranked = out
	return out
}
