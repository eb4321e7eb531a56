package scorer

import (
	"fmt"
	"testing"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

// benchMatches are what n sources hold of a prompt of 4,096 tokens: no two alike, some in slower tiers.
func benchMatches(n int) (out []indexer.Match) {
	for i := range n {
		m := indexer.Match{Source: events.Source{Worker: fmt.Sprintf("w%d", i*7%n)}, Held: i * 4096 / n}
		m.Covered[events.TierDevice] = m.Held
		m.Covered[events.TierHost] = (4096 - m.Held) / 2
		out = append(out, m)
	}
	return out
}

// BenchmarkScore rates one match.
func BenchmarkScore(b *testing.B) {
	m, w := benchMatches(2)[1], DefaultWeights()
	b.ReportAllocs()
	for b.Loop() {
		if got := Score(&m, 4096, w); got != 0.5+0.75*0.25 {
			b.Fatalf("score %v", got)
		}
	}
}

// BenchmarkRank rates and sorts the matches of 256 sources.
func BenchmarkRank(b *testing.B) {
	list, w := benchMatches(256), DefaultWeights()
	b.ReportAllocs()
	for b.Loop() {
		if got := Rank(list, 4096, w); got[0].Score < got[255].Score {
			b.Fatal("the best is not the first")
		}
	}
}
