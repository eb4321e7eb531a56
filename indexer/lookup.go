package indexer

import (
	"context"

	"github.com/kvscout/kvscout/events"
)

// Query is one prompt, as tokens or as block keys.
type Query struct {
	// Model is the served model; only its sources are asked.
	Model string
	Namespace
	// AdapterID is the engine's own id of the adapter, which SGLang mixes into published hashes in dynamo format.
	AdapterID string
	// Tokens of the whole prompt, with Features sorted by offset.
	Tokens   []uint32
	Features []Feature
	// Keys, when not nil, stand for the tokens: the keys of all full blocks of KeySize tokens. PromptTokens is then the
	// length of the prompt; 0 means that the blocks are all of it.
	Keys         []Key
	KeySize      int
	PromptTokens int
	// MediaUnnamed says that the prompt has multimodal content which Features do not name.
	MediaUnnamed bool
}

// Length is that of the whole prompt in tokens.
func (q *Query) Length() int {
	switch {
	case q.Keys == nil:
		return len(q.Tokens)
	case q.PromptTokens > 0:
		return q.PromptTokens
	default:
		return len(q.Keys) * q.KeySize
	}
}

// Match is what one source holds of a prompt. All counts are tokens.
type Match struct {
	Source events.Source
	// BlockSize of the source; 0 while it has none.
	BlockSize int
	// Held is the leading run on the device.
	Held int
	// Reusable is what the engine will skip of Held: caps applied, groups asked (rules 6 and 7). With[t] is the same
	// when every tier up to t counts.
	Reusable int
	With     [events.TierCount]int
	// Covered[t] is what tier t adds to the run of the tiers before it, groups asked and caps not applied.
	Covered [events.TierCount]int
	Bound   Bound
	// Freshness of the source before its blocks were read: every batch up to its LastSequence is in what is answered. Some
	// that came meanwhile may be too.
	Freshness Freshness
}

// checkEvery is how many blocks are walked between two looks at the deadline.
const checkEvery = 1024

// Lookup answers for every source of the model, in no stated order. It errs with the context's error.
func (x *Index) Lookup(ctx context.Context, q Query) ([]Match, error) {
	r := x.readers.Get().(*Reader)
	defer x.readers.Put(r)
	list, err := r.Lookup(ctx, &q)
	r.matches = nil // the caller keeps them
	return list, err
}

// sees says whether what a source holds in the scopes of a request's namespace may be of that namespace. Scopes tell
// the parts of a namespace that events carry; an extra key is never among them.
func sees(q *Query, l *Ledger) bool { return q.Extra == "" || l.src.Engine == events.EngineSGLang }

// told says whether the hashes of a source's blocks say if they are of the request's namespace.
func told(q *Query, l *Ledger) bool {
	return witnessed(l.src) && q.Keys == nil && (q.Adapter == "" || q.AdapterID != "")
}

// expected is the hashes that a prompt's blocks have where hashes tell the namespace, computed as they are asked for.
type expected struct {
	witness *witness
	hashes  []uint64
}

func (e *expected) at(q *Query, size int, pairs bool, block int) uint64 {
	if e.witness == nil {
		e.witness = newWitness(q.Tokens, size, pairs, q.Namespace, q.AdapterID)
	}
	for len(e.hashes) <= block {
		e.hashes = append(e.hashes, e.witness.step())
	}
	return e.hashes[block]
}

// blockSizes are those of the source's groups, or the configured one while it stored nothing. The slice must not be
// changed.
func (l *Ledger) blockSizes() []int {
	if t := l.table.Load(); len(t.sizes) > 0 {
		return t.sizes
	}
	return l.configured
}
