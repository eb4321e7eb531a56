package model

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

const (
	churnBlocks = 96 // of a prompt
	churnFork   = 30 // where the third prompt leaves the first
)

// churnPrompt is one of three prompts: the first, another, and one that begins like the first.
func churnPrompt(id int) []uint32 {
	out := make([]uint32, 4*churnBlocks)
	for i := range out {
		out[i] = uint32(1000*id + i)
		if id == 2 && i < 4*churnFork {
			out[i] = uint32(i)
		}
	}
	return out
}

// churnStore and churnRemove announce blocks from..to-1 of a prompt.
func churnStore(id, from, to int) events.Event {
	e := churnRemove(id, from, to)
	e.Kind, e.BlockSize, e.Tokens = events.Stored, 4, churnPrompt(id)[4*from:4*to]
	if from > 0 {
		e.Parent, e.HasParent = events.HashInt(uint64(1000*id+from)), true
	}
	return e
}

func churnRemove(id, from, to int) events.Event {
	e := events.Event{Kind: events.Removed}
	for i := from; i < to; i++ {
		e.Hashes = append(e.Hashes, events.HashInt(uint64(1000*id+i+1)))
	}
	return e
}

// churn is an index that writers change all the time, and what may be seen of each source, in blocks of each prompt.
type churn struct {
	x            *indexer.Index
	least, most  map[string][3]int
	mu           sync.Mutex // guards faults, seen and looked
	faults       []string
	seen, looked int
}

func (c *churn) open(worker string) *indexer.Ledger {
	l, err := c.x.Open(events.Source{Worker: worker, Engine: events.EngineVLLM, Model: "m"})
	if err != nil {
		panic(err)
	}
	l.Joined(true)
	return l
}

func apply(l *indexer.Ledger, list ...events.Event) { l.Apply(&events.Batch{Events: list}) }

// steady keeps the first blocks of the first prompt and lets all others come and go.
func (c *churn) steady(l *indexer.Ledger, keep int) func(*rand.Rand) {
	return func(rng *rand.Rand) {
		to := keep + 1 + rng.IntN(churnBlocks-keep)
		for at := keep; at < to; at += 8 {
			apply(l, churnStore(0, at, min(to, at+8)))
		}
		if hole := keep + rng.IntN(to-keep); rng.IntN(2) == 0 {
			apply(l, churnRemove(0, hole, hole+1))
			apply(l, churnStore(0, hole, hole+1))
		}
		gone := churnRemove(0, keep, to)
		if rng.IntN(2) == 0 {
			slices.Reverse(gone.Hashes)
		}
		for part := range slices.Chunk(gone.Hashes, 1+rng.IntN(8)) {
			apply(l, events.Event{Kind: events.Removed, Hashes: part})
		}
	}
}

// passing opens a source that holds a prompt and closes it again, then another that holds another.
func (c *churn) passing() func(*rand.Rand) {
	return func(rng *rand.Rand) {
		for id, worker := range []string{"first", "other"} {
			l := c.open(worker)
			apply(l, churnStore(id, 0, 1+rng.IntN(churnBlocks)))
			l.Close()
		}
	}
}

// clearing holds the third prompt, clears it, and does so again.
func (c *churn) clearing(l *indexer.Ledger) func(*rand.Rand) {
	return func(rng *rand.Rand) {
		apply(l, churnStore(2, 0, 1+rng.IntN(churnBlocks)))
		switch rng.IntN(3) {
		case 0:
			l.Reset()
		case 1:
			l.Gap(1)
		default:
			apply(l, events.Event{Kind: events.Cleared})
		}
	}
}

func (c *churn) fail(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

// hurry asks each prompt in the shortest way, many times, so that it is often interrupted in the middle of an answer. Who
// is not named is not missed here.
func (c *churn) hurry(r *indexer.Reader, queries []indexer.Query) {
	seen := 0
	for range 100 {
		for id := range queries {
			holders, err := r.Holders(context.Background(), &queries[id])
			if err != nil {
				c.fail("%v", err)
			}
			for i := range holders {
				worker, n, ok := holder(c.x, holders[i])
				if !ok {
					continue // closed meanwhile
				}
				if n < 4*c.least[worker][id] || n > 4*c.most[worker][id] {
					c.fail("Holders: %s holds %d tokens of prompt %d", worker, n, id)
				}
				seen++
			}
		}
	}
	c.mu.Lock()
	c.seen, c.looked = c.seen+seen, c.looked+100
	c.mu.Unlock()
}

// look asks each prompt in three ways.
func (c *churn) look(r *indexer.Reader, queries []indexer.Query) {
	ctx, seen := context.Background(), 0
	check := func(call string, id int, worker string, tokens int) {
		least, most := 4*c.least[worker][id], 4*c.most[worker][id]
		if tokens < least || tokens > most {
			c.fail("%s: %s holds %d tokens of prompt %d, want %d to %d", call, worker, tokens, id, least, most)
		}
		seen += tokens
	}
	for id := range queries {
		list, err := r.Lookup(ctx, &queries[id])
		if err != nil {
			c.fail("%v", err)
		}
		for i := range list {
			check("Reader.Lookup", id, list[i].Source.ID(), list[i].Held)
		}
		list, err = c.x.Lookup(ctx, queries[id])
		if err != nil {
			c.fail("%v", err)
		}
		for i := range list {
			check("Lookup", id, list[i].Source.ID(), list[i].Held)
		}
		holders, err := r.Holders(ctx, &queries[id])
		if err != nil {
			c.fail("%v", err)
		}
		named := make(map[string]int)
		for i := range holders {
			worker, n, ok := holder(c.x, holders[i])
			if !ok {
				continue // closed meanwhile
			}
			named[worker] = n
		}
		for worker := range c.least { // who is not named holds nothing
			check("Holders", id, worker, named[worker])
		}
	}
	c.mu.Lock()
	c.seen, c.looked = c.seen+seen, c.looked+1
	c.mu.Unlock()
}

// newChurn opens all sources, says what may be seen of them, and what each writer does again and again.
func newChurn() (c *churn, writers []func(*rand.Rand)) {
	c = &churn{x: indexer.New(indexer.Options{}), least: map[string][3]int{}, most: map[string][3]int{}}
	for i, keep := range []int{1, 17, 40, 95} {
		l := c.open(fmt.Sprintf("keeps-%d", keep))
		worker := l.Source().ID()
		apply(l, churnStore(0, 0, keep))
		c.least[worker], c.most[worker] = [3]int{keep, 0, min(keep, churnFork)}, [3]int{churnBlocks, 0, churnFork}
		if i < 3 { // the last does nothing
			writers = append(writers, c.steady(l, keep))
		}
	}
	c.most["first/0"] = [3]int{churnBlocks, 0, churnFork}
	c.most["other/0"] = [3]int{0, churnBlocks, 0}
	c.most["clears/0"] = [3]int{churnFork, 0, churnBlocks}
	for _, worker := range []string{"first/0", "other/0", "clears/0"} {
		c.least[worker] = [3]int{}
	}
	return c, append(writers, c.passing(), c.clearing(c.open("clears")))
}

// readers are those that ask all the time, each with memory of its own.
func (c *churn) readers() []func(*rand.Rand) {
	var queries, keys []indexer.Query
	for id := range 3 {
		q := indexer.Query{Model: "m", Tokens: churnPrompt(id)}
		queries = append(queries, q)
		keys = append(keys, ask{Query: q, KeySize: 4}.query())
	}
	full, brief := c.x.NewReader(), c.x.NewReader()
	return []func(*rand.Rand){
		func(*rand.Rand) { c.look(full, queries) },
		func(*rand.Rand) { c.hurry(brief, keys) },
	}
}

// TestRule16_Churn lets writers do the same again and again beside readers, many thousand times: what a source has all
// the time is always seen, and what it never has is never seen, even where a new source follows on an old one.
func TestRule16_Churn(t *testing.T) {
	long := 3 * time.Second
	if testing.Short() {
		long /= 5
	}
	if *minutesFlag > 0 {
		long = time.Duration(*minutesFlag * float64(time.Minute))
	}
	// More threads than processors: the system interrupts them wherever they are.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8 * runtime.NumCPU()))
	c, busy := newChurn()
	end := time.Now().Add(long)
	var group sync.WaitGroup
	for i, do := range append(busy, c.readers()...) {
		group.Go(func() { // ends at the time; waited for below
			for rng := rand.New(rand.NewPCG(uint64(i), 5)); time.Now().Before(end); {
				do(rng)
			}
		})
	}
	group.Wait()
	t.Logf("looked %d times", c.looked)
	if c.seen == 0 {
		t.Error("nobody was ever seen to hold anything: the test proves nothing")
	}
	for _, f := range c.faults[:min(10, len(c.faults))] {
		t.Error(f)
	}
	if len(c.faults) > 10 {
		t.Errorf("and %d more", len(c.faults)-10)
	}
}
