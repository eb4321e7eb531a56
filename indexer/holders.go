package indexer

import (
	"context"
)

// Holder is a source that holds a prompt's first block on the device.
type Holder struct {
	// Source is the number of the source: see Ledger.Number and Index.Source.
	Source uint32
	// Held is the leading run in tokens, as Match.Held.
	Held uint32
}

// Number names the source inside its index. Numbers begin at 1 and are never used again.
func (l *Ledger) Number() uint32 { return uint32(l.slot) }

// Source is the source with a number, nil when it is closed.
func (x *Index) Source(number uint32) *Ledger {
	l, _ := x.sources.Load(slot(number))
	return l
}

// Holders lists the sources of the model that hold the prompt's first block on the device, in no stated order: what a
// router asks that wants neither tiers nor caps nor bounds. It looks at nobody who holds nothing. It errs with the
// context's error.
func (r *Reader) Holders(ctx context.Context, q *Query) ([]Holder, error) {
	r.holders = r.holders[:0]
	if !r.turn(q.Model) {
		return r.holders, nil
	}
	if r.slot != nil && q.Keys != nil && len(q.Keys) <= checkEvery && q.Extra == "" && r.holdQuickly(q) {
		return r.holders, nil
	}
	defer r.end()
	if err := r.collect(ctx, q, false); err != nil {
		return nil, err
	}
	if r.x.opts.Plain {
		list, _ := r.x.models.Load(q.Model)
		for _, l := range list {
			r.holds(l, l.table.Load(), nil)
		}
		return r.holders, nil
	}
	for i := range r.leads {
		if l := r.in.chains.lanes.at(r.leads[i].lane).ledger.Load(); l != nil {
			r.holds(l, l.table.Load(), &r.leads[i])
		}
	}
	return r.holders, nil
}

// holdQuickly is Holders for a few keys and sources of which only leading runs count. It is false for others.
func (r *Reader) holdQuickly(q *Query) bool {
	t := r.in.chains
	t.epochs.enter(r.slot) // before: the root of a scope that is gone may be another's by now
	r.asOf = r.in.clears.Load()
	r.runs, r.placed = r.runs[:0], false
	s, ok := r.onlyScope(q)
	if s != nil {
		ok = t.walkKeys(r, uint32(s.origin), q.Keys)
	}
	t.epochs.leave(r.slot)
	return ok && r.holdRuns(q, s)
}

// onlyScope is the scope of a request by keys, nil without one. It is false when there are several.
func (r *Reader) onlyScope(q *Query) (s *scope, ok bool) {
	for _, o := range r.scopesOf(q) {
		if o.BlockSize != q.KeySize {
			continue
		}
		if s != nil {
			return nil, false
		}
		s = o
	}
	return s, true
}

// holdRuns adds the sources of the runs.
func (r *Reader) holdRuns(q *Query, s *scope) bool {
	if len(r.runs) == 0 {
		return true
	}
	if cap(r.holders) < len(r.runs) {
		r.holders = make([]Holder, 0, len(r.runs)+len(r.runs)/2)
	}
	out := r.holders[:len(r.runs)]
	prompt, size := uint32(q.Length()), uint32(s.BlockSize)
	if s.Pairs {
		prompt--
	}
	lanes := &r.in.chains.lanes
	if lanes.fancy.Load() == 0 {
		slots := *lanes.slots.Load()
		for i, d := range r.runs {
			out[i] = Holder{slots[d.lane].Load(), min(prompt, d.blocks*size)}
		}
		if r.in.clears.Load() == r.asOf { // after: no lane has passed to another source
			r.holders = out
			return true
		}
	}
	k := 0
	for _, d := range r.runs {
		o := lanes.at(d.lane)
		l, since := o.ledger.Load(), o.since.Load()
		if l == nil || r.asOf < since>>1 {
			continue // closed or cleared meanwhile
		}
		if since&1 == 0 {
			return false
		}
		out[k] = Holder{uint32(l.slot), min(prompt, d.blocks*size)}
		k++
	}
	r.holders = out[:k]
	return true
}

// holds adds a source if it holds anything. Of its leads only one speaks for it.
func (r *Reader) holds(l *Ledger, t *table, d *lead) {
	held := 0
	if w, blocks, ok := r.plainRun(t); ok && sees(r.q, l) {
		if w != nil {
			held = min(r.prompt(w.pairs), blocks*w.size)
		}
	} else {
		if d != nil && !r.speaks(t, d) {
			return
		}
		if rows := r.rowsOf(l, t); len(rows) > 0 {
			v := &verdict{groups: t.groups, rows: rows, prompt: r.prompt(rows[0].pairs), eagle: dropsBlock(&l.src)}
			held = v.held()
		}
	}
	if held > 0 {
		r.holders = append(r.holders, Holder{Source: uint32(l.slot), Held: uint32(held)})
	}
}

// speaks says whether the lead is the last one of the source's first lane that has any.
func (r *Reader) speaks(t *table, d *lead) bool {
	for _, of := range t.lanes {
		if i := r.first(of.lane); i >= 0 {
			return &r.leads[i] == d
		}
	}
	return false
}

// prompt is the length of the prompt, in pairs if it is asked for in pairs.
func (r *Reader) prompt(pairs bool) int {
	n := r.q.Length()
	if pairs {
		n-- // n tokens make n-1 pairs
	}
	return n
}
