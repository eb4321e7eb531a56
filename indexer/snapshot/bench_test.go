package snapshot_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/snapshot"
)

var benchBlocks = flag.Int("snapshot.blocks", 1_280_000, "blocks held in the benchmarks, each by one source")

const benchSources = 64

// fleet is an index of benchSources sources. A fourth of the prompts are everyone's, and after the first fill a tenth of
// what is held was evicted and as much was stored anew, so that books have holes and are not in order.
func fleet(tb testing.TB, blocks int) (*indexer.Index, []*indexer.Writer) {
	tb.Helper()
	const perPrompt, size = 64, 4
	x := indexer.New(indexer.Options{})
	var list []*indexer.Writer
	empty, err := msgpack.Marshal([]any{1.5, []any{}})
	if err != nil {
		tb.Fatal(err)
	}
	tokens := make([]uint32, perPrompt*size)
	hashes := make([]events.Hash, perPrompt)
	for i := range benchSources {
		w, err := x.NewWriter(events.Source{Worker: fmt.Sprint("w", i), Engine: events.EngineVLLM, Model: "m"}, events.Limits{})
		if err != nil {
			tb.Fatal(err)
		}
		store := func(prompt uint64) {
			rng := rand.New(rand.NewPCG(prompt, 1))
			for j := range tokens {
				tokens[j] = rng.Uint32()
			}
			for j := range hashes {
				hashes[j] = events.HashInt(rng.Uint64())
			}
			w.Ledger().Apply(&events.Batch{Events: []events.Event{{Kind: events.Stored, Hashes: hashes, Tokens: tokens, BlockSize: size}}})
		}
		evict := func(prompt uint64) {
			rng := rand.New(rand.NewPCG(prompt, 1))
			for range tokens {
				rng.Uint32()
			}
			for j := range hashes {
				hashes[j] = events.HashInt(rng.Uint64())
			}
			w.Ledger().Apply(&events.Batch{Events: []events.Event{{Kind: events.Removed, Hashes: hashes[perPrompt/2:]}}})
		}
		own := uint64(i+1) << 32
		name := func(p int) uint64 {
			if p%4 == 0 {
				return uint64(p)
			}
			return own | uint64(p)
		}
		prompts := blocks / benchSources / perPrompt
		for p := range prompts {
			store(name(p))
		}
		for p := 0; p < prompts/5; p++ {
			evict(name(p * 5))
			if p%2 == 0 {
				store(name(prompts + p))
			}
		}
		w.Apply(7, empty, time.Now())
		list = append(list, w)
	}
	return x, list
}

func save(tb testing.TB, path string, x *indexer.Index, list []*indexer.Writer, s *indexer.Saved) int64 {
	tb.Helper()
	size, err := snapshot.Write(path, x.Fingerprint(), func(out *snapshot.Writer) error {
		if err := out.Fleet(nil); err != nil {
			return err
		}
		for _, w := range list {
			if !w.Export(s) {
				tb.Fatal("nothing to export")
			}
			if err := out.Stream(s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return size
}

func BenchmarkWrite(b *testing.B) {
	x, list := fleet(b, *benchBlocks)
	held := x.Stats().HolderBlocks
	var s indexer.Saved
	path := filepath.Join(b.TempDir(), "snapshot")
	var size int64
	for b.Loop() {
		size = save(b, path, x, list, &s)
	}
	b.ReportMetric(float64(size)/float64(held), "B/block")
	b.ReportMetric(float64(held)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mblocks/s")
}

func BenchmarkLoad(b *testing.B) {
	x, list := fleet(b, *benchBlocks)
	held := x.Stats().HolderBlocks
	var s indexer.Saved
	path := filepath.Join(b.TempDir(), "snapshot")
	save(b, path, x, list, &s)
	fingerprint := x.Fingerprint()
	var prove time.Duration
	for b.Loop() {
		began := time.Now()
		f, err := snapshot.Open(path, fingerprint)
		if err != nil {
			b.Fatal(err)
		}
		prove += time.Since(began)
		y := indexer.New(indexer.Options{})
		for i := range f.Streams() {
			if err := f.Stream(i, &s); err != nil {
				b.Fatal(err)
			}
			w, err := y.NewWriter(s.Source, events.Limits{})
			if err != nil {
				b.Fatal(err)
			}
			if err := w.Restore(&s, time.Hour); err != nil {
				b.Fatal(err)
			}
		}
		if y.Stats().HolderBlocks != held {
			b.Fatalf("%d of %d", y.Stats().HolderBlocks, held)
		}
		f.Close()
	}
	b.ReportMetric(prove.Seconds()/float64(b.N), "s/prove")
	b.ReportMetric(float64(held)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mblocks/s")
}

// BenchmarkExport times the copying of one source and says how long writers wait for it at most.
func BenchmarkExport(b *testing.B) {
	_, list := fleet(b, *benchBlocks)
	var s indexer.Saved
	for i := 0; b.Loop(); i++ {
		list[i%len(list)].Export(&s)
	}
}
