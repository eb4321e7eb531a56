package indexer

import (
	"strings"

	"github.com/kvscout/kvscout/events"
)

// identity is where a dense store puts its blocks.
type identity struct {
	blocks []*block
	fresh  []*block // those of blocks made for this store
}

// storeLocked applies one BlockStored. When it is not applied the reason is returned with false; an orphan that waits
// is neither applied nor rejected.
func (l *Ledger) storeLocked(e *events.Event) (events.Reason, bool) {
	if len(e.Hashes) == 0 {
		return l.emptyLocked(e)
	}
	if shape, r := shapeOf(e); shape == shapeBad {
		if r == events.ReasonNotDense && e.HasGroup && e.Tier == events.TierDevice {
			l.unheardLocked(e) // perhaps a sparse group whose kind is not told
		}
		return r, false
	} else if shape == shapeSparse {
		return l.storeByHashLocked(e)
	}
	id, wait, r, ok := l.identifyLocked(e)
	switch {
	case wait:
		dropped := l.orphans.add(e)
		l.stats.orphansDropped.Add(int64(dropped))
		for range dropped {
			l.Reject(events.ReasonOrphanDropped)
		}
		return 0, true
	case !ok:
		return r, false
	}
	if l.reportedLocked(e, id.blocks) {
		l.stats.reports.Add(1)
		for _, b := range id.blocks {
			l.x.storedAgainLocked(b.place)
		}
		if len(l.table.Load().groups) > 1 { // a hybrid engine computes anew what not all of its groups hold
			l.doubt(DoubtRefused, true)
		}
		return 0, true
	}
	g, ok := l.learnLocked(e, e.BlockSize)
	if !ok {
		l.undoLocked(id.fresh)
		return events.ReasonBadEvent, false
	}
	for _, b := range id.blocks {
		if !l.mayRepeatLocked(e, b, bit(g, e.Tier)) {
			l.addLocked(b, g, e.Tier)
		}
	}
	l.adoptLocked(e.Hashes)
	return 0, true
}

// emptyLocked applies a store without hashes: a sparse group keeps nothing of the range. That there is such a group
// counts all the same.
func (l *Ledger) emptyLocked(e *events.Event) (events.Reason, bool) {
	if !e.HasGroup || e.BlockSize <= 0 || len(e.Tokens) == 0 {
		return 0, true
	}
	_, ok := l.learnLocked(e, e.BlockSize)
	return events.ReasonBadEvent, ok
}

type shape uint8

const (
	shapeBad    shape = iota
	shapeDense        // hashes cover the tokens
	shapeSparse       // hashes name some blocks of the range, or of no range at all
)

// shapeOf says how a store's hashes relate to its tokens. A sparse group's store carries the tokens of a whole range
// and the hashes of the blocks it keeps (vllm-project/vllm#44451); a tier placeholder carries no tokens.
func shapeOf(e *events.Event) (shape, events.Reason) {
	n := len(e.Tokens)
	if e.Pairs && n > 0 {
		n--
	}
	switch {
	case n == 0:
		return shapeSparse, 0
	case e.BlockSize <= 0:
		return shapeBad, events.ReasonBadBlockSize
	case n%e.BlockSize == 0 && n/e.BlockSize == len(e.Hashes):
		return shapeDense, 0
	case !e.Spec.Dense():
		return shapeSparse, 0
	case n < e.BlockSize:
		return shapeBad, events.ReasonPartialBlock
	default:
		return shapeBad, events.ReasonNotDense
	}
}

// storeByHashLocked applies a store whose blocks are known by earlier or hinted announcements only. Each unknown hash
// is counted; the known ones apply.
func (l *Ledger) storeByHashLocked(e *events.Event) (events.Reason, bool) {
	missing := 0
	for _, h := range e.Hashes {
		b, several := l.namedLocked(e, h)
		if several {
			l.Reject(events.ReasonAmbiguous) // crediting one namespace with another's block is worse than neither
			continue
		}
		if b == nil {
			missing++
			continue
		}
		g, ok := l.learnLocked(e, b.scope.BlockSize)
		if !ok {
			return events.ReasonBadEvent, false
		}
		l.addLocked(b, g, e.Tier)
		if len(e.Tokens) > 0 && e.BlockSize != b.scope.BlockSize && e.Spec != events.SpecMamba {
			l.doubt(DoubtGroups, true) // a window counts its own blocks, and those are known by their ends only
		}
	}
	for range missing - 1 {
		l.Reject(events.ReasonUnknownBlock)
	}
	if missing > 0 && e.Tier == events.TierDevice && len(e.Tokens) > 0 {
		l.unheardLocked(e)
	}
	return events.ReasonUnknownBlock, missing == 0
}

// unheardLocked notes what it leaves in doubt that a sparse group's blocks on the device could not be placed: a known
// group holds more than we know; of a group not heard of before we do not even ask what it holds.
func (l *Ledger) unheardLocked(e *events.Event) {
	id := ungrouped
	if e.HasGroup {
		id = e.Group
	}
	if l.table.Load().find(id) >= 0 {
		l.doubt(DoubtRefused, true)
	} else {
		l.doubt(DoubtUnread, true)
	}
}

// namedLocked is the block that a store by hash means: of those under the hash that do not contradict the event, the
// one that fits its block size and namespace best. several means that two fit alike.
func (l *Ledger) namedLocked(e *events.Event, h events.Hash) (b *block, several bool) {
	best := -1
	for o := l.findLocked(h); o != nil; o = o.next {
		if e.LoraName != "" && e.LoraName != o.scope.Adapter || e.Salt != "" && e.Salt != o.scope.Salt {
			continue
		}
		fits := 0
		if e.BlockSize == o.scope.BlockSize {
			fits += 2
		}
		// SGLang names the namespace on every event, so to name none is a name too.
		if l.src.Engine == events.EngineSGLang && e.Salt == o.scope.Salt && e.LoraName == o.scope.Adapter {
			fits++
		}
		if fits == best {
			several = true
		} else if fits > best {
			b, best, several = o, fits, false
		}
	}
	return b, several
}

// learnLocked notes what the event says about its group and returns the group's position.
func (l *Ledger) learnLocked(e *events.Event, size int) (int, bool) {
	next, at, ok := l.table.Load().learn(e, size)
	if ok && l.x.chains != nil && !l.x.chains.lanes.ready(l, at*events.TierCount+int(e.Tier)) {
		return 0, false
	}
	if next != nil {
		t := l.table.Load()
		l.publish(newTable(l.src, next, t.since, t.lanes))
	}
	return at, ok
}

// identifyLocked finds or makes the blocks of a dense store. wait means that its parent is not known.
func (l *Ledger) identifyLocked(e *events.Event) (id identity, wait bool, r events.Reason, ok bool) {
	if l.loops(e) {
		return id, false, events.ReasonSelfParent, false
	}
	sc, parent, wait, r, ok := l.parentLocked(e)
	if !ok {
		return id, wait, r, false
	}
	first := extras{}
	if !e.HasParent || l.rootParentLocked(e) {
		first = l.extrasOf(e, 0, sc.Adapter, true)
	}
	at, seed := parent, sc.Seed()
	var key Key
	var buf []byte
	for i, h := range e.Hashes {
		x := first
		if i > 0 || parent != 0 {
			x = l.extrasOf(e, i, sc.Adapter, false)
		}
		from, to := i*e.BlockSize, (i+1)*e.BlockSize
		if e.Pairs {
			to++
		}
		key, buf = blockKey(buf, e.Tokens[from:to], x.media, x.opaque, seed)
		b, fresh, ok := l.placeLocked(h, sc, at, key)
		if !ok {
			l.undoLocked(id.fresh)
			return identity{}, false, events.ReasonConflict, false
		}
		id.blocks = append(id.blocks, b)
		if fresh {
			id.fresh = append(id.fresh, b)
		}
		at = b.place
	}
	return id, false, 0, true
}

// loops says whether the store names a block as its own ancestor.
func (l *Ledger) loops(e *events.Event) bool {
	seen := make(map[events.Hash]struct{}, len(e.Hashes)+1)
	if e.HasParent {
		seen[e.Parent] = struct{}{}
	}
	for _, h := range e.Hashes {
		if _, ok := seen[h]; ok {
			return true
		}
		seen[h] = struct{}{}
	}
	return false
}

// rootParentLocked says whether the parent is the integer 0 by which llm-d's simulator, its storage publisher and
// LMCache mean "none". A digest is 0 once in 2^64 blocks; where 0 is a known block it is that block.
func (l *Ledger) rootParentLocked(e *events.Event) bool {
	return e.HasParent && e.Parent == events.Hash{} && l.findLocked(e.Parent) == nil
}

// parentLocked finds the scope of a store and the place it hangs under: 0 for a prompt's first block. A child's
// namespace is its parent's, since engines announce a salt on the first block only.
func (l *Ledger) parentLocked(e *events.Event) (sc Scope, at place, wait bool, r events.Reason, ok bool) {
	if !e.HasParent || l.rootParentLocked(e) {
		sc, r, ok = l.rootScope(e)
		return sc, 0, false, r, ok
	}
	p := l.findLocked(e.Parent)
	if p == nil {
		return sc, 0, true, 0, false
	}
	var fit *block
	sized, several := false, false
	for ; p != nil; p = p.next {
		if p.scope.BlockSize != e.BlockSize || p.scope.Pairs != e.Pairs {
			continue
		}
		sized = true
		if e.LoraName != "" && e.LoraName != p.scope.Adapter || e.Salt != "" && e.Salt != p.scope.Salt {
			continue
		}
		if l.src.Engine == events.EngineSGLang && e.Salt == p.scope.Salt && e.LoraName == p.scope.Adapter {
			fit, several = p, false // SGLang names the namespace on every event, so to name none is a name too
			break
		}
		if l.src.Engine == events.EngineSGLang && e.Extras == nil {
			continue // nor is there another place for it, as forks have
		}
		several = several || fit != nil
		fit = p
	}
	switch {
	case several:
		return sc, 0, false, events.ReasonAmbiguous, false
	case fit != nil:
		return fit.scope.Scope, fit.place, false, 0, true
	case sized:
		return sc, 0, false, events.ReasonConflict, false
	default:
		return sc, 0, false, events.ReasonBlockSizeMismatch, false
	}
}

// rootScope is the scope that a store without a parent names.
func (l *Ledger) rootScope(e *events.Event) (Scope, events.Reason, bool) {
	if e.LoraName == "" && e.HasLoraID && e.LoraID != 0 {
		return Scope{}, events.ReasonAdapterUnnamed, false
	}
	sc := Scope{Model: l.src.Model, BlockSize: e.BlockSize, Pairs: e.Pairs}
	sc.Adapter = e.LoraName
	sc.Salt = l.extrasOf(e, 0, e.LoraName, true).salt
	if e.Salt != "" {
		sc.Salt = e.Salt
	}
	return sc, 0, true
}

func (l *Ledger) extrasOf(e *events.Event, i int, adapter string, first bool) extras {
	if i >= len(e.Extras) {
		return extras{}
	}
	return readExtras(e.Extras[i], adapter, first, l.legacyMedia())
}

// legacyMedia says whether the engine names multimodal items by bare digests (vLLM 0.18).
func (l *Ledger) legacyMedia() bool { return strings.HasPrefix(l.src.Version, "0.18") }

// placeLocked is the block that hash h names at this key after parent (0: the scope's root), made if new. ok is false
// when the hash already names other content in that scope: the first meaning stays.
func (l *Ledger) placeLocked(h events.Hash, sc Scope, parent place, key Key) (b *block, fresh, ok bool) {
	head := l.findLocked(h)
	var same *block
	for o := head; o != nil; o = o.next {
		if o.scope.Scope == sc {
			same = o
		}
	}
	s := l.x.enterLocked(sc)
	if parent == 0 {
		parent = s.root
	}
	at := l.x.tree.child(parent, key)
	if same != nil {
		l.x.tree.release(at)
		l.x.leaveLocked(s, 1)
		return same, false, same.place == at
	}
	l.exposeLocked(at)
	b = &block{hash: h, scope: s, place: at, next: l.blocks[h]}
	l.blocks[h] = b
	if l.compact {
		l.loose = append(l.loose, b)
		l.odd[at]++
	}
	if h.Digest() {
		l.alias[h.Lo] = h
	}
	l.stats.handles.Add(1)
	return b, true, true
}

// undoLocked forgets blocks made for a store that was then refused, the last first.
func (l *Ledger) undoLocked(fresh []*block) {
	for i := len(fresh) - 1; i >= 0; i-- {
		if !fresh[i].gone && len(fresh[i].copies) == 0 {
			l.forgetLocked(fresh[i])
		}
	}
}
