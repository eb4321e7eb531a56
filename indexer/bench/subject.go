package bench

import (
	"context"
	"fmt"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/workload"
)

const (
	model     = "bench"
	blockSize = 2 // tokens: the halves of a block's content
)

// subject is the index that is measured.
type subject struct {
	x       *indexer.Index
	reader  *indexer.Reader
	ledgers []*indexer.Ledger
	query   indexer.Query // used again, as a caller in a hurry does
	keys    []indexer.Key
}

// open makes an index with so many sources.
func open(sources int) (*subject, error) {
	s := &subject{x: indexer.New(indexer.Options{}), query: indexer.Query{Model: model, KeySize: blockSize}}
	for i := range sources {
		l, err := s.x.Open(events.Source{
			Worker:    fmt.Sprintf("holder-%d", i),
			Engine:    events.EngineVLLM,
			Model:     model,
			BlockSize: blockSize,
		})
		if err != nil {
			return nil, err
		}
		l.Joined(true) // the stream is heard from its first batch on, so answers are exact
		s.ledgers = append(s.ledgers, l)
	}
	s.reader = s.x.NewReader()
	return s, nil
}

// apply applies a script.
func (s *subject) apply(batches []step) {
	for i := range batches {
		s.ledgers[batches[i].holder].Apply(&batches[i].batch)
	}
}

// written is a query's keys written anew, as they are where somebody computes them to ask at once. They are good until the
// next call.
func (s *subject) written(keys []indexer.Key) []indexer.Key {
	s.keys = append(s.keys[:0], keys...)
	return s.keys
}

// find asks for one query: who holds how much of it. It is all that is timed of a find.
func (s *subject) find(ctx context.Context, keys []indexer.Key) ([]indexer.Holder, error) {
	s.query.Keys = keys
	return s.reader.Holders(ctx, &s.query)
}

// check says what was not applied, and what is held in the end.
func (s *subject) check(c *checks, resident int) {
	rejected, waiting, inexact := 0, 0, 0
	for _, l := range s.ledgers {
		st := l.Stats()
		waiting += st.OrphanBlocks
		if st.Bound.Kind != indexer.Exact {
			inexact++
		}
		for _, n := range st.Rejected {
			rejected += int(n)
		}
	}
	c.equal("number of rejected events", rejected, 0)
	c.equal("number of waiting blocks", waiting, 0)
	c.equal("number of sources whose answers are not exact", inexact, 0)
	c.equal("number of resident blocks", s.x.Stats().HolderBlocks, resident)
}

// answer adds up what was answered.
type answer struct{ workload.Answer }

func (a *answer) add(list []indexer.Holder) {
	for i := range list {
		a.Matched++
		a.DepthSum += int(list[i].Held) / blockSize
	}
}

// tokensOf appends the tokens of a block.
func tokensOf(tokens []uint32, content uint64) []uint32 {
	return append(tokens, uint32(content), uint32(content>>32))
}

// keysOf makes the keys of a query.
func keysOf(contents []uint64) []indexer.Key {
	tokens := make([]uint32, 0, len(contents)*blockSize)
	for _, c := range contents {
		tokens = tokensOf(tokens, c)
	}
	return indexer.Keys(tokens, nil, blockSize, false, indexer.Namespace{})
}
