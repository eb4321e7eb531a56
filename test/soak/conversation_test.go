package soak

import (
	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

const (
	systemBlocks = 12  // that a conversation begins with
	longest      = 120 // blocks of a conversation
)

// topic is what conversations are about: it lasts for some hours.
type topic struct {
	id     uint32
	system uint32 // the system prompt
	blocks int    // of the conversation so far
	indexer.Namespace
}

// tokens are those of blocks from..to-1.
func (t *topic) tokens(size, from, to int) []uint32 {
	out := make([]uint32, 0, (to-from)*size)
	for at := from * size; at < to*size; at++ {
		id := t.id
		if at < systemBlocks*size {
			id = t.system
		}
		out = append(out, uint32(mix(uint64(id)<<32|uint64(at))%150_000))
	}
	return out
}

// cached is what a source has of a topic.
type cached struct {
	*topic
	number uint64 // of block 0, where blocks are numbered
	// device blocks 0..held-1 but for those from hole[0] to hole[1]-1; host blocks 0..host-1.
	held, host int
	hole       [2]int
}

// hash is what a source calls block i of a topic.
func (s *source) hash(c *cached, i int) events.Hash {
	seed := mix(uint64(c.id)<<32 | uint64(i))
	if i < systemBlocks {
		seed = mix(mixText(c.Salt)^mixText(c.Adapter)) ^ mix(uint64(c.system)<<32|uint64(i)|1<<63)
	}
	switch s.hashing {
	case hashOwn:
		seed ^= s.secret
	case hashNumber:
		return events.HashInt(c.number + uint64(i))
	}
	return events.HashInt(mix(seed))
}

// store announces device blocks from..to-1.
func (s *source) store(c *cached, from, to int) events.Event {
	e := events.Event{Kind: events.Stored, BlockSize: s.size, LoraName: c.Adapter, Tokens: c.tokens(s.size, from, to)}
	for i := from; i < to; i++ {
		e.Hashes = append(e.Hashes, s.hash(c, i))
	}
	if from > 0 {
		e.Parent, e.HasParent = s.hash(c, from-1), true
	}
	if s.conf.Engine == events.EngineSGLang {
		e.Salt = c.Salt
		return e
	}
	if c.Namespace == (indexer.Namespace{}) {
		return e
	}
	e.Extras = make([][]events.Extra, to-from)
	for i := range e.Extras {
		if c.Adapter != "" {
			e.Extras[i] = append(e.Extras[i], events.Extra{Kind: events.ExtraString, Text: c.Adapter})
		}
		if c.Salt != "" && from+i == 0 {
			e.Extras[i] = append(e.Extras[i], events.Extra{Kind: events.ExtraString, Text: c.Salt})
		}
	}
	return e
}

// named are the hashes of blocks from..to-1.
func (s *source) named(c *cached, from, to int) (out []events.Hash) {
	for i := from; i < to; i++ {
		out = append(out, s.hash(c, i))
	}
	return out
}

// mix is SplitMix64's.
func mix(z uint64) uint64 {
	z += 0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

func mixText(text string) (sum uint64) {
	for _, c := range []byte(text) {
		sum = mix(sum ^ uint64(c))
	}
	return sum
}
