package dashboard

import (
	"cmp"
	"strings"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// column is one column of a table of sources.
type column struct {
	name  string
	width int // 0: as wide as the widest worker id, within what there is
	right bool
	// rank is how early the column goes where the terminal is narrow: the highest first. 0 never goes.
	rank  int
	cell  func(*source) string
	tone  func(*source) tone // nil is plain
	order func(a, b *source) int
	// down: the large ones first, until the order is turned.
	down bool
}

// number is a column of counts.
func number(name string, w, rank int, of func(*source) uint64) column {
	return column{
		name: name, width: w, right: true, rank: rank, down: true,
		cell:  func(s *source) string { return count(of(s)) },
		order: func(a, b *source) int { return cmp.Compare(of(a), of(b)) },
	}
}

// fault is a column of counts that should be 0.
func fault(name string, w, rank int, of func(*source) uint64) column {
	c := number(name, w, rank, of)
	c.tone = func(s *source) tone {
		if of(s) > 0 {
			return warn
		}
		return plain
	}
	return c
}

func perSecondColumn(name string, w, rank int, of func(*source) rate) column {
	return column{
		name: name, width: w, right: true, rank: rank, down: true,
		cell:  func(s *source) string { return strings.TrimSuffix(perSecond(of(s)), "/s") },
		order: func(a, b *source) int { return cmp.Compare(of(a).v, of(b).v) },
	}
}

// optional is a column of seconds that may be absent; those that are come last.
func optional(name string, w, rank int, of func(*source) *float64) column {
	value := func(s *source) float64 {
		if v := of(s); v != nil {
			return *v
		}
		return -1
	}
	return column{
		name: name, width: w, right: true, rank: rank, down: true,
		cell:  func(s *source) string { return secondsText(of(s)) },
		order: func(a, b *source) int { return cmp.Compare(value(a), value(b)) },
	}
}

func text(name string, w, rank int, of func(*source) string) column {
	return column{name: name, width: w, rank: rank, cell: of, order: func(a, b *source) int { return strings.Compare(of(a), of(b)) }}
}

func onTier(i int) func(*source) uint64 { return func(s *source) uint64 { return s.blocks[i] } }

func workerColumns() []column {
	return []column{
		text("WORKER", 0, 0, func(s *source) string { return s.id }),
		{
			name: "RANK", width: 4, right: true, cell: func(s *source) string { return count(uint64(s.rank)) },
			order: func(a, b *source) int { return cmp.Compare(a.rank, b.rank) },
		},
	}
}

func stateColumn() column {
	return column{
		name: "STATE", width: 10, cell: func(s *source) string { return stateWord(s.state) },
		tone:  func(s *source) tone { return stateTone(s.state) },
		order: func(a, b *source) int { return cmp.Compare(worst(a.state), worst(b.state)) },
	}
}

func equalColumn(rank int) column {
	recent := func(s *source) float64 {
		if a := s.stats.GetAccuracy(); a != nil && a.Recent != nil {
			return *a.Recent
		}
		return 2
	}
	return column{
		name: "EQUAL", width: 6, right: true, rank: rank,
		cell: func(s *source) string {
			if v := recent(s); v <= 1 {
				return percentText(v)
			}
			return "-"
		},
		tone:  flagTone,
		order: func(a, b *source) int { return cmp.Compare(recent(a), recent(b)) },
	}
}

func flagTone(s *source) tone {
	if s.stats.GetAccuracy().GetFlagged() {
		return bad
	}
	return plain
}

// sourceColumns are those of the sources' table, from the left.
func sourceColumns() []column {
	return append(workerColumns(),
		stateColumn(),
		optional("AGE", 6, 1, func(s *source) *float64 { return ageOf(s.stats) }),
		optional("LAG", 6, 2, func(s *source) *float64 { return s.stats.LagSeconds }),
		number("DEVICE", 6, 1, onTier(0)),
		number("HOST", 6, 4, onTier(1)),
		number("DISK", 6, 9, onTier(2)),
		number("SHARED", 6, 10, onTier(3)),
		number("OTHER", 6, 14, onTier(4)),
		perSecondColumn("STORE/S", 7, 3, func(s *source) rate { return s.stored }),
		perSecondColumn("REMOVE/S", 8, 3, func(s *source) rate { return s.removed }),
		fault("GAPS", 5, 5, func(s *source) uint64 { return s.stats.GetGaps() }),
		fault("REJECT", 6, 6, func(s *source) uint64 { return s.allRejects }),
		equalColumn(7),
		fault("RESETS", 6, 11, func(s *source) uint64 { return s.stats.GetResets() }),
		fault("ORPHAN", 6, 12, func(s *source) uint64 { return s.stats.GetOrphansWaiting() }),
		fault("EVICT", 6, 13, func(s *source) uint64 { return s.stats.GetEvictedBlocks() }),
		text("MODEL", 16, 8, func(s *source) string { return s.model }),
		text("ANSWERS", 24, 8, func(s *source) string { return s.bound }),
	)
}

// accuracyColumns are those of the accuracy's table.
func accuracyColumns() []column {
	of := func(f func(*kvscoutv1.Accuracy) uint64) func(*source) uint64 {
		return func(s *source) uint64 { return f(s.stats.GetAccuracy()) }
	}
	flag := text("FLAG", 7, 1, func(s *source) string {
		if s.stats.GetAccuracy().GetFlagged() {
			return "FLAGGED"
		}
		return "-"
	})
	flag.tone = flagTone
	cause := text("LIKELY CAUSE", 17, 1, func(s *source) string {
		if c := s.stats.GetAccuracy().GetCause(); c != 0 {
			return word(c, "ACCURACY_CAUSE_")
		}
		return "-"
	})
	return append(workerColumns(),
		equalColumn(0),
		flag,
		cause,
		number("OUTCOMES", 8, 1, of((*kvscoutv1.Accuracy).GetOutcomes)),
		number("OVER", 5, 3, of((*kvscoutv1.Accuracy).GetOver)),
		number("UNDER", 5, 3, of((*kvscoutv1.Accuracy).GetUnder)),
		fault("WRONG", 5, 2, of((*kvscoutv1.Accuracy).GetWrong)),
		number("OVER TOK", 8, 5, of((*kvscoutv1.Accuracy).GetOverTokens)),
		number("UNDER TOK", 9, 5, of((*kvscoutv1.Accuracy).GetUnderTokens)),
		text("MODEL", 16, 4, func(s *source) string { return s.model }),
		text("ANSWERS", 24, 4, func(s *source) string { return s.bound }),
	)
}

func ageOf(s *kvscoutv1.SourceStats) *float64 {
	if f := s.GetFreshness(); f != nil {
		return f.AgeSeconds
	}
	return nil
}
