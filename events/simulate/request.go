package simulate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/cespare/xxhash/v2"
)

// ErrRequest is a request that the engine cannot run: empty, too long for its cache, or for an adapter it lacks.
var ErrRequest = errors.New("bad request")

// Vocabulary is the number of token ids that Generate and Traffic use, that of Qwen3.
const Vocabulary = 151_936

// Request is one prompt to run.
type Request struct {
	// Tokens is the prompt.
	Tokens []uint32
	// Adapter names a LoRA adapter and CacheSalt a tenant; each may be empty, and each is a namespace of its own.
	Adapter, CacheSalt string
	// Output is how many tokens to generate (see Generate). They are cached too, less the last, which is never
	// computed. 0 is the same to the cache as 1.
	Output int
}

// Outcome is the engine's own word about a request.
type Outcome struct {
	// PromptTokens is the length of the prompt; CachedTokens how many of them came from the cache (invariant 1).
	PromptTokens, CachedTokens int
	// Sequence is the number of the last batch that was published when the request ended; it means something only when
	// Published is set, for a process may not have published anything yet.
	Sequence  uint64
	Published bool
}

// Generate returns the n tokens that every simulated engine answers to prompt: the same always, as greedy decoding
// gives, so that a client can continue a conversation.
func Generate(prompt []uint32, n int) []uint32 {
	if n <= 0 {
		return nil
	}
	h := xxhash.New()
	var b [4]byte
	for _, t := range prompt {
		binary.LittleEndian.PutUint32(b[:], t)
		_, _ = h.Write(b[:]) // a hash never errs
	}
	r := rand.New(rand.NewPCG(h.Sum64(), uint64(len(prompt))))
	return randomTokens(r, n)
}

func randomTokens(r *rand.Rand, n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = r.Uint32N(Vocabulary)
	}
	return out
}

// check says whether an engine of this form and size can run r.
func (r Request) check(c Config) error {
	room := c.Blocks * c.BlockSize
	switch {
	case len(r.Tokens) == 0:
		return fmt.Errorf("%w: empty prompt", ErrRequest)
	case r.Output < 0:
		return fmt.Errorf("%w: output of %d tokens", ErrRequest, r.Output)
	case r.Output > room || len(r.Tokens)+max(r.Output-1, 0) > room:
		return fmt.Errorf("%w: %d prompt and %d output tokens do not fit a cache of %d", ErrRequest, len(r.Tokens), r.Output, room)
	case r.Adapter != "" && !formTraits[c.Form].adapters:
		return fmt.Errorf("%w: form %s serves no adapters", ErrRequest, c.Form)
	}
	return nil
}
