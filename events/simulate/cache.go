package simulate

import "github.com/kvscout/kvscout/events"

// namespace is what keeps requests of equal tokens apart.
type namespace struct{ adapter, salt string }

// cache is an engine's prefix cache. It runs one sequence at a time: start, then checkpoint and any number of grow,
// then finish. It has the room for the sequence (Request.check).
type cache interface {
	// start matches the prompt, takes room for the rest of it and computes it. It returns the matched tokens.
	start(space namespace, prompt []uint32) (cached int)
	// checkpoint ends the prompt's step when more tokens follow.
	checkpoint()
	// grow computes one generated token.
	grow(token uint32)
	// finish ends the sequence. What it cached stays until the room is needed.
	finish()
	// reset drops everything. No sequence runs.
	reset()
	// drain returns what changed since the last drain, in order.
	drain() []events.Event
	// held is how many leading tokens of a prompt are findable, in whole blocks; it changes nothing.
	held(space namespace, prompt []uint32) int
	// resident is how many different blocks are findable.
	resident() int
}

// newCache makes the cache of a process in its given life.
func newCache(c Config, life uint64) cache {
	if formTraits[c.Form].engine == events.EngineVLLM {
		return newPool(c.BlockSize, c.Blocks, lifeSeed(c.Seed, life), formTraits[c.Form].tagged)
	}
	return newRadix(c.BlockSize, c.Blocks, lifeSeed(c.Seed, life))
}
