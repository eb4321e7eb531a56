package soak

import (
	"math/rand/v2"
	"slices"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

// hashing is how a source names blocks.
type hashing int

const (
	hashShared hashing = iota
	hashOwn
	hashNumber // 1, 2, 3 as they come
	hashings
)

const (
	capacity = 4000 // blocks on the device
	hostKeep = 10   // conversations of which some blocks are in host memory
)

// source is an engine.
type source struct {
	conf    events.Source
	ledger  *indexer.Ledger
	rng     *rand.Rand
	hashing hashing
	secret  uint64 // of its own hashes
	next    uint64 // number of the next block
	size    int    // of blocks
	list    []*cached
}

// device is the number of blocks on the device, each conversation's counted apart.
func (s *source) device() (n int) {
	for _, c := range s.list {
		n += c.held - (c.hole[1] - c.hole[0])
	}
	return n
}

// serve serves a request: what is missing of the topic is stored, and what then is too much evicted.
func (s *source) serve(t *topic) {
	at := slices.IndexFunc(s.list, func(c *cached) bool { return c.topic == t })
	if at < 0 {
		s.list = append(s.list, &cached{topic: t, number: s.next + 1})
		s.next += longest
		at = len(s.list) - 1
	}
	c := s.list[at]
	s.list = append(slices.Delete(s.list, at, at+1), c) // the last is the one used last
	var batch events.Batch
	if c.hole[1] > 0 {
		batch.Events = append(batch.Events, s.store(c, c.hole[0], c.hole[1]))
		c.hole = [2]int{}
	}
	for step := 8 << s.rng.IntN(3); c.held < t.blocks; {
		to := min(t.blocks, c.held+step)
		batch.Events = append(batch.Events, s.store(c, c.held, to))
		c.held = to
	}
	for s.device() > capacity {
		batch.Events = append(batch.Events, s.evict()...)
	}
	s.ledger.Apply(&batch)
}

// evict gives up what was not used for longest, or a part of it.
func (s *source) evict() (out []events.Event) {
	c := s.list[slices.IndexFunc(s.list, func(c *cached) bool { return c.held > 0 })]
	if c.host == 0 && s.rng.IntN(3) == 0 { // host memory first
		c.host = 1 + s.rng.IntN(c.held)
		if c.hole[1] > 0 {
			c.host = min(c.host, c.hole[0])
		}
		if c.host > 0 {
			out = append(out, events.Event{Kind: events.Stored, Tier: events.TierHost, Hashes: s.named(c, 0, c.host)})
		}
	}
	switch k := s.rng.IntN(8); {
	case k == 0 && c.hole[1] == 0 && c.held > 4: // a hole now, the rest later
		c.hole[0] = s.rng.IntN(c.held - 2)
		c.hole[1] = c.hole[0] + 1 + s.rng.IntN(c.held-1-c.hole[0])
		return append(out, events.Event{Kind: events.Removed, Hashes: s.named(c, c.hole[0], c.hole[1])})
	case k < 4 && c.hole[1] == 0: // the end
		from := c.held - 1 - s.rng.IntN(c.held)
		gone := s.named(c, from, c.held)
		slices.Reverse(gone)
		c.held = from
		out = append(out, events.Event{Kind: events.Removed, Hashes: gone})
	default: // all of it, from the beginning or in no order
		gone := s.named(c, 0, c.held)
		gone = slices.Delete(gone, c.hole[0], c.hole[1])
		if k == 7 {
			s.rng.Shuffle(len(gone), func(i, j int) { gone[i], gone[j] = gone[j], gone[i] })
		}
		c.held, c.hole = 0, [2]int{}
		out = append(out, events.Event{Kind: events.Removed, Hashes: gone})
	}
	return append(out, s.trim()...)
}

// trim gives up the oldest of host memory, and forgets conversations of which nothing is left.
func (s *source) trim() (out []events.Event) {
	kept := 0
	for i := len(s.list) - 1; i >= 0; i-- {
		c := s.list[i]
		if c.host == 0 {
			continue
		}
		if kept++; kept > hostKeep {
			out = append(out, events.Event{Kind: events.Removed, Tier: events.TierHost, Hashes: s.named(c, 0, c.host)})
			c.host = 0
		}
	}
	s.list = slices.DeleteFunc(s.list, func(c *cached) bool { return c.held == 0 && c.host == 0 })
	return out
}

// lose empties the cache at once, in one of the ways in which that happens.
func (s *source) lose() {
	switch s.rng.IntN(3) {
	case 0:
		s.ledger.Reset()
		s.ledger.Joined(true)
	case 1:
		s.ledger.Gap(1)
		s.ledger.Apply(&events.Batch{Events: []events.Event{{Kind: events.Cleared}}})
	default:
		s.ledger.Apply(&events.Batch{Events: []events.Event{{Kind: events.Cleared}}})
	}
	s.list = nil
	if s.rng.IntN(2) == 0 { // as a process that starts again
		s.secret, s.next = s.rng.Uint64(), 0
	}
}

// resident counts what the source has in each tier, by hash.
func (s *source) resident() (n [events.TierCount]int) {
	type copyOf struct {
		hash events.Hash
		tier events.Tier
	}
	seen := make(map[copyOf]bool)
	note := func(hashes []events.Hash, tier events.Tier) {
		for _, h := range hashes {
			if at := (copyOf{h, tier}); !seen[at] {
				seen[at] = true
				n[tier]++
			}
		}
	}
	for _, c := range s.list {
		note(slices.Delete(s.named(c, 0, c.held), c.hole[0], c.hole[1]), events.TierDevice)
		note(s.named(c, 0, c.host), events.TierHost)
	}
	return n
}
