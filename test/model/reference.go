package model

import (
	"fmt"
	"slices"

	"github.com/kvscout/kvscout/events"
)

// scope is what nothing matches across (rule 3).
type scope struct {
	model, salt, adapter string
	size                 int
	pairs                bool
}

// handle is an engine hash in one scope; its meaning is the whole prompt up to its block.
type handle struct {
	scope
	hash events.Hash
}

type copyOf struct {
	handle
	group int // -1 without one
	tier  events.Tier
}

type count struct{ n, since int } // since: the batch in which n left 0

type group struct {
	spec   events.SpecKind
	window int
	sizes  []int
}

type orphan struct {
	event events.Event
	gone  []bool // by hash of the event: removed while waiting
}

// Source is the model of one source.
type Source struct {
	conf       events.Source
	maxOrphans int // blocks
	batch      int
	known      *Prefixes
	prefixes   map[handle]int           // what each hash means
	named      map[events.Hash][]handle // the same hashes, by hash alone
	copies     map[copyOf]count
	held       map[handle]int // copies that differ in tier or group
	hinted     map[handle]bool
	groups     map[int]group
	waiting    []*orphan
	complete   bool // everything held was announced: from the first batch, or since a clear
}

// NewSource is a source that is heard from its first batch on. Sources that are asked the same prompts share known.
func NewSource(conf events.Source, maxOrphans int, known *Prefixes) *Source {
	s := &Source{conf: conf, maxOrphans: maxOrphans, known: known}
	s.Clear()
	s.complete = true
	return s
}

// Clear drops everything, as when batches are lost: what the engine holds is then no longer known.
func (s *Source) Clear() {
	s.complete = false
	s.prefixes, s.named, s.waiting = map[handle]int{}, map[events.Hash][]handle{}, nil
	s.copies, s.held = map[copyOf]count{}, map[handle]int{}
	s.hinted, s.groups = map[handle]bool{}, map[int]group{}
}

// Apply applies one batch.
func (s *Source) Apply(b events.Batch) { s.ApplyWatched(b, func(*Source) {}) }

// ApplyWatched applies one batch and calls seen after each event, or clear, that counts.
func (s *Source) ApplyWatched(b events.Batch, seen func(*Source)) {
	s.batch++
	list := b.Events
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Kind == events.Cleared {
			s.Clear()
			s.complete = true
			seen(s)
			list = list[i+1:]
			break
		}
	}
	// Rule 6: hashes get their identity from dense stores of the batch before sparse stores apply, and keep it to the end
	// of the batch even when an eviction in it takes the last copy.
	sparse := slices.ContainsFunc(list, func(e events.Event) bool { return e.Kind == events.Stored && byHash(e) })
	for _, e := range list {
		if sparse && e.Kind == events.Stored && dense(e) {
			handles, _ := s.place(e)
			for _, h := range handles {
				s.hinted[h] = true
			}
		}
	}
	for _, e := range list {
		switch e.Kind {
		case events.Stored:
			s.store(e)
		case events.Removed:
			for _, h := range e.Hashes {
				s.remove(h, groupOf(e), e.Tier)
			}
		case events.TierCleared:
			s.clearTier(e.Tier)
		}
		seen(s)
	}
	clear(s.hinted)
	s.forget()
}

func (s *Source) store(e events.Event) {
	switch {
	case len(e.Hashes) == 0 && e.HasGroup: // it keeps nothing, but there is such a group
		s.learn(e, e.BlockSize)
	case byHash(e):
		for _, h := range e.Hashes {
			if fit := s.meant(e, h, false); len(fit) == 1 {
				s.add(fit[0], e)
			}
		}
	case dense(e):
		handles, waits := s.place(e)
		if waits {
			s.wait(e)
		} else if len(handles) > 0 && !s.report(e, handles) {
			for _, h := range handles {
				// With history missing, reports cannot be told from stores: no copy is counted that may be none.
				if s.complete || !s.report(e, []handle{h}) {
					s.add(h, e)
				}
			}
			s.adopt(e.Hashes)
		}
	}
}

func (s *Source) learn(e events.Event, size int) {
	g := s.groups[groupOf(e)]
	if e.Spec != events.SpecUnset {
		g.spec = e.Spec
	}
	if e.Window != 0 {
		g.window = e.Window
	}
	if !slices.Contains(g.sizes, size) {
		g.sizes = append(g.sizes, size)
	}
	s.groups[groupOf(e)] = g
}

func (s *Source) add(h handle, e events.Event) {
	s.learn(e, h.size)
	c := copyOf{h, groupOf(e), e.Tier}
	n := s.copies[c]
	if n.n == 0 {
		n.since = s.batch
		s.held[h]++
	}
	n.n++
	s.copies[c] = n
}

// place gives the hashes of a dense store their meaning. No handles and not waiting: the store is refused.
func (s *Source) place(e events.Event) (handles []handle, waits bool) {
	seen := make(map[events.Hash]bool, len(e.Hashes))
	for _, h := range e.Hashes {
		if seen[h] || e.HasParent && h == e.Parent {
			return nil, false
		}
		seen[h] = true
	}
	sc, at := scope{s.conf.Model, e.Salt, e.LoraName, e.BlockSize, e.Pairs}, 0
	if e.HasParent {
		fit := s.meant(e, e.Parent, true)
		if len(fit) != 1 {
			return nil, len(s.named[e.Parent]) == 0
		}
		sc, at = fit[0].scope, s.prefixes[fit[0]]
	} else if len(e.Extras) > 0 {
		for _, x := range e.Extras[0] {
			if x.Kind == events.ExtraString && x.Text != e.LoraName {
				sc.salt = x.Text
			}
		}
	}
	var prefixes []int
	for i, hash := range e.Hashes {
		at = s.known.add(at, blockText(e.Tokens, i, e.BlockSize, e.Pairs, mediaOf(e, i)))
		h := handle{sc, hash}
		if have, ok := s.prefixes[h]; ok && have != at {
			return nil, false // the first meaning stays
		}
		handles, prefixes = append(handles, h), append(prefixes, at)
	}
	for i, h := range handles {
		if _, ok := s.prefixes[h]; !ok {
			s.named[h.hash] = append(s.named[h.hash], h)
		}
		s.prefixes[h] = prefixes[i]
	}
	return handles, false
}

// meant lists the handles that hash may mean in the event. A child's namespace is its parent's; SGLang repeats the
// namespace on every event, so there a namespace that fits exactly decides, and a child without any (nor extra keys,
// where forks of it put one) has no parent in another.
func (s *Source) meant(e events.Event, hash events.Hash, sized bool) (fit []handle) {
	exact := handle{scope{s.conf.Model, e.Salt, e.LoraName, e.BlockSize, e.Pairs}, hash}
	for _, h := range s.named[hash] {
		if sized && (h.size != e.BlockSize || h.pairs != e.Pairs) ||
			e.Salt != "" && h.salt != e.Salt || e.LoraName != "" && h.adapter != e.LoraName {
			continue
		}
		if s.conf.Engine == events.EngineSGLang && h.salt == exact.salt && h.adapter == exact.adapter {
			return []handle{h}
		}
		if s.conf.Engine == events.EngineSGLang && sized && e.Extras == nil {
			continue
		}
		fit = append(fit, h)
	}
	return fit
}

// report: a parentless store of blocks that are all held since an earlier batch (rule 8, sources configured so).
func (s *Source) report(e events.Event, handles []handle) bool {
	return s.conf.ReuseReports && !e.HasParent && !slices.ContainsFunc(handles, func(h handle) bool {
		c := s.copies[copyOf{h, groupOf(e), e.Tier}]
		return c.n == 0 || c.since == s.batch
	})
}

func (s *Source) remove(hash events.Hash, group int, tier events.Tier) {
	var fit []copyOf
	for _, h := range s.named[hash] {
		if c := (copyOf{h, group, tier}); s.copies[c].n > 0 {
			fit = append(fit, c)
		}
	}
	for _, c := range fit {
		n := s.copies[c]
		if n.n--; n.n == 0 || len(fit) > 1 { // of several namespaces none may stay
			s.drop(c)
		} else {
			s.copies[c] = n
		}
	}
	if len(fit) > 0 {
		return
	}
	for i, o := range s.waiting {
		if groupOf(o.event) != group || o.event.Tier != tier {
			continue
		}
		if at := slices.Index(o.event.Hashes, hash); at >= 0 && !o.gone[at] {
			o.gone[at] = true
			if !slices.Contains(o.gone, false) {
				s.waiting = slices.Delete(s.waiting, i, i+1)
			}
			return
		}
	}
}

func (s *Source) clearTier(tier events.Tier) {
	for c := range s.copies {
		if c.tier == tier {
			s.drop(c)
		}
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(o *orphan) bool { return o.event.Tier == tier })
}

// wait keeps a store whose parent is not known (rule 9), the oldest giving way (rule 17).
func (s *Source) wait(e events.Event) {
	if len(e.Hashes) > s.maxOrphans {
		return
	}
	for s.waitingBlocks()+len(e.Hashes) > s.maxOrphans {
		s.waiting = s.waiting[1:]
	}
	s.waiting = append(s.waiting, &orphan{event: e, gone: make([]bool, len(e.Hashes))})
}

// ForgetWaiting gives up the stores that wait for their parent.
func (s *Source) ForgetWaiting() { s.waiting = nil }

func (s *Source) waitingBlocks() (n int) {
	for _, o := range s.waiting {
		n += len(o.gone)
	}
	return n
}

// adopt applies the stores that waited for these hashes, then those that waited for theirs.
func (s *Source) adopt(hashes []events.Hash) {
	for queue := slices.Clone(hashes); len(queue) > 0; queue = queue[1:] {
		var ready []*orphan
		s.waiting = slices.DeleteFunc(s.waiting, func(o *orphan) bool {
			mine := o.event.Parent == queue[0]
			if mine {
				ready = append(ready, o)
			}
			return mine
		})
		for _, o := range ready {
			handles, _ := s.place(o.event)
			for i, h := range handles {
				queue = append(queue, h.hash)
				if !o.gone[i] {
					s.add(h, o.event)
				}
			}
		}
	}
	s.forget()
}

// drop takes a copy away, however often it was stored.
func (s *Source) drop(c copyOf) {
	delete(s.copies, c)
	if s.held[c.handle]--; s.held[c.handle] == 0 {
		delete(s.held, c.handle)
	}
	s.forgetOne(c.handle)
}

// forget drops the meaning of hashes that nothing holds.
func (s *Source) forget() {
	if len(s.prefixes) == len(s.held) { // what is held has a meaning
		return
	}
	for h := range s.prefixes {
		s.forgetOne(h)
	}
}

func (s *Source) forgetOne(h handle) {
	if s.held[h] > 0 || s.hinted[h] {
		return
	}
	delete(s.prefixes, h)
	left := slices.DeleteFunc(s.named[h.hash], func(n handle) bool { return n == h })
	if s.named[h.hash] = left; len(left) == 0 {
		delete(s.named, h.hash)
	}
}

func groupOf(e events.Event) int {
	if e.HasGroup {
		return e.Group
	}
	return -1
}

func dense(e events.Event) bool {
	n := len(e.Tokens)
	if e.Pairs {
		n--
	}
	return e.BlockSize > 0 && len(e.Hashes) > 0 && n == len(e.Hashes)*e.BlockSize
}

func byHash(e events.Event) bool {
	return len(e.Hashes) > 0 && !dense(e) && (len(e.Tokens) == 0 || e.BlockSize > 0 && !e.Spec.Dense())
}

func mediaOf(e events.Event, block int) (ids []string) {
	if block < len(e.Extras) {
		for _, x := range e.Extras[block] {
			if x.Kind == events.ExtraPair {
				ids = append(ids, x.Text)
			}
		}
	}
	return ids
}

// blockText spells one block: its tokens, with pairs one more, and the images that overlap it.
func blockText(tokens []uint32, block, size int, pairs bool, media []string) string {
	from, to := block*size, (block+1)*size
	if pairs {
		to++
	}
	return fmt.Sprint(tokens[from:to], media)
}
