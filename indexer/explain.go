package indexer

import (
	"context"

	"github.com/kvscout/kvscout/events"
)

// End is why a run of blocks ended.
type End uint8

const (
	// EndPrompt: every full block of the prompt is held.
	EndPrompt End = iota
	// EndNotHeld: the next block is held on no tier.
	EndNotHeld
	// EndUnknownTier: the next block lies on a tier that is never credited.
	EndUnknownTier
)

// GroupHolding is what one KV-cache group of a source holds of a prompt in one block size.
type GroupHolding struct {
	// ID is the engine's number of the group; -1 if its events name none.
	ID   int
	Spec events.SpecKind
	// Window in tokens, 0 without one; BlockSize in tokens.
	Window, BlockSize int
	// Runs are the blocks held, by the fastest tier that has them.
	Runs []Run
	// Leading blocks from the first on without a hole, on tiers that are credited, and why they ended there.
	Leading int
	End     End
}

// Explained says what each group of a source holds of a prompt.
type Explained struct {
	Source events.Source
	Groups []GroupHolding
}

// Explain lists, for every source of the model that holds a block of the prompt, what its groups hold, in no stated
// order. It is for people: it costs more than a Lookup. It errs with the context's error.
func (x *Index) Explain(ctx context.Context, q Query) ([]Explained, error) {
	var out []Explained
	err := x.eachRows(ctx, &q, func(l *Ledger, _ *Match, t *table, rows []*row) {
		e := Explained{Source: l.src}
		for _, row := range rows {
			e.Groups = append(e.Groups, t.explain(row, &q)...)
		}
		if len(e.Groups) > 0 {
			out = append(out, e)
		}
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// explain says what each group holds in one row; groups that hold nothing of it are left out.
func (g groups) explain(r *row, q *Query) []GroupHolding {
	prompt := q.Length()
	if r.pairs {
		prompt--
	}
	var out []GroupHolding
	for i := range g {
		h := GroupHolding{ID: g[i].id, Spec: g[i].spec, Window: g[i].window, BlockSize: r.size}
		for b := range r.masks {
			h.add(r.at(b), i, b)
		}
		if len(h.Runs) == 0 {
			continue
		}
		h.end(r.at(h.Leading), i, max(0, prompt)/r.size)
		out = append(out, h)
	}
	return out
}

// add takes in block b of a group, held as m says.
func (h *GroupHolding) add(m mask, group, b int) {
	for t := range events.Tier(events.TierCount) {
		if !m.in(group, 1<<t) {
			continue
		}
		if t != events.TierUnknown && h.Leading == b {
			h.Leading++
		}
		if n := len(h.Runs); n > 0 && h.Runs[n-1].Tier == t && h.Runs[n-1].First+h.Runs[n-1].Blocks == b {
			h.Runs[n-1].Blocks++
		} else {
			h.Runs = append(h.Runs, Run{Tier: t, First: b, Blocks: 1})
		}
		return
	}
}

// end says why the run ended before a block held as next says, of a prompt of so many blocks.
func (h *GroupHolding) end(next mask, group, blocks int) {
	switch {
	case h.Leading >= blocks:
		h.End = EndPrompt
	case next.in(group, 1<<events.TierUnknown):
		h.End = EndUnknownTier
	default:
		h.End = EndNotHeld
	}
}
