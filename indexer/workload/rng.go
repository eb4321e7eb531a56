package workload

import (
	"math"
	"math/bits"
)

// rng is SplitMix64.
type rng uint64

func (r *rng) next() uint64 {
	*r += 0x9E3779B97F4A7C15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// below is a number in [0, n).
func (r *rng) below(n int) int { return int(r.next() % uint64(n)) }

// chance is true in percent of 100 cases.
func (r *rng) chance(percent uint64) bool { return r.next()%100 < percent }

// content is the content of a new block: any odd number.
func (r *rng) content() uint64 { return r.next() | 1 }

// logUniform is a length in [lo, hi] whose logarithm is spread evenly.
func (r *rng) logUniform(lo, hi float64) int {
	u := float64(r.next()>>11) / (1 << 53)
	return int(math.Round(math.Exp(math.Log(lo) + u*(math.Log(hi)-math.Log(lo)))))
}

// splitMix is the first number that SplitMix64 makes from a seed.
func splitMix(seed uint64) uint64 {
	r := rng(seed)
	return r.next()
}

func rotl(x uint64, k int) uint64 { return bits.RotateLeft64(x, k) }
