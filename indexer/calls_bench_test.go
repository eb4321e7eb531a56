package indexer_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

// Shape of the batches: 8 blocks each, on prompts of 64.
const (
	batchBlocks  = 8
	promptBlocks = 64
	benchPrompts = 512
)

// benchBatches make a batch of every 8 blocks of all prompts.
func benchBatches(event func(id, from, to int) events.Event) (out []events.Batch) {
	for id := range benchPrompts {
		for at := 0; at < promptBlocks; at += batchBlocks {
			out = append(out, events.Batch{Events: []events.Event{event(id, at, at+batchBlocks)}})
		}
	}
	return out
}

// benchOthers is a site of two sources, of which the second holds all prompts under the hashes that the first will use.
func benchOthers(b *testing.B, stores []events.Batch) *site {
	s := newSite(b, 2)
	for i := range stores {
		s.l[1].Apply(&stores[i])
	}
	return s
}

// BenchmarkStore stores blocks that another source holds under the same hashes.
func BenchmarkStore(b *testing.B) {
	stores := benchBatches(stored)
	s := benchOthers(b, stores)
	reset := events.Batch{Events: []events.Event{{Kind: events.Cleared}}}
	b.ReportAllocs()
	at := 0
	for b.Loop() {
		if at == len(stores) {
			b.StopTimer()
			s.l[0].Apply(&reset)
			at = 0
			b.StartTimer()
		}
		s.l[0].Apply(&stores[at])
		at++
	}
	b.ReportMetric(float64(b.N*batchBlocks)/b.Elapsed().Seconds(), "blocks/s")
}

// BenchmarkRemove removes blocks that another source keeps, from the ends of prompts.
func BenchmarkRemove(b *testing.B) {
	stores := benchBatches(stored)
	removals := benchBatches(func(id, from, to int) events.Event { // the last part first
		return removed(id, promptBlocks-to, promptBlocks-from)
	})
	s := benchOthers(b, stores)
	fill := func() {
		for i := range stores {
			s.l[0].Apply(&stores[i])
		}
	}
	fill()
	b.ReportAllocs()
	at := 0
	for b.Loop() {
		if at == len(removals) {
			b.StopTimer()
			fill()
			at = 0
			b.StartTimer()
		}
		s.l[0].Apply(&removals[at])
		at++
	}
	b.ReportMetric(float64(b.N*batchBlocks)/b.Elapsed().Seconds(), "blocks/s")
}

// BenchmarkReader asks a reader that is used again for 1,024 blocks that 8 sources hold.
func BenchmarkReader(b *testing.B) {
	const blocks, holders = 1024, 8
	s := newSite(b, holders)
	for i := range s.l {
		s.apply(i, stored(1, 0, blocks))
	}
	tokens := &indexer.Query{Model: "m", Tokens: text(1, blocks)}
	keys := &indexer.Query{Model: "m", KeySize: size, Keys: indexer.Keys(tokens.Tokens, nil, size, false, indexer.Namespace{})}
	for _, c := range []struct {
		name string
		q    *indexer.Query
	}{{"tokens", tokens}, {"keys", keys}} {
		r := s.x.NewReader()
		b.Run("Lookup/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if list, err := r.Lookup(context.Background(), c.q); err != nil || list[0].Held != blocks*size {
					b.Fatalf("%d matches, %v", len(list), err)
				}
			}
		})
		b.Run("Holders/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if list, err := r.Holders(context.Background(), c.q); err != nil || len(list) != holders {
					b.Fatalf("%d holders, %v", len(list), err)
				}
			}
		})
	}
}

// BenchmarkLookupSources asks an index of 256 sources for a prompt that some, or all, hold.
func BenchmarkLookupSources(b *testing.B) {
	const sources = 256
	for _, holders := range []int{1, 16, sources} {
		s := newSite(b, sources)
		for i := range holders {
			s.apply(i, stored(1, 0, promptBlocks))
		}
		q := indexer.Query{Model: "m", Tokens: text(1, promptBlocks)}
		b.Run(fmt.Sprintf("holders=%d", holders), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if list, err := s.x.Lookup(context.Background(), q); err != nil || len(list) != sources {
					b.Fatalf("%d matches, %v", len(list), err)
				}
			}
		})
	}
}

// BenchmarkCoalescing stores all prompts and removes them again, 8 blocks an event, with so many events applied under one lock.
// What that could save is what there is to gain from applying together what is queued for a source.
func BenchmarkCoalescing(b *testing.B) {
	var list []events.Event
	for _, batch := range benchBatches(stored) {
		list = append(list, batch.Events...)
	}
	for id := range benchPrompts {
		for to := promptBlocks; to > 0; to -= batchBlocks {
			list = append(list, removed(id, to-batchBlocks, to))
		}
	}
	for _, sources := range []int{1, 4} {
		for _, together := range []int{1, 4, 16, 64} {
			b.Run(fmt.Sprintf("sources=%d/events=%d", sources, together), func(b *testing.B) {
				s := newSite(b, sources)
				for b.Loop() {
					var wg sync.WaitGroup
					for _, l := range s.l {
						wg.Go(func() { // ends with the list
							for batch := range slices.Chunk(list, together) {
								l.Apply(&events.Batch{Events: batch})
							}
						})
					}
					wg.Wait()
				}
				b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N*sources*len(list)), "ns/event")
			})
		}
	}
}
