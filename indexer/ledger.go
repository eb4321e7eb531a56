package indexer

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/kvscout/kvscout/events"
)

// Ledger is the book of one source: what it announced, under which engine hashes, how often, and what is known of its
// history. The tree hears only what changes. One goroutine at a time writes a ledger's events, in the order of the
// stream (rule 8).
type Ledger struct {
	x    *stripe // of its model
	src  events.Source
	slot slot
	// configured is the block size that the source is configured with, if any.
	configured []int

	// table is the published group table; replaced, never changed.
	table atomic.Pointer[table]
	// doubts is the set of reasons why answers about the source are bounds.
	doubts atomic.Uint32
	stats  counters
	fresh  fresh

	// The book; guarded by the stripe's mu.
	closed  bool
	blocks  map[events.Hash]*block
	alias   map[uint64]events.Hash // integer form of digests, for engines that mix both forms
	orphans orphanage
	batch   uint64 // number of the batch being applied
	unread  Doubt  // what its rejects leave in doubt
	// offloads: blocks lie, or lay since the last reset, in tiers that survive some engines' clear; outlived: there may
	// have been some at the last clear.
	offloads, outlived bool
	// neverProven: the ledger was restored from one that had gone on without a proof, so no later proof is enough.
	neverProven bool
	hinted      []*block // blocks whose identity the current batch tells
	// lanes are the source's lanes of the tree of chains, by bit, each plus 1; 0: none yet.
	lanes [maxGroups * events.TierCount]lane

	// compact: blocks may be simple (simple.go); those in blocks are odd. What a batch made or made odd is loose until its
	// end.
	compact bool
	loose   []*block
	odd     map[place]uint32     // how many odd blocks lie at a place
	more    map[uint32][]copyRun // copies beyond the first of simple blocks, by chain
	space   uint32               // of the dict, in which the hashes of simple blocks are
	claimed bool                 // some of those were entered as space 0's
	groups  []uint32             // groups of its own space, and some that are no more
	chains  []uint32             // chains in which it holds something, and some in which it does not; may repeat
	cur     cursor
	removed handle // removed last
	common  *scope // the scope of prompts without a namespace, if it was met
	// shape is of the store applied last, into lane shapeLane minus 1.
	shape     storeShape
	shapeLane lane
	seen      []uint64
}

// block is what a source says about one engine hash.
type block struct {
	hash   events.Hash
	scope  *scope
	place  place
	mask   mask
	copies []copies
	next   *block // the same hash in another scope
	gone   bool   // forgotten: a batch may still point at it
	hinted bool   // in Ledger.hinted: kept to the end of the batch, held or not
}

// copies counts how often a block was stored into one tier of one group.
type copies struct {
	bit   mask
	n     uint32
	since uint64 // batch in which n last rose from 0
}

func newLedger(x *stripe, src events.Source, s slot) *Ledger {
	l := &Ledger{x: x, src: src, slot: s, blocks: make(map[events.Hash]*block), alias: make(map[uint64]events.Hash)}
	l.orphans.init(x.opts.MaxOrphanBlocks)
	if src.BlockSize > 0 {
		l.configured = []int{src.BlockSize}
	}
	if l.compact = x.chains != nil && compact(src); l.compact {
		l.odd = make(map[place]uint32)
	}
	l.fresh.since.Store(time.Now().UnixNano())
	l.table.Store(newTable(src, nil, 0, nil))
	l.doubt(DoubtHistory, true)
	if src.Hides(events.HiddenWindow) {
		l.doubt(DoubtWindow, true)
	}
	if src.Hides(events.HiddenState) {
		l.doubt(DoubtState, true)
	}
	if src.Hides(events.HiddenNamespace) {
		l.doubt(DoubtNamespace, true)
	}
	return l
}

// Source is what was given to Open.
func (l *Ledger) Source() events.Source { return l.src }

// Apply applies one batch: its events in order, each fault costing one event (rule 10). The batch is not kept.
func (l *Ledger) Apply(b *events.Batch) {
	l.x.mu.Lock()
	defer l.x.mu.Unlock()
	l.applyBatchLocked(b)
}

func (l *Ledger) applyBatchLocked(b *events.Batch) {
	if l.closed {
		return
	}
	l.batch++
	if l.x.chains != nil {
		l.x.chains.now++
	}
	l.stats.batches.Add(1)
	l.unread = 0
	for _, r := range b.Rejects {
		l.Reject(r)
		l.unread |= doubtOf(r)
	}
	// What precedes a clear leaves no trace, so identities are looked ahead only behind the last one.
	list := b.Events
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Kind == events.Cleared {
			l.countLocked(list[:i])
			l.applyLocked(&list[i])
			list = list[i+1:]
			break
		}
	}
	l.hintLocked(list)
	for i := range list {
		l.applyLocked(&list[i])
	}
	l.dropHintsLocked()
	l.deflateLocked()
	l.weighLocked()
	l.x.tree.settle()
	l.x.capLocked()
	l.x.compactLocked()
	l.doubt(DoubtOrphans, l.orphans.blocks > 0)
	l.x.version.Add(1)
}

func (l *Ledger) applyLocked(e *events.Event) {
	l.stats.kinds[e.Kind].Add(1)
	switch e.Kind {
	case events.Stored:
		if e.Tier == events.TierUnknown {
			l.Reject(events.ReasonUnknownTier)
		}
		if l.storeQuickLocked(e) {
			break
		}
		if r, ok := l.storeLocked(e); !ok {
			l.Reject(r)
		}
	case events.Removed:
		l.removeAllLocked(e)
	case events.Cleared:
		l.outliveLocked()
		l.clearLocked()
		// A clear is a known state: whatever came before no longer matters. What could not be read of the same batch may
		// have come after.
		l.doubt((DoubtHistory|passing)&^l.unread, false)
	case events.TierCleared:
		l.clearTierLocked(e.Tier)
	}
}

func (l *Ledger) countLocked(list []events.Event) {
	for i := range list {
		l.stats.kinds[list[i].Kind].Add(1)
	}
}

// addLocked counts one more copy of b.
func (l *Ledger) addLocked(b *block, group int, tier events.Tier) {
	want := bit(group, tier)
	for i := range b.copies {
		if b.copies[i].bit == want {
			b.copies[i].n++
			l.x.storedAgainLocked(b.place)
			l.repeatedLocked()
			return
		}
	}
	b.copies = append(b.copies, copies{bit: want, n: 1, since: l.batch})
	l.stats.resident[tier].Add(1)
	l.offloadedLocked(tier)
	l.publishLocked(b, b.mask|want)
}

// offloadedLocked notes that a block lies in a tier.
func (l *Ledger) offloadedLocked(tier events.Tier) {
	if tier != events.TierDevice && !l.offloads {
		l.offloads = true
		l.doubt(DoubtTiers, l.outlived)
	}
}

// repeatedLocked notes what a second copy of a block in one tier tells. An SGLang tree has each block of a namespace
// once, so two namespaces must have published one hash for it.
func (l *Ledger) repeatedLocked() {
	if l.src.Engine == events.EngineSGLang && Doubt(l.doubts.Load())&(DoubtGap|DoubtUnread) == 0 {
		l.doubt(DoubtNamespace, true)
	}
}

// outliveLocked notes what a clear leaves in doubt: vLLM announces the reset of its device alike whether its offload
// tiers were reset too (vllm-project/vllm#57296). They are taken for empty.
func (l *Ledger) outliveLocked() {
	if l.src.Engine != events.EngineVLLM {
		return
	}
	for t := events.TierHost; t <= events.TierUnknown; t++ {
		l.outlived = l.outlived || l.stats.resident[t].Load() > 0
	}
	l.outlived = l.outlived || Doubt(l.doubts.Load())&DoubtHistory != 0
	l.doubt(DoubtTiers, l.outlived && l.offloads)
}

// takeLocked counts one copy less of b, or all of them.
func (l *Ledger) takeLocked(b *block, which mask, all bool) {
	for i := range b.copies {
		c := &b.copies[i]
		if c.bit != which {
			continue
		}
		if c.n--; c.n > 0 && !all {
			return
		}
		b.copies = append(b.copies[:i], b.copies[i+1:]...)
		l.stats.resident[tierOf(which)].Add(-1)
		l.publishLocked(b, b.mask&^which)
		break
	}
	if len(b.copies) == 0 && !b.hinted {
		l.forgetLocked(b)
	}
}

func tierOf(which mask) events.Tier {
	return events.Tier(bits.TrailingZeros64(uint64(which)) % events.TierCount)
}

func (l *Ledger) publishLocked(b *block, m mask) {
	if m == b.mask {
		return
	}
	l.x.tree.hold(b.place, l, b.hash.Lo, b.mask, m)
	b.mask = m
}

// forgetLocked drops a block that holds nothing, with its place.
func (l *Ledger) forgetLocked(b *block) {
	b.gone = true
	switch head := l.blocks[b.hash]; {
	case head == b && b.next == nil:
		delete(l.blocks, b.hash)
		if b.hash.Digest() && l.alias[b.hash.Lo] == b.hash {
			delete(l.alias, b.hash.Lo)
		}
	case head == b:
		l.blocks[b.hash] = b.next
	default:
		for o := head; o != nil; o = o.next {
			if o.next == b {
				o.next = b.next
				break
			}
		}
	}
	if l.compact {
		if l.odd[b.place]--; l.odd[b.place] == 0 {
			delete(l.odd, b.place)
		}
	}
	l.stats.handles.Add(-1)
	l.x.tree.release(b.place)
	l.x.leaveLocked(b.scope, 1)
}

// findLocked is the first block under hash h; more follow by next. An engine may name by an integer what it announced
// as a digest.
func (l *Ledger) findLocked(h events.Hash) *block {
	if b := l.blocks[h]; b != nil || h.Digest() {
		return b
	}
	if l.compact {
		if at, p := l.resolveLocked(h.Lo); at != 0 {
			return l.inflateLocked(h, at, p)
		}
	}
	if full, ok := l.alias[h.Lo]; ok {
		return l.blocks[full]
	}
	return nil
}

// removeAllLocked takes one copy of each hash of an event away.
func (l *Ledger) removeAllLocked(e *events.Event) {
	for i, h := range e.Hashes {
		if i%32 == 0 && l.compact {
			l.x.quick.probes = l.x.chains.dict.probes(l.x.quick.probes[:0], e.Hashes[i:min(i+32, len(e.Hashes))], l.space)
		}
		l.removeLocked(e, h)
	}
}

// removeLocked takes one copy of hash h away. A removal whose hash fits blocks of several scopes takes all of them:
// none may be credited that could be gone.
func (l *Ledger) removeLocked(e *events.Event, h events.Hash) {
	id := ungrouped
	if e.HasGroup {
		id = e.Group
	}
	g := l.table.Load().find(id)
	if l.removeQuickLocked(h, g, e.Tier) {
		return
	}
	var fit []*block
	if g >= 0 {
		which := bit(g, e.Tier)
		for b := l.findLocked(h); b != nil; b = b.next {
			if b.mask&which != 0 {
				fit = append(fit, b)
			}
		}
		if len(fit) == 1 {
			l.takeLocked(fit[0], which, false)
			return
		}
		for _, b := range fit {
			l.takeLocked(b, which, true)
		}
	}
	switch {
	case len(fit) > 1:
		l.doubt(DoubtAmbiguous, true)
		l.Reject(events.ReasonAmbiguous)
	case !l.orphans.remove(h, id, e.Tier):
		l.Reject(events.ReasonUnknownRemoval)
	}
}

// held is a block that a source holds.
type held struct {
	via   uint64
	scope *scope
	place place
	mask  mask
}
