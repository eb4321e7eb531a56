package scorer

import (
	"fmt"
	"math/rand/v2"
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

// BenchmarkRank rates and sorts the matches of sources that come in no order, for 8 prompts in turn.
func BenchmarkRank(b *testing.B) {
	for _, n := range []int{64, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var asked [8][]*indexer.Match
			list, w, order := benchMatches(n), DefaultWeights(), rand.New(rand.NewPCG(1, 2))
			for i := range asked {
				for _, at := range order.Perm(n) {
					asked[i] = append(asked[i], &list[at])
				}
			}
			var got []Ranked
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if got = RankPredicted(got, asked[i%8], nil, 4096, w); got[0].Score < got[n-1].Score {
					b.Fatal("the best is not the first")
				}
			}
		})
	}
}
