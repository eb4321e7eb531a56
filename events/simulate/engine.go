package simulate

import (
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/kvscout/kvscout/events"
)

// ErrClosed is a call to an engine that was closed, or whose restart failed.
var ErrClosed = errors.New("engine is closed")

// Engine is one simulated engine rank. It is safe for concurrent use; requests run one after the other.
type Engine struct {
	config Config // endpoints are those bound
	source events.Source
	count  counters

	mu     sync.Mutex // guards the fields below
	life   uint64     // restarts so far
	cache  cache
	stream *publisher // nil when closed
}

// Stats counts what an engine did since New, over all its lives, but for Subscribers.
type Stats struct {
	// Subscribers is how many connected peers get the next batch.
	Subscribers int
	// Published batches and Replays answered.
	Published, Replays uint64
	// BadRequests are replay requests in no known form, which got no answer.
	BadRequests uint64
	// CutOff are peers dropped for reading too slowly, BadPeers for breaking the protocol, Refused for being too many.
	CutOff, BadPeers, Refused uint64
}

// New starts an engine with an empty cache. It errs with ErrConfig, or when an endpoint cannot be bound.
func New(cfg Config) (*Engine, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	e := &Engine{config: cfg, cache: newCache(cfg, 0)}
	stream, err := newPublisher(cfg, &e.count)
	if err != nil {
		return nil, err
	}
	e.stream = stream
	t := formTraits[cfg.Form]
	e.source = events.Source{
		Worker: cfg.Worker, Rank: cfg.Rank, Engine: t.engine, Version: t.version, Model: cfg.Model,
		BlockSize: cfg.BlockSize, Events: stream.pub.endpoint(), Topic: cfg.Topic,
	}
	e.config.Events = stream.pub.bound() // a later life takes the same port
	if stream.router != nil {
		e.source.Replay = stream.router.endpoint()
		e.config.Replay = stream.router.bound()
	}
	return e, nil
}

// lifeSeed is the seed of a process: PYTHONHASHSEED in the first life, another string in each later one.
func lifeSeed(seed, life uint64) string {
	s := strconv.FormatUint(seed, 10)
	if life > 0 {
		s += "/" + strconv.FormatUint(life, 10)
	}
	return s
}

// Source describes the engine as a client's configuration would: with the addresses that were bound.
func (e *Engine) Source() events.Source { return e.source }

// Form is what the engine publishes.
func (e *Engine) Form() Form { return e.config.Form }

// Serve runs one request and publishes a batch for each step that changed the cache. It errs with ErrRequest or
// ErrClosed, and has changed nothing then.
func (e *Engine) Serve(r Request) (Outcome, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stream == nil {
		return Outcome{}, ErrClosed
	}
	if err := r.check(e.config); err != nil {
		return Outcome{}, err
	}
	out := Outcome{PromptTokens: len(r.Tokens)}
	out.CachedTokens = e.cache.start(namespace{adapter: r.Adapter, salt: r.CacheSalt}, r.Tokens)
	e.generate(r)
	e.cache.finish()
	e.flush()
	out.Sequence, out.Published = e.stream.last()
	return out, nil
}

// generate runs the steps between the prompt and the end: each computes the token before, so the last is never computed.
func (e *Engine) generate(r Request) {
	if r.Output < 2 {
		return // the prompt's step is the last one
	}
	e.cache.checkpoint()
	for _, token := range Generate(r.Tokens, r.Output)[:r.Output-1] {
		e.flush()
		e.cache.grow(token)
	}
}

// flush publishes what changed in this step (invariant 3). The caller holds mu.
func (e *Engine) flush() {
	list := e.cache.drain()
	if len(list) == 0 {
		return
	}
	now := float64(e.config.Clock().UnixNano()) / 1e9
	e.stream.publish(formTraits[e.config.Form].payload(now, e.config.Rank, list))
}

// Reset drops the cache. SGLang says so at once, vLLM with its next step. It errs with ErrClosed.
func (e *Engine) Reset() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stream == nil {
		return ErrClosed
	}
	e.cache.reset()
	if e.source.Engine == events.EngineSGLang {
		e.flush()
	}
	return nil
}

// Restart ends the process and starts another on the same endpoints: connections end, the cache and the replay buffer
// are empty, the sequence starts at 0 and the hashes get another seed. When it errs the engine is closed.
func (e *Engine) Restart() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stream == nil {
		return ErrClosed
	}
	old := e.stream
	e.stream = nil
	if err := old.close(); err != nil {
		return fmt.Errorf("restart %s: %w", e.source.ID(), err)
	}
	stream, err := newPublisher(e.config, &e.count)
	if err != nil {
		return fmt.Errorf("restart %s: %w", e.source.ID(), err)
	}
	e.life++
	e.cache, e.stream = newCache(e.config, e.life), stream
	return nil
}

// Stats returns the counts so far.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := Stats{
		Published: e.count.published.Load(), Replays: e.count.replays.Load(), BadRequests: e.count.badRequests.Load(),
		CutOff: e.count.cutOff.Load(), BadPeers: e.count.badPeers.Load(), Refused: e.count.refused.Load(),
	}
	if e.stream != nil {
		s.Subscribers = e.stream.subscribers()
	}
	return s
}

// Close flushes for at most a second and ends every connection and goroutine. A second Close does nothing.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stream == nil {
		return nil
	}
	old := e.stream
	e.stream = nil
	return old.close()
}
