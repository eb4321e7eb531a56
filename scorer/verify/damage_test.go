package verify

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/kvscout/kvscout/events/recording"
	"github.com/kvscout/kvscout/indexer"
)

// Whatever part of a stream is missing, no answer called exact is wrong and no bound fails to hold: late joins, holes
// anywhere, under both policies (rules 11 and 13, cases 9, 32, 49, 50).
func TestRule11_MissingBatchesNeverMakeAWrongAnswer(t *testing.T) {
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	// The first lost the first batches of a life whose beginning the recording shows.
	for _, seed := range []uint64{5900181462416162634, rand.Uint64()} {
		withoutBatches(t, seed, rounds)
	}
}

func withoutBatches(t *testing.T, seed uint64, rounds int) {
	for name := range recorded {
		t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, uint64(len(name))))
			for round := range rounds {
				lose := losses(rng, round)
				seen := make(map[string]int)
				path := rewrite(t, name, func(_ int, r *recording.Record) bool {
					if r.Kind != recording.KindMessage {
						return true
					}
					seen[r.Source]++
					return !lose(seen[r.Source] - 1)
				})
				for _, keep := range []bool{false, true} {
					got, err := File(context.Background(), path, Options{
						Index: indexer.Options{KeepOnGap: keep},
						Observe: func(p Prediction) {
							if p.Wrong {
								t.Errorf("seed %d round %d keep %v: request %d of %s: predicted %d, reported %d, bound %d %v",
									seed, round, keep, p.Index, p.Source, p.Predicted, p.Reported, p.Bound.Kind, p.Bound.Reasons())
							}
						},
					})
					if err != nil {
						t.Fatal(err)
					}
					if t.Failed() {
						t.Fatalf("keep %v: %+v", keep, got)
					}
				}
			}
		})
	}
}

// losses picks the messages of a source to lose: a late join, then holes of growing frequency.
func losses(rng *rand.Rand, round int) func(n int) bool {
	if round == 0 {
		first := 1 + rng.IntN(60)
		return func(n int) bool { return n < first }
	}
	return func(int) bool { return rng.IntN(100) < round*round }
}
