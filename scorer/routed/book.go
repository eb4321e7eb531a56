package routed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/ingest"
)

// ErrNotCreditable is a prompt of which nothing can be credited to the source.
var ErrNotCreditable = errors.New("cannot be credited")

// ErrFull is a credit over Options.MaxCredits or MaxTokens.
var ErrFull = errors.New("too many credits wait")

// Defaults of Options.
const (
	DefaultMaxCredits = 16 << 10
	DefaultMaxTokens  = 16 << 20
)

// Options bounds a Book. Zero means the default of that name.
type Options struct {
	// MaxCredits bounds the credits that wait at once, MaxTokens the tokens of their prompts together.
	MaxCredits, MaxTokens int
}

// Stats counts credits. All = Waiting + Confirmed + Expired + Dropped.
type Stats struct {
	// All were given so far, of which Waiting still wait. The others ended because events Confirmed them, because their
	// time to live passed (Expired), or because the source left or its engine started again (Dropped).
	All, Waiting, Confirmed, Expired, Dropped uint64
}

// Key names a source.
type Key struct {
	Worker string
	Rank   int
}

// Book is what was credited and is not confirmed yet. Make it with New.
type Book struct {
	index, shadow *indexer.Index
	opts          Options
	readers       sync.Pool    // of *indexer.Reader of shadow
	waiting       atomic.Int64 // len(credits), for readers

	mu sync.Mutex // guards what follows
	// sources that have, or had lately, a credit, by the real ledger.
	sources map[*indexer.Ledger]*source
	credits map[uint64]*credit // by number
	last    uint64             // number
	tokens  int                // of credits
	stats   Stats
}

// source is a source of the index with its counterpart in the shadow.
type source struct {
	ledger, shadow *indexer.Ledger
	resets         uint64            // of ledger when it was looked at last
	seen           indexer.Freshness // likewise
	waiting        int               // credits
}

// credit is one prompt that was sent to one source.
type credit struct {
	number uint64
	source *source
	query  indexer.Query
	blocks int
	tokens int // of blocks
	until  time.Time
	fresh  bool // not looked for in the index yet
}

// New returns an empty book beside index.
func New(index *indexer.Index, opts Options) *Book {
	if opts.MaxCredits <= 0 {
		opts.MaxCredits = DefaultMaxCredits
	}
	if opts.MaxTokens <= 0 {
		opts.MaxTokens = DefaultMaxTokens
	}
	b := &Book{
		index: index, shadow: indexer.New(indexer.Options{}), opts: opts,
		sources: make(map[*indexer.Ledger]*source), credits: make(map[uint64]*credit),
	}
	b.readers.New = func() any { return b.shadow.NewReader() }
	return b
}

// Credit credits the source with the prompt until its events confirm that or until has come, and returns how many tokens
// that is: those of full blocks, perhaps none. The query is kept and must not be changed. It errs with ErrNotCreditable or
// ErrFull.
func (b *Book) Credit(l *indexer.Ledger, q indexer.Query, until time.Time) (int, error) {
	size, err := creditable(l, &q)
	if err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.credits) >= b.opts.MaxCredits || b.tokens+len(q.Tokens) > b.opts.MaxTokens {
		return 0, fmt.Errorf("%w: %d of %d tokens", ErrFull, len(b.credits), b.tokens)
	}
	blocks := fullBlocks(&q, size, l.Source().PairKeys)
	if blocks == 0 {
		return 0, nil
	}
	src, err := b.sourceLocked(l)
	if err != nil {
		return 0, err
	}
	b.last++
	c := &credit{number: b.last, source: src, query: q, blocks: blocks, tokens: blocks * size, until: until, fresh: true}
	src.shadow.Apply(&events.Batch{Events: []events.Event{c.store(size)}})
	src.waiting++
	b.credits[c.number] = c
	b.tokens += len(q.Tokens)
	b.stats.All++
	b.waiting.Store(int64(len(b.credits)))
	return c.tokens, nil
}

// creditable says in which block size a source will hold the prompt.
func creditable(l *indexer.Ledger, q *indexer.Query) (size int, err error) {
	src := l.Source()
	refuse := func(why string) error { return fmt.Errorf("%w: %s", ErrNotCreditable, why) }
	size, uniform := l.Uniform()
	switch {
	case q.Keys != nil:
		return 0, refuse("the prompt is known by its hashes only")
	case q.Model != src.Model:
		return 0, refuse("the worker serves another model")
	case q.MediaUnnamed:
		return 0, refuse("the prompt has media that is not named")
	case !uniform:
		return 0, refuse("the worker's cache has several groups or block sizes, windows or states")
	case size == 0:
		return 0, refuse("the worker's block size is not known yet")
	case q.Salt != "" && !ingest.PublishesSalts(src), q.Extra != "" && src.Engine != events.EngineSGLang,
		q.Adapter != "" && src.Engine == events.EngineTRTLLM:
		return 0, refuse("the worker's engine does not publish the prompt's namespace")
	}
	return size, nil
}

// fullBlocks is how many leading blocks of the prompt are full and without media.
func fullBlocks(q *indexer.Query, size int, pairs bool) int {
	n := len(q.Tokens)
	if len(q.Features) > 0 {
		n = min(n, q.Features[0].Offset)
	}
	if pairs {
		n--
	}
	return max(0, n) / size
}

// sourceLocked is the source of a ledger, made if new. Needs b.mu.
func (b *Book) sourceLocked(l *indexer.Ledger) (*source, error) {
	if s, ok := b.sources[l]; ok {
		return s, nil
	}
	real := l.Source()
	// SGLang's form of events names a salt on the event itself.
	shadow, err := b.shadow.Open(events.Source{
		Worker: real.Worker, Rank: real.Rank, Model: real.Model, Engine: events.EngineSGLang, PairKeys: real.PairKeys,
	})
	if err != nil { // one that was registered anew: the old one is swept soon
		return nil, fmt.Errorf("%w: the worker was just registered", ErrNotCreditable)
	}
	s := &source{ledger: l, shadow: shadow, resets: l.Resets()}
	b.sources[l] = s
	return s, nil
}

// namespaceOf is a namespace of the index as the shadow has it: an extra key is part of the salt there, since scopes have
// none.
func namespaceOf(ns indexer.Namespace) indexer.Namespace {
	if ns.Extra != "" {
		ns.Salt += "\x00" + ns.Extra
	}
	return indexer.Namespace{Salt: ns.Salt, Adapter: ns.Adapter}
}

// store is the credit as an event.
func (c *credit) store(size int) events.Event {
	ns := namespaceOf(c.query.Namespace)
	pairs := c.source.shadow.Source().PairKeys
	end := c.tokens
	if pairs {
		end++
	}
	return events.Event{
		Kind: events.Stored, Hashes: c.hashes(), Tokens: c.query.Tokens[:end], Pairs: pairs, BlockSize: size,
		Tier: events.TierDevice, LoraName: ns.Adapter, Salt: ns.Salt,
	}
}

// hashes are the credit's own: 2^24 blocks are more than MaxTokens lets in.
func (c *credit) hashes() []events.Hash {
	out := make([]events.Hash, c.blocks)
	for i := range out {
		out[i] = events.HashInt(c.number<<24 | uint64(i))
	}
	return out
}

// Predicted is how many leading tokens of the prompt were credited and are not confirmed yet, by source; nil where there
// are none. It errs with the context's error.
func (b *Book) Predicted(ctx context.Context, q *indexer.Query) (map[Key]int, error) {
	if b.waiting.Load() == 0 {
		return nil, nil
	}
	asked := *q
	asked.Namespace = namespaceOf(q.Namespace)
	r := b.readers.Get().(*indexer.Reader)
	defer b.readers.Put(r)
	list, err := r.Holders(ctx, &asked)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	out := make(map[Key]int, len(list))
	for _, h := range list {
		if l := b.shadow.Source(h.Source); l != nil {
			out[Key{l.Source().Worker, l.Source().Rank}] = int(h.Held)
		}
	}
	return out, nil
}

// Stats counts so far.
func (b *Book) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.stats
	out.Waiting = uint64(len(b.credits))
	return out
}
