package bench

import (
	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer/workload"
)

// step is one batch and the holder that it is from.
type step struct {
	holder int
	batch  events.Batch
}

// script turns operations into the batches that announce them, one each. What it made is good until reset.
type script struct {
	steps  []step
	events []events.Event
	hashes []events.Hash
	tokens []uint32
	// once: a removal is announced once, however many copies there are.
	once bool
	// own: holders give one block different hashes.
	own bool
}

// newScript makes room for so many operations with so many blocks.
func newScript(ops, blocks int) *script {
	return &script{
		steps:  make([]step, 0, ops),
		events: make([]events.Event, 0, ops),
		hashes: make([]events.Hash, 0, blocks),
		tokens: make([]uint32, 0, blocks*blockSize),
	}
}

func (s *script) reset() {
	s.steps, s.events, s.hashes, s.tokens = s.steps[:0], s.events[:0], s.hashes[:0], s.tokens[:0]
}

// hash is the engine hash under which a holder announces a key. Different keys stay different.
func (s *script) hash(holder int, key uint64) events.Hash {
	if s.own {
		key ^= uint64(holder+1) * 0x9E3779B97F4A7C15
	}
	return events.HashInt(key)
}

// add appends an operation. Slices that have to move leave earlier steps where they were.
func (s *script) add(o workload.Op) {
	firstHash, firstToken, firstEvent := len(s.hashes), len(s.tokens), len(s.events)
	e := events.Event{Kind: events.Stored, BlockSize: blockSize, HasParent: o.HasParent}
	if o.HasParent {
		e.Parent = s.hash(o.Holder, o.Parent)
	}
	if o.Remove {
		e = events.Event{Kind: events.Removed}
	}
	for _, b := range o.Blocks {
		times := 1
		if o.Remove && !s.once {
			times = o.Copies
		}
		for range times {
			s.hashes = append(s.hashes, s.hash(o.Holder, b.Key))
		}
		if !o.Remove {
			s.tokens = tokensOf(s.tokens, b.Content)
		}
	}
	e.Hashes = s.hashes[firstHash:len(s.hashes):len(s.hashes)]
	if !o.Remove {
		e.Tokens = s.tokens[firstToken:len(s.tokens):len(s.tokens)]
	}
	s.events = append(s.events, e)
	s.steps = append(s.steps, step{o.Holder, events.Batch{Events: s.events[firstEvent : firstEvent+1 : firstEvent+1]}})
}
