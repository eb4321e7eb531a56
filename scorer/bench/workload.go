package bench

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/kvscout/kvscout/indexer"
)

// BlockSize is the tokens of a block.
const BlockSize = 16

// Bounds of a Workload.
const (
	MaxTokens  = 1 << 20
	MaxWorkers = 4096
	MaxPrompts = 256
)

// ErrWorkload is a workload that cannot be made.
var ErrWorkload = errors.New("bad workload")

// Workload is prompts and what each worker holds of them.
type Workload struct {
	// Prompts are the tokens of each.
	Prompts [][]uint32
	// Shared is how many leading blocks all prompts have in common.
	Shared int
	// Workers is how many hold something.
	Workers int
	// Writers is how many others serve the model and hold nothing of the prompts.
	Writers int
	// ID begins the ids of workers, so that several loads do not meet in one server; Model is the served model.
	ID, Model string
}

// New makes prompts of so many tokens; the same seed makes the same. It errs with ErrWorkload.
func New(tokens, workers, prompts int, seed uint64) (*Workload, error) {
	switch {
	case tokens < BlockSize || tokens > MaxTokens:
		return nil, fmt.Errorf("%w: %d tokens are not in %d to %d", ErrWorkload, tokens, BlockSize, MaxTokens)
	case workers < 1 || workers > MaxWorkers:
		return nil, fmt.Errorf("%w: %d workers are not in 1 to %d", ErrWorkload, workers, MaxWorkers)
	case prompts < 1 || prompts > MaxPrompts:
		return nil, fmt.Errorf("%w: %d prompts are not in 1 to %d", ErrWorkload, prompts, MaxPrompts)
	}
	w := &Workload{Workers: workers, Shared: tokens / BlockSize / 4, ID: "bench", Model: "bench"}
	rng := rand.New(rand.NewPCG(seed, 0))
	shared := randomTokens(rng, w.Shared*BlockSize)
	for range prompts {
		w.Prompts = append(w.Prompts, append(shared[:len(shared):len(shared)], randomTokens(rng, tokens-len(shared))...))
	}
	return w, nil
}

// randomTokens are of a vocabulary of 128,000, as large models have it.
func randomTokens(rng *rand.Rand, n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(rng.IntN(128_000))
	}
	return out
}

// Blocks is the number of full blocks of a prompt.
func (w *Workload) Blocks() int { return len(w.Prompts[0]) / BlockSize }

// Tokens is the length of a prompt.
func (w *Workload) Tokens() int { return len(w.Prompts[0]) }

// Worker is the id of worker i.
func (w *Workload) Worker(i int) string { return fmt.Sprintf("%s-%03d", w.ID, i) }

// place orders the workers of prompt p: 0 holds the least of it and Workers-1 all.
func (w *Workload) place(p, worker int) int {
	return (worker + p*max(1, w.Workers/len(w.Prompts))) % w.Workers
}

// own is how many leading blocks of prompt p the worker was given for the prompt's own sake.
func (w *Workload) own(p, worker int) int {
	return w.Blocks() * (1 + w.place(p, worker)) / w.Workers
}

// sharedOf is how many of the shared blocks the worker holds.
func (w *Workload) sharedOf(worker int) int {
	most := 0
	for p := range w.Prompts {
		most = max(most, min(w.own(p, worker), w.Shared))
	}
	return most
}

// Held is how many leading tokens of prompt p the worker holds.
func (w *Workload) Held(p, worker int) int {
	return BlockSize * max(w.own(p, worker), w.sharedOf(worker))
}

// Best is the worker that holds all of prompt p.
func (w *Workload) Best(p int) int {
	for i := range w.Workers {
		if w.place(p, i) == w.Workers-1 {
			return i
		}
	}
	return 0
}

// HolderBlocks is how many blocks all workers hold together.
func (w *Workload) HolderBlocks() int {
	sum := 0
	for i := range w.Workers {
		sum += w.sharedOf(i)
		for p := range w.Prompts {
			sum += max(0, w.own(p, i)-w.Shared)
		}
	}
	return sum
}

// Keys are the block keys of prompt p.
func (w *Workload) Keys(p int) []indexer.Key {
	return indexer.Keys(w.Prompts[p], nil, BlockSize, false, indexer.Namespace{})
}
