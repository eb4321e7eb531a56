package simulate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
)

// TrafficConfig shapes requests. Zero values mean the defaults in brackets; a negative share is none.
type TrafficConfig struct {
	// SystemPrompts is how many system prompts are shared (8), a few of them by most conversations; each has
	// SystemTokens tokens (256).
	SystemPrompts, SystemTokens int
	// Conversations is how many run side by side (32). Each ends after at most MaxTurns turns (6) or MaxTokens tokens
	// (2048), and another takes its place.
	Conversations, MaxTurns, MaxTokens int
	// TurnTokens is the most a user adds in one turn (160), Output the most that is generated (64).
	TurnTokens, Output int
	// Tenants are cache salts and Adapters LoRA adapters; a conversation has one of each with the probability
	// TenantShare (0.25) and AdapterShare (0.25). None are used when the list is empty.
	Tenants, Adapters         []string
	TenantShare, AdapterShare float64
	// AlignedShare is how many prompts are cut to a multiple of Align tokens (0.25 of 32), and RepeatShare how many
	// requests repeat the one before (0.1): together they make copies in vLLM.
	AlignedShare, RepeatShare float64
	Align                     int
}

// DefaultTraffic returns the defaults, with two tenants and two adapters besides.
func DefaultTraffic() TrafficConfig {
	return TrafficConfig{
		SystemPrompts: 8, SystemTokens: 256, Conversations: 32, MaxTurns: 6, MaxTokens: 2048, TurnTokens: 160, Output: 64,
		Tenants: []string{"tenant-a", "tenant-b"}, Adapters: []string{"adapter-a", "adapter-b"},
		TenantShare: 0.25, AdapterShare: 0.25, AlignedShare: 0.25, RepeatShare: 0.1, Align: 32,
	}
}

func (c TrafficConfig) withDefaults() TrafficConfig {
	d := DefaultTraffic()
	for _, f := range []struct{ field, value *int }{
		{&c.SystemPrompts, &d.SystemPrompts}, {&c.SystemTokens, &d.SystemTokens}, {&c.Conversations, &d.Conversations},
		{&c.MaxTurns, &d.MaxTurns}, {&c.MaxTokens, &d.MaxTokens}, {&c.TurnTokens, &d.TurnTokens}, {&c.Output, &d.Output},
		{&c.Align, &d.Align},
	} {
		if *f.field == 0 {
			*f.field = *f.value
		}
	}
	for _, f := range []struct{ field, value *float64 }{
		{&c.TenantShare, &d.TenantShare}, {&c.AdapterShare, &d.AdapterShare}, {&c.AlignedShare, &d.AlignedShare},
		{&c.RepeatShare, &d.RepeatShare},
	} {
		if *f.field == 0 {
			*f.field = *f.value
		}
	}
	return c
}

// Validate reports everything wrong with c, joined, each fault wrapping ErrConfig.
func (c TrafficConfig) Validate() error {
	c = c.withDefaults()
	var faults []error
	for name, n := range map[string]int{
		"system prompts": c.SystemPrompts, "system tokens": c.SystemTokens, "conversations": c.Conversations,
		"turns": c.MaxTurns, "tokens": c.MaxTokens, "turn tokens": c.TurnTokens, "output": c.Output, "align": c.Align,
	} {
		if n < 0 || n > 1<<20 {
			faults = append(faults, fmt.Errorf("%w: traffic: %d %s are not in 1..%d", ErrConfig, n, name, 1<<20))
		}
	}
	for name, share := range map[string]float64{
		"tenant": c.TenantShare, "adapter": c.AdapterShare, "aligned": c.AlignedShare, "repeat": c.RepeatShare,
	} {
		if !(share <= 1) { // NaN too
			faults = append(faults, fmt.Errorf("%w: traffic: %s share %v is above 1", ErrConfig, name, share))
		}
	}
	return errors.Join(faults...)
}

// longest is the most tokens that a request of this traffic needs in a cache.
func (c TrafficConfig) longest() int { return max(c.MaxTokens, c.SystemTokens+c.TurnTokens) + c.Output }

// Traffic makes requests that hit, evict and copy: shared system prompts, conversations that go on, salted tenants,
// adapters, exact multiples of the block size and repeats. The same seed and configuration make the same requests. It
// is for one goroutine.
type Traffic struct {
	cfg     TrafficConfig
	random  *rand.Rand
	systems [][]uint32
	talks   []talk
	last    Request
}

// talk is one conversation: everything said so far.
type talk struct {
	tokens        []uint32
	adapter, salt string
	turns         int // still to come
}

// NewTraffic prepares traffic. Fields of cfg that are out of range (see Validate) are taken as the nearest that is not.
func NewTraffic(seed uint64, cfg TrafficConfig) *Traffic {
	t := &Traffic{cfg: cfg.withDefaults(), random: rand.New(rand.NewPCG(seed, 0x6b767363))}
	for _, n := range []*int{
		&t.cfg.SystemPrompts, &t.cfg.SystemTokens, &t.cfg.Conversations, &t.cfg.MaxTurns, &t.cfg.MaxTokens,
		&t.cfg.TurnTokens, &t.cfg.Output, &t.cfg.Align,
	} {
		*n = min(max(*n, 1), 1<<20)
	}
	for range t.cfg.SystemPrompts {
		t.systems = append(t.systems, randomTokens(t.random, t.cfg.SystemTokens))
	}
	t.talks = make([]talk, t.cfg.Conversations)
	return t
}

// Next returns the next request. Its tokens are the caller's.
func (t *Traffic) Next() Request {
	if len(t.last.Tokens) > 0 && t.chance(t.cfg.RepeatShare) {
		again := t.last
		again.Tokens = slices.Clone(again.Tokens)
		return again
	}
	c := &t.talks[t.random.IntN(len(t.talks))]
	if c.turns == 0 || len(c.tokens)+t.cfg.TurnTokens > t.cfg.MaxTokens {
		t.open(c)
	}
	c.turns--
	c.tokens = append(c.tokens, randomTokens(t.random, 1+t.random.IntN(t.cfg.TurnTokens))...)
	if t.chance(t.cfg.AlignedShare) && len(c.tokens) >= t.cfg.Align {
		c.tokens = c.tokens[:len(c.tokens)/t.cfg.Align*t.cfg.Align]
	}
	r := Request{
		Tokens: slices.Clone(c.tokens), Adapter: c.adapter, CacheSalt: c.salt, Output: 1 + t.random.IntN(t.cfg.Output),
	}
	c.tokens = append(c.tokens, Generate(r.Tokens, r.Output)...)
	t.last = r
	r.Tokens = slices.Clone(r.Tokens)
	return r
}

// open begins a conversation. The first system prompts are the most popular.
func (t *Traffic) open(c *talk) {
	n := min(int(t.random.ExpFloat64()*float64(len(t.systems))/4), len(t.systems)-1)
	*c = talk{tokens: slices.Clone(t.systems[n]), turns: 1 + t.random.IntN(t.cfg.MaxTurns)}
	if len(t.cfg.Tenants) > 0 && t.chance(t.cfg.TenantShare) {
		c.salt = t.cfg.Tenants[t.random.IntN(len(t.cfg.Tenants))]
	}
	if len(t.cfg.Adapters) > 0 && t.chance(t.cfg.AdapterShare) {
		c.adapter = t.cfg.Adapters[t.random.IntN(len(t.cfg.Adapters))]
	}
}

func (t *Traffic) chance(p float64) bool { return t.random.Float64() < p }
