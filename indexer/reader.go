package indexer

import (
	"context"
	"iter"
	"slices"
)

// Reader looks prompts up in memory of its own, which it uses again: what a method returns is valid until the next call.
// It belongs to one goroutine at a time.
type Reader struct {
	x *Index
	// in is the stripe of the model that was asked for last, nil before the first.
	in    *stripe
	model string
	slot  *epochSlot // of in; nil with the plain structure

	ctx  context.Context
	q    *Query
	asOf uint64 // stripe.clears before the tree was read
	keys keyer

	// scopes are those of the family that was asked for last, as of stripe.scopes+1.
	scopes   []*scope
	family   family
	scopesAt uint64

	checked int // the block before which the deadline was last looked at

	// brief: all that was found is in runs. Otherwise it is in leads.
	brief  bool
	placed bool // byLane is of runs
	runs   []run

	walks  []walk
	expect []expected // of walks, as far as asked for
	leads  []lead
	more   []stretch
	path   []step
	byLane []int32 // lane -> 1 + index of its last lead or its run, if that is the lane's

	sink    uint32 // keeps reads that only warm up from being optimised away
	matches []Match
	holders []Holder
	store   []row
	list    []*row
	masks   []mask
	plain   map[slot][]*row // what the plain tree collects

	slots [stripeCount]*epochSlot // of the stripes it was ever in
}

// walk is one scope that was read.
type walk struct {
	size  int // tokens in a block
	pairs bool
}

// lead is what a lane holds in one walk: blocks from..to-1 of the prompt, and more behind.
type lead struct {
	lane     lane
	walk     int32
	prev     int32 // the same lane in an earlier walk; -1: none
	from, to uint32
	more     int32 // -1: nothing
	last     int32 // end of more
}

// stretch is blocks from..to-1 of the prompt.
type stretch struct {
	from, to uint32
	next     int32
}

// step is a chain that a walk came through; its first block is block base of the prompt.
type step struct {
	walk  int32
	base  uint32
	chain uint32
}

// run is how many leading blocks of the prompt a lane holds.
type run struct {
	lane   lane
	blocks uint32
}

// NewReader is a reader of the index.
func (x *Index) NewReader() *Reader {
	return &Reader{x: x}
}

// turn turns to the stripe of a model. It is false when there is none, and then nobody holds anything of the model.
func (r *Reader) turn(model string) bool {
	return r.in != nil && r.model == model || r.turnTo(model)
}

func (r *Reader) turnTo(model string) bool {
	s := r.x.stripeOf(model)
	if s == nil {
		return false
	}
	r.in, r.model = s, model
	if r.slot = r.slots[s.number]; r.slot == nil && s.chains != nil {
		r.slot = s.chains.epochs.join(r)
		r.slots[s.number] = r.slot
	}
	return true
}

// Lookup answers for every source of the model, in no stated order. It errs with the context's error.
func (r *Reader) Lookup(ctx context.Context, q *Query) ([]Match, error) {
	if !r.turn(q.Model) {
		return nil, nil
	}
	defer r.end()
	list, _ := r.x.models.Load(q.Model)
	r.matches = slices.Grow(r.matches[:0], len(list))[:len(list)]
	clear(r.matches)
	for i, l := range list {
		l.precede(&r.matches[i])
	}
	err := r.collect(ctx, q, r.slot != nil)
	if err == errNotBrief {
		err = r.collect(ctx, q, false)
	}
	if err != nil {
		return nil, err
	}
	if r.brief {
		r.placeRuns()
	}
	for i, l := range list {
		if err := r.late(); err != nil {
			return nil, err
		}
		r.match(l, &r.matches[i])
	}
	return r.matches, nil
}

// collect reads what sources hold of the prompt, once for each scope of its namespace: with brief their leading runs only,
// or errNotBrief. Needs turn.
func (r *Reader) collect(ctx context.Context, q *Query, brief bool) error {
	r.walks, r.leads, r.more, r.path = r.walks[:0], r.leads[:0], r.more[:0], r.path[:0]
	r.ctx, r.q = ctx, q
	if r.slot != nil {
		r.in.chains.epochs.enter(r.slot)
	}
	r.asOf = r.in.clears.Load()
	r.brief, r.placed, r.runs = brief, false, r.runs[:0]
	if r.x.opts.Plain {
		r.plain = make(map[slot][]*row)
	}
	for _, s := range r.scopesOf(q) {
		if q.Keys != nil && s.BlockSize != q.KeySize {
			continue
		}
		if brief && len(r.walks) > 0 {
			return errNotBrief
		}
		r.walks = append(r.walks, walk{size: s.BlockSize, pairs: s.Pairs})
		r.checked = 0
		r.keys.reset(q.Tokens, q.Features, s.BlockSize, s.Pairs, s.seed)
		r.keys.given = q.Keys
		if err := r.in.tree.collect(r, s.origin, &r.keys); err != nil {
			return err
		}
	}
	return nil
}

// scopesOf are the scopes of a request's namespace. One reader's requests often have the same.
func (r *Reader) scopesOf(q *Query) []*scope {
	now := r.in.scopes.Load() + 1
	if r.scopesAt == now && r.family.model == q.Model && r.family.Salt == q.Salt && r.family.Adapter == q.Adapter {
		return r.scopes
	}
	r.scopesAt, r.family = now, family{model: q.Model, Namespace: Namespace{Salt: q.Salt, Adapter: q.Adapter}}
	r.scopes, _ = r.in.families.Load(r.family)
	return r.scopes
}

// end forgets the request.
func (r *Reader) end() {
	if r.slot != nil {
		r.in.chains.epochs.leave(r.slot)
	}
	r.ctx, r.q, r.plain = nil, nil, nil
	r.keys.tokens, r.keys.features, r.keys.given = nil, nil, nil
	if len(r.expect) > 0 {
		clear(r.expect)
		r.expect = r.expect[:0]
	}
}

// check errs when the deadline is over, looking at it now and then as block grows.
func (r *Reader) check(block int) error {
	if block < r.checked+checkEvery {
		return nil
	}
	r.checked = block
	return r.ctx.Err()
}

// late errs when the deadline is over, between sources of a prompt so long that each may take a while.
func (r *Reader) late() error {
	if r.checked == 0 {
		return nil
	}
	return r.ctx.Err()
}

// add notes that a lane holds blocks from..to-1 of the prompt.
func (r *Reader) add(ln lane, from, to int) {
	r.room1(ln)
	a, b, w := uint32(from), uint32(to), int32(len(r.walks)-1)
	prev := r.byLane[ln] - 1
	if prev < 0 || int(prev) >= len(r.leads) || r.leads[prev].lane != ln {
		prev = -1
	} else if have := &r.leads[prev]; have.walk == w {
		if a >= have.from && a <= have.to {
			have.to = max(have.to, b)
			return
		}
		r.more = append(r.more, stretch{from: a, to: b, next: -1})
		i := int32(len(r.more) - 1)
		if have.more < 0 {
			have.more = i
		} else {
			r.more[have.last].next = i
		}
		have.last = i
		return
	}
	r.leads = append(r.leads, lead{lane: ln, walk: w, prev: prev, from: a, to: b, more: -1})
	r.byLane[ln] = int32(len(r.leads))
}

// placeRuns makes runs findable by their lanes, once all are made.
func (r *Reader) placeRuns() {
	if r.placed {
		return
	}
	r.placed = true
	for i, d := range r.runs {
		r.room1(d.lane)
		r.byLane[d.lane] = int32(i + 1)
	}
}

// runOf is the lane's run, nil if it has none. placed says that placeRuns was called since the last was made.
func (r *Reader) runOf(ln lane, placed bool) *run {
	if !placed {
		for i := range r.runs {
			if r.runs[i].lane == ln {
				return &r.runs[i]
			}
		}
		return nil
	}
	if int(ln) >= len(r.byLane) {
		return nil
	}
	i := r.byLane[ln] - 1
	if i < 0 || int(i) >= len(r.runs) || r.runs[i].lane != ln {
		return nil
	}
	return &r.runs[i]
}

// room1 makes room for a lane in byLane.
func (r *Reader) room1(ln lane) {
	if int(ln) >= len(r.byLane) {
		r.byLane = append(r.byLane, make([]int32, int(ln)+64-len(r.byLane))...)
	}
}

// first is the lane's lead of the last walk in which it holds anything, -1 if there is none.
func (r *Reader) first(ln lane) int32 {
	if int(ln) >= len(r.byLane) {
		return -1
	}
	i := r.byLane[ln] - 1
	if i < 0 || int(i) >= len(r.leads) || r.leads[i].lane != ln {
		return -1
	}
	return i
}

// leadIn is what the lane holds in a walk, nil for nothing.
func (r *Reader) leadIn(of laneOf, w int) *lead {
	if r.asOf < of.since {
		return nil // that was another source's lane
	}
	for i := r.first(of.lane); i >= 0; i = r.leads[i].prev {
		if r.leads[i].walk == int32(w) {
			return &r.leads[i]
		}
	}
	return nil
}

// reach is the end of the last block that the lane holds in a walk.
func (r *Reader) reach(of laneOf, w int) (end int) {
	for d := range r.stretches(of, w) {
		end = max(end, int(d.to))
	}
	return end
}

// stretches are the runs of blocks that the lane holds in a walk. They may overlap.
func (r *Reader) stretches(of laneOf, w int) iter.Seq[stretch] {
	return func(yield func(stretch) bool) {
		if r.brief {
			if d := r.runOf(of.lane, true); d != nil && r.asOf >= of.since {
				yield(stretch{to: d.blocks})
			}
			return
		}
		d := r.leadIn(of, w)
		if d == nil || !yield(stretch{from: d.from, to: d.to}) {
			return
		}
		for i := d.more; i >= 0; i = r.more[i].next {
			if !yield(r.more[i]) {
				return
			}
		}
	}
}

// plainRun is how many leading blocks a source holds that has a single lane of a single dense group in one block size.
// ok is false when it is not such a source, or shows in several scopes.
func (r *Reader) plainRun(t *table) (w *walk, blocks int, ok bool) {
	if !t.plain {
		return nil, 0, false
	}
	ln := t.lanes[0]
	if r.asOf < ln.since || r.asOf < t.since {
		return nil, 0, true
	}
	if r.brief {
		d := r.runOf(ln.lane, true)
		if d == nil {
			return nil, 0, true
		}
		return &r.walks[0], int(d.blocks), r.walks[0].size == t.sizes[0]
	}
	i := r.first(ln.lane)
	if i < 0 {
		return nil, 0, true
	}
	d := &r.leads[i]
	w = &r.walks[d.walk]
	if d.prev >= 0 || w.size != t.sizes[0] {
		return nil, 0, false
	}
	if d.from == 0 {
		blocks = int(d.to)
	}
	return w, blocks, true
}

// rowsOf are what was collected of a source, by block size, less what was read before it was last cleared: the table
// does not explain those masks.
func (r *Reader) rowsOf(l *Ledger, t *table) []*row {
	r.store, r.list, r.masks = r.store[:0], r.list[:0], r.masks[:0]
	if r.asOf < t.since || !sees(r.q, l) {
		return nil
	}
	rows := r.in.tree.rows(r, l, t)
	slices.SortFunc(rows, func(a, b *row) int { return a.size - b.size })
	return rows
}

// room is n empty masks.
func (r *Reader) room(n int) []mask {
	at := len(r.masks)
	r.masks = slices.Grow(r.masks, n)[:at+n]
	out := r.masks[at : at+n : at+n]
	clear(out)
	return out
}
