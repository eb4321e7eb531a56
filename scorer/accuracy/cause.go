package accuracy

import (
	"github.com/kvscout/kvscout/indexer"
)

// causeOf weighs what the misses among the recent outcomes have in common. What is sure comes first: lengths that
// differ, sizes that do not fit, another namespace that was found. What only remains comes last.
func causeOf(recent, misses []Outcome) Cause {
	most := func(sign func(o *Outcome) bool) bool {
		n := 0
		for i := range misses {
			if sign(&misses[i]) {
				n++
			}
		}
		return 2*n >= len(misses)
	}
	lost := func(o *Outcome) bool { return o.Bound.Doubt&indexer.DoubtHistory != 0 }
	switch {
	case most(func(o *Outcome) bool { return o.Prompt != o.PredictedPrompt }):
		return CauseTokenizer
	case most(func(o *Outcome) bool { return o.Refused || o.BlockSize > 0 && o.Actual%o.BlockSize != 0 }),
		coarser(recent, misses):
		return CauseBlockSize
	case most(func(o *Outcome) bool { return o.Elsewhere }):
		return CauseNamespace
	case most(func(o *Outcome) bool { return o.Predicted > o.Actual }):
		return CauseHiddenNamespace
	case most(lost):
		return CauseHistory
	case most(func(o *Outcome) bool { return o.Predicted < o.Actual && o.Bound.Kind == indexer.Exact }):
		return CauseTokenizer
	default:
		return CauseUnknown
	}
}

// coarser says whether the engine's blocks are larger than the source's: all it took are multiples of a larger size, and
// each miss is what rounding down to that size makes of the prediction.
func coarser(recent, misses []Outcome) bool {
	size := 0
	for i := range recent {
		size = gcd(size, recent[i].Actual)
	}
	for i := range misses {
		o := &misses[i]
		if o.BlockSize == 0 || size <= o.BlockSize || size%o.BlockSize != 0 || o.Predicted/size*size != o.Actual {
			return false
		}
	}
	return size > 0
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
