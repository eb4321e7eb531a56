package indexer

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/kvscout/kvscout/events"
)

// Shape of the benchmarks' prompts: blocks of 16 tokens, stores of 64 blocks.
const (
	benchBlock = 16
	benchStore = 64
)

// benchTokens are n tokens of prompt id.
func benchTokens(id, n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(id*7919+i*31) % 150000
	}
	return out
}

// benchPrompt is a prompt of so many blocks as the stores that announce it, hashes counted from first.
func benchPrompt(id, blocks int, first uint64) (out []events.Batch) {
	tokens := benchTokens(id, blocks*benchBlock)
	for at := 0; at < blocks; at += benchStore {
		to := min(blocks, at+benchStore)
		e := dense(first+uint64(at), 0, tokens[at*benchBlock:to*benchBlock], benchBlock)
		if at > 0 {
			e.Parent, e.HasParent = events.HashInt(first+uint64(at)-1), true
		}
		out = append(out, events.Batch{Events: []events.Event{e}})
	}
	return out
}

func benchOpen(b *testing.B, x *Index, id string) *Ledger {
	b.Helper()
	l, err := x.Open(events.Source{Worker: id, Engine: events.EngineVLLM, Model: "m"})
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// BenchmarkApply stores blocks from decoded events: new ones, and ones that another source holds already.
func BenchmarkApply(b *testing.B) {
	for _, shared := range []bool{false, true} {
		b.Run(fmt.Sprintf("shared=%v", shared), func(b *testing.B) {
			const prompts = 64
			var script []events.Batch
			for i := range prompts {
				script = append(script, benchPrompt(i, benchStore, uint64(1+i*benchStore))...)
			}
			x := New(Options{})
			if shared {
				other := benchOpen(b, x, "other")
				for i := range script {
					other.Apply(&script[i])
				}
			}
			l := benchOpen(b, x, "w1")
			clear := events.Batch{Events: []events.Event{{Kind: events.Cleared}}}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if n == len(script) {
					b.StopTimer()
					l.Apply(&clear)
					n = 0
					b.StartTimer()
				}
				l.Apply(&script[n])
				n++
			}
			b.ReportMetric(float64(b.N*benchStore)/b.Elapsed().Seconds(), "blocks/s")
		})
	}
}

// BenchmarkChurn removes and stores in turn, as a full cache does.
func BenchmarkChurn(b *testing.B) {
	const prompts = 64
	x := New(Options{})
	l := benchOpen(b, x, "w1")
	var stores, removals []events.Batch
	for i := range prompts {
		stores = append(stores, benchPrompt(i, benchStore, uint64(1+i*benchStore))...)
		gone := events.Event{Kind: events.Removed}
		for _, e := range stores[i].Events {
			gone.Hashes = append(gone.Hashes, e.Hashes...)
		}
		removals = append(removals, events.Batch{Events: []events.Event{gone}})
		l.Apply(&stores[i])
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		l.Apply(&removals[i%prompts])
		l.Apply(&stores[i%prompts])
	}
	b.ReportMetric(float64(b.N*benchStore)/b.Elapsed().Seconds(), "blocks/s")
}

// BenchmarkLookup asks for a prompt of which every holder has every block, from tokens and from keys made beforehand.
func BenchmarkLookup(b *testing.B) {
	for _, blocks := range []int{64, 1024} {
		for _, holders := range []int{1, 8, 64} {
			x := New(Options{})
			for i := range holders {
				l := benchOpen(b, x, fmt.Sprintf("w%d", i))
				for _, batch := range benchPrompt(1, blocks, 1) {
					l.Apply(&batch)
				}
			}
			tokens := Query{Model: "m", Tokens: benchTokens(1, blocks*benchBlock)}
			keys := Query{Model: "m", KeySize: benchBlock, Keys: Keys(tokens.Tokens, nil, benchBlock, false, Namespace{})}
			name := fmt.Sprintf("blocks=%d/holders=%d", blocks, holders)
			b.Run(name+"/tokens", func(b *testing.B) { benchLookup(b, x, tokens, holders) })
			b.Run(name+"/keys", func(b *testing.B) { benchLookup(b, x, keys, holders) })
		}
	}
}

func benchLookup(b *testing.B, x *Index, q Query, holders int) {
	b.ReportAllocs()
	for b.Loop() {
		list, err := x.Lookup(context.Background(), q)
		if err != nil || len(list) != holders || list[0].Held == 0 {
			b.Fatalf("%d answers, error %v", len(list), err)
		}
	}
}

// BenchmarkLookupMiss asks for a prompt of which nobody has the first block.
func BenchmarkLookupMiss(b *testing.B) {
	x := New(Options{})
	l := benchOpen(b, x, "w1")
	for _, batch := range benchPrompt(1, benchStore, 1) {
		l.Apply(&batch)
	}
	q := Query{Model: "m", Tokens: benchTokens(2, benchStore*benchBlock)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := x.Lookup(context.Background(), q); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkModels stores prompts into two models that lie in different stripes: by one goroutine in turn, and by two side
// by side.
func BenchmarkModels(b *testing.B) {
	const prompts = 256
	script := make([]events.Batch, 0, prompts)
	for i := range prompts {
		script = append(script, benchPrompt(i, benchStore, uint64(1+i*benchStore))...)
	}
	script = append(script, events.Batch{Events: []events.Event{{Kind: events.Cleared}}})
	for _, count := range []int{1, 2} {
		b.Run(fmt.Sprintf("writers=%d", count), func(b *testing.B) {
			ledgers := openModels(b, New(Options{}), 2)
			for b.Loop() { // each fills and clears both ledgers
				var writers sync.WaitGroup
				for w := range count {
					writers.Go(func() { // ends by itself; waited for below
						for i := w; i < len(ledgers); i += count {
							for at := range script {
								ledgers[i].Apply(&script[at])
							}
						}
					})
				}
				writers.Wait()
			}
			b.ReportMetric(float64(b.N*len(ledgers)*prompts*benchStore)/b.Elapsed().Seconds(), "blocks/s")
		})
	}
}
