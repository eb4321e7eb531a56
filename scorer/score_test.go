package scorer

import (
	"errors"
	"math"
	"testing"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

func covered(device, host, disk, shared, unknown int) [events.TierCount]int {
	return [events.TierCount]int{device, host, disk, shared, unknown}
}

func TestScore(t *testing.T) {
	tests := []struct {
		name    string
		covered [events.TierCount]int
		prompt  int
		want    float64
	}{
		{"all on the device", covered(64, 0, 0, 0, 0), 64, 1},
		{"half on the device", covered(32, 0, 0, 0, 0), 64, 0.5},
		{"device and host", covered(32, 16, 0, 0, 0), 64, 0.5 + 0.1875},
		{"every tier", covered(16, 16, 16, 16, 0), 64, 0.25 * (1 + 0.75 + 0.25 + 0.25)},
		{"Rule05 unknown never scores", covered(0, 0, 0, 0, 64), 64, 0},
		{"nothing", covered(0, 0, 0, 0, 0), 64, 0},
		{"empty prompt", covered(0, 0, 0, 0, 0), 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := indexer.Match{Covered: tt.covered}
			if got := Score(&m, tt.prompt, DefaultWeights()); math.Abs(got-tt.want) > 1e-12 {
				t.Errorf("score = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestRule12_StaleScoresNothing(t *testing.T) {
	m := indexer.Match{Covered: covered(64, 0, 0, 0, 0), Freshness: indexer.Freshness{State: events.StateStale}}
	if got := Score(&m, 64, DefaultWeights()); got != 0 {
		t.Errorf("score of a stale source = %v, want 0", got)
	}
}

// Case 125: three blocks, two blocks, another first block, nothing; the order is stable.
func TestRank_Case125(t *testing.T) {
	match := func(worker string, rank, tokens int) indexer.Match {
		return indexer.Match{Source: events.Source{Worker: worker, Rank: rank}, Covered: covered(tokens, 0, 0, 0, 0)}
	}
	got := Rank([]indexer.Match{match("w4", 0, 0), match("w2", 1, 8), match("w2", 0, 8), match("w3", 0, 0), match("w1", 0, 12)}, 12, DefaultWeights())
	want := []string{"w1/0", "w2/0", "w2/1", "w3/0", "w4/0"}
	for i, r := range got {
		if r.Source.ID() != want[i] {
			t.Errorf("place %d is %s, want %s", i, r.Source.ID(), want[i])
		}
	}
}

func TestWeights_Validate(t *testing.T) {
	if err := DefaultWeights().Validate(); err != nil {
		t.Error(err)
	}
	for _, bad := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1)} {
		w := DefaultWeights()
		w[events.TierHost] = bad
		if err := w.Validate(); !errors.Is(err, ErrWeight) {
			t.Errorf("weight %v: %v", bad, err)
		}
	}
}

func TestPredicted(t *testing.T) {
	hostDear := Weights{0.25, 1, 0, 0, 0}
	tests := []struct {
		name    string
		covered [events.TierCount]int
		tokens  int
		w       Weights
		want    float64
	}{
		{"none", covered(32, 0, 0, 0, 0), 0, DefaultWeights(), 0.5},
		{"as on the device", covered(16, 0, 0, 0, 0), 32, DefaultWeights(), 0.75},
		{"beyond the host", covered(16, 16, 0, 0, 0), 16, DefaultWeights(), 0.25 + 0.1875 + 0.25},
		{"never above 1", covered(32, 0, 0, 0, 0), 64, DefaultWeights(), 1},
		{"confirmed it is all on the device, so worth 0.25", covered(0, 16, 0, 0, 0), 48, hostDear, 0.25},
		{"confirmed it is less than now", covered(0, 32, 0, 0, 0), 32, hostDear, 0.5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := indexer.Match{Covered: tt.covered}
			if got := Predicted(&m, tt.tokens, 64, tt.w); math.Abs(got-tt.want) > 1e-12 {
				t.Errorf("score = %v, want %v", got, tt.want)
			}
		})
	}
	stale := indexer.Match{Covered: covered(16, 0, 0, 0, 0), Freshness: indexer.Freshness{State: events.StateStale}}
	if got := Predicted(&stale, 32, 64, DefaultWeights()); got != 0 {
		t.Errorf("score of a stale source = %v, want 0 (rule 12)", got)
	}
}

// What was announced moves a worker up; what it holds stays as it was.
func TestRankPredicted(t *testing.T) {
	list := []*indexer.Match{
		{Source: events.Source{Worker: "a"}, Covered: covered(32, 0, 0, 0, 0)}, {Source: events.Source{Worker: "b"}, Covered: covered(16, 0, 0, 0, 0)},
	}
	got := RankPredicted(nil, list, func(m *indexer.Match) int {
		if m.Source.Worker == "b" {
			return 32
		}
		return 0
	}, 64, DefaultWeights())
	if got[0].Source.Worker != "b" || got[0].Score != 0.75 || got[0].Predicted != 32 || got[0].Reach() != 16 || got[1].Predicted != 0 {
		t.Errorf("%+v", got)
	}
}
