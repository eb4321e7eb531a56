package indexer

import "slices"

// Scope is what a tree is keyed by. Nothing ever matches across scopes (rule 3).
type Scope struct {
	Model string
	Namespace
	// BlockSize is in tokens (pairs, with Pairs).
	BlockSize int
	// Pairs says that the engine keys by bigrams, so block i covers one token more.
	Pairs bool
}

// family is a scope without its block size: what a request names. A pool may mix block sizes (rule 4).
type family struct {
	model string
	Namespace
}

// scope is a Scope that exists: at least one block of it is known.
type scope struct {
	Scope
	root   place
	origin uint64 // of root, for readers
	seed   uint64
	blocks int  // of all sources; writers only, as is gone
	gone   bool // without blocks, and no more in the index
}

func (s Scope) family() family { return family{model: s.Model, Namespace: s.Namespace} }

// scopeLocked is the scope, nil if there is none. Needs stripe.mu.
func (x *stripe) scopeLocked(want Scope) *scope {
	have, _ := x.families.Load(want.family())
	for _, s := range have {
		if s.Scope == want {
			return s
		}
	}
	return nil
}

// enterLocked is the scope, made if new, with one more block in it. Needs stripe.mu.
func (x *stripe) enterLocked(want Scope) *scope {
	key := want.family()
	have, _ := x.families.Load(key)
	for _, s := range have {
		if s.Scope == want {
			s.blocks++
			return s
		}
	}
	s := &scope{Scope: want, seed: want.Seed(), blocks: 1}
	s.root, s.origin = x.tree.root(s)
	// The slice is published: it is replaced, never changed.
	x.families.Store(key, append(slices.Clone(have), s))
	x.scopes.Add(1) // after: who sees it finds the new list
	if want.Adapter != "" {
		models, _ := x.adapters.Load(want.Adapter)
		x.adapters.Store(want.Adapter, append(slices.Clone(models), want.Model))
	}
	return s
}

// leaveLocked takes n blocks out of the scope, which goes with its last one. Needs stripe.mu.
func (x *stripe) leaveLocked(s *scope, n int) {
	s.blocks -= n
	if s.blocks > 0 || n == 0 {
		return
	}
	s.gone = true
	key := s.family()
	have, _ := x.families.Load(key)
	rest := slices.DeleteFunc(slices.Clone(have), func(o *scope) bool { return o == s })
	if len(rest) == 0 {
		x.families.Delete(key)
	} else {
		x.families.Store(key, rest)
	}
	x.scopes.Add(1)
	if s.Adapter != "" {
		models, _ := x.adapters.Load(s.Adapter)
		i := slices.Index(models, s.Model)
		if models = slices.Delete(slices.Clone(models), i, i+1); len(models) == 0 {
			x.adapters.Delete(s.Adapter)
		} else {
			x.adapters.Store(s.Adapter, models)
		}
	}
	x.tree.release(s.root)
}
