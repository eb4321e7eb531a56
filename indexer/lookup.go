package indexer

import (
	"context"
	"slices"

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
	// Freshness of the source when it answered.
	Freshness Freshness
}

// checkEvery is how many blocks are walked between two looks at the deadline.
const checkEvery = 1024

// Lookup answers for every source of the model, in no stated order. It errs with the context's error.
func (x *Index) Lookup(ctx context.Context, q Query) ([]Match, error) {
	found, err := x.rows(ctx, &q)
	if err != nil {
		return nil, err
	}
	var out []Match
	x.sources.RangeRelaxed(func(id slot, l *Ledger) bool { // takes no lock; slots are never used again
		if l.src.Model == q.Model {
			out = append(out, l.match(&q, found[id]))
		}
		return true
	})
	return out, nil
}

// rows collects what each source holds of the prompt, one row for each block size in use.
func (x *Index) rows(ctx context.Context, q *Query) (map[slot][]*row, error) {
	found := make(map[slot][]*row)
	list, _ := x.families.Load(family{model: q.Model, Namespace: Namespace{Salt: q.Salt, Adapter: q.Adapter}})
	for _, s := range list {
		if q.Keys != nil && s.BlockSize != q.KeySize {
			continue
		}
		rows, err := x.walk(ctx, s, q)
		if err != nil {
			return nil, err
		}
		for id, r := range rows {
			found[id] = append(found[id], r)
		}
	}
	return found, nil
}

// walk collects, for every source that holds any block of the prompt in the scope, what it holds of each.
func (x *Index) walk(ctx context.Context, s *scope, q *Query) (map[slot]*row, error) {
	keys := newKeyer(q.Tokens, q.Features, s.BlockSize, s.Pairs, s.seed)
	keys.given = q.Keys
	view := &viewer{x: x, q: q, size: s.BlockSize, pairs: s.Pairs, rows: make(map[slot]*row)}
	view.asOf = x.clears.Load()
	at := s.root
	for i := range keys.blocks() {
		if i%checkEvery == checkEvery-1 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		next, holders, ok := x.tree.at(at, keys.at(i))
		if !ok {
			break
		}
		view.add(i, holders)
		at = next
	}
	return view.rows, nil
}

// viewer sorts holders into rows, each source in its own way.
type viewer struct {
	x       *Index
	q       *Query
	size    int
	pairs   bool
	asOf    uint64
	rows    map[slot]*row
	witness *witness
	hashes  []uint64 // of the witness, so far
}

func (v *viewer) add(depth int, holders []holder) {
	var l *Ledger
	var last slot
	for _, h := range holders {
		if l == nil || h.slot != last {
			l, _ = v.x.sources.Load(h.slot)
			last = h.slot
		}
		if l == nil || !v.sees(l, depth, h.via) {
			continue
		}
		r := v.rows[h.slot]
		if r == nil {
			r = &row{size: v.size, pairs: v.pairs, asOf: v.asOf}
			v.rows[h.slot] = r
		}
		for len(r.masks) <= depth {
			r.masks = append(r.masks, 0)
		}
		r.masks[depth] |= h.mask
	}
}

// sees says whether a block that a source holds under hash via is a block of the request's namespace. Scopes tell the
// parts of a namespace that events carry; an extra key is never among them.
func (v *viewer) sees(l *Ledger, depth int, via uint64) bool {
	q := v.q
	if witnessed(l.src) && q.Keys == nil && (q.Adapter == "" || q.AdapterID != "") {
		return v.expected(depth) == via
	}
	return q.Extra == "" || l.src.Engine == events.EngineSGLang
}

func (v *viewer) expected(depth int) uint64 {
	if v.witness == nil {
		v.witness = newWitness(v.q.Tokens, v.size, v.pairs, v.q.Namespace, v.q.AdapterID)
	}
	for len(v.hashes) <= depth {
		v.hashes = append(v.hashes, v.witness.step())
	}
	return v.hashes[depth]
}

// blockSizes are those of the source's groups, or the configured one while it stored nothing.
func (l *Ledger) blockSizes() []int {
	var out []int
	for _, g := range l.table.Load().groups {
		for _, s := range g.sizes {
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	if len(out) == 0 && l.src.BlockSize > 0 {
		out = append(out, l.src.BlockSize)
	}
	slices.Sort(out)
	return out
}
