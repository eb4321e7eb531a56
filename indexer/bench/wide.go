package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/workload"
)

// What wide is made of.
const (
	WideHolders = 2048 // of one system prompt
	WideShared  = 64   // blocks of it
	WideTail    = 16   // blocks that each holder has behind it
	wideQueries = 2000 // of each cell
	wideStore   = 8    // blocks of one store
)

// WideReport is what one prompt that very many hold showed.
type WideReport struct {
	Holders int `json:"holders"`
	// ExtraHolder is the heap that one more holder of a block takes, in bytes; TailBlock what a block takes that only one
	// has.
	ExtraHolder float64 `json:"heap_bytes_per_extra_holder"`
	TailBlock   float64 `json:"heap_bytes_per_tail_block"`
	// Cells are shared (all blocks of the prompt) and tail (of the prompt and of one holder's tail), by Reader.Holders,
	// and with _match the same by Reader.Lookup.
	Cells map[string]CellReport `json:"cells"`
}

// Wide measures one prompt with WideHolders holders. It errs as Pinned does.
func Wide(ctx context.Context, o Options) (WideReport, error) { return wide(ctx, WideHolders, o) }

// wide is Wide with another number of holders.
func wide(ctx context.Context, holders int, o Options) (WideReport, error) {
	r := &wideRun{o: o, holders: holders, script: newScript(WideShared/wideStore, WideShared), watch: newStopwatch()}
	r.script.own = o.OwnHashes
	r.draw()
	var reports []WideReport
	for i := range max(1, o.Reps) {
		r.stage = fmt.Sprintf("wide %d/%d", i+1, max(1, o.Reps))
		report, err := r.measure(ctx)
		if err != nil {
			return WideReport{}, err
		}
		reports = append(reports, report)
		runtime.GC() // the index of this repetition goes before the next one's base is read
	}
	out := WideReport{
		Holders:     holders,
		ExtraHolder: median(reports, func(r WideReport) float64 { return r.ExtraHolder }),
		TailBlock:   median(reports, func(r WideReport) float64 { return r.TailBlock }),
		Cells:       make(map[string]CellReport),
	}
	for name, c := range reports[0].Cells {
		c.P50 = median(reports, func(r WideReport) int64 { return r.Cells[name].P50 })
		c.P99 = median(reports, func(r WideReport) int64 { return r.Cells[name].P99 })
		out.Cells[name] = c
	}
	return out, r.checks.err()
}

// wideRun is what the repetitions share.
type wideRun struct {
	o       Options
	stage   string
	holders int
	script  *script
	watch   stopwatch
	checks  checks
	shared  []workload.Block
	own     [][]workload.Block // a prompt that each holder has for itself
	tails   [][]workload.Block
}

// draw draws all blocks. Each has a key of its own, as a hash of a block and all before it has.
func (r *wideRun) draw() {
	rng := rand.New(rand.NewPCG(20260901, 2048))
	blocks := func(n int) []workload.Block {
		out := make([]workload.Block, n)
		for i := range out {
			out[i] = workload.Block{Content: rng.Uint64() | 1, Key: rng.Uint64() | 1}
		}
		return out
	}
	r.shared = blocks(WideShared)
	for range r.holders {
		r.own = append(r.own, blocks(WideShared))
		r.tails = append(r.tails, blocks(WideTail))
	}
}

// store applies blocks behind parent, if any, in stores of wideStore.
func (r *wideRun) store(s *subject, holder int, parent *workload.Block, blocks []workload.Block) {
	for list := range slices.Chunk(blocks, wideStore) {
		op := workload.Op{Holder: holder, Blocks: list}
		if parent != nil {
			op.Parent, op.HasParent = parent.Key, true
		}
		r.script.add(op)
		parent = &list[len(list)-1]
	}
	s.apply(r.script.steps)
	r.script.reset()
}

// measure runs one repetition.
func (r *wideRun) measure(ctx context.Context) (out WideReport, err error) {
	s, err := open(r.holders)
	if err != nil {
		return out, err
	}
	r.o.progress(r.stage, 0, r.holders)
	for i := range s.ledgers { // a source's first blocks take what it takes to be a source
		r.store(s, i, nil, r.own[i])
	}
	r.store(s, 0, nil, r.shared)
	first := liveHeap()
	for i := range r.holders - 1 {
		r.store(s, i+1, nil, r.shared)
	}
	all := liveHeap()
	for i := range s.ledgers {
		r.store(s, i, &r.shared[WideShared-1], r.tails[i])
	}
	tails := liveHeap()
	out.ExtraHolder = float64(all-first) / float64((r.holders-1)*WideShared)
	out.TailBlock = float64(tails-all) / float64(r.holders*WideTail)
	out.Cells = make(map[string]CellReport)
	if err := r.ask(ctx, s, out.Cells); err != nil {
		return out, err
	}
	s.check(&r.checks, r.holders*(2*WideShared+WideTail))
	r.o.progress(r.stage, r.holders, r.holders)
	return out, nil
}

// ask times the queries.
func (r *wideRun) ask(ctx context.Context, s *subject, cells map[string]CellReport) error {
	contents := func(lists ...[]workload.Block) (out []uint64) {
		for _, b := range slices.Concat(lists...) {
			out = append(out, b.Content)
		}
		return out
	}
	shared, tails := keysOf(contents(r.shared)), make([][]indexer.Key, wideQueries)
	for i := range tails {
		tails[i] = keysOf(contents(r.shared, r.tails[i*37%r.holders]))
	}
	for _, c := range []struct {
		name  string
		query func(i int) []indexer.Key
		depth int // of all holders
	}{
		{"shared", func(int) []indexer.Key { return shared }, WideShared * r.holders},
		{"tail", func(i int) []indexer.Key { return tails[i] }, WideShared*r.holders + WideTail},
	} {
		want := workload.Answer{DepthSum: wideQueries * c.depth, Matched: wideQueries * r.holders}
		for call, find := range map[string]func(context.Context, []indexer.Key) (answer, time.Duration, error){
			"": r.timeHolders(s), "_match": r.timeMatches(s),
		} {
			var latencies []time.Duration
			var sum answer
			for i := range wideQueries {
				got, took, err := find(ctx, c.query(i))
				if err != nil {
					return err
				}
				sum.Matched, sum.DepthSum = sum.Matched+got.Matched, sum.DepthSum+got.DepthSum
				latencies = append(latencies, took)
			}
			slices.Sort(latencies)
			cells[c.name+call] = CellReport{wideQueries, percentile(latencies, .5), percentile(latencies, .99), sum.DepthSum, sum.Matched}
			r.checks.answer(c.name+call, sum, want)
		}
	}
	return nil
}

// timeHolders times one Reader.Holders.
func (r *wideRun) timeHolders(s *subject) func(context.Context, []indexer.Key) (answer, time.Duration, error) {
	return func(ctx context.Context, keys []indexer.Key) (got answer, took time.Duration, err error) {
		began := r.watch.elapsed()
		list, err := s.find(ctx, keys)
		took = r.watch.elapsed() - began
		got.add(list)
		return got, took, err
	}
}

// timeMatches times one Reader.Lookup.
func (r *wideRun) timeMatches(s *subject) func(context.Context, []indexer.Key) (answer, time.Duration, error) {
	return func(ctx context.Context, keys []indexer.Key) (got answer, took time.Duration, err error) {
		q := indexer.Query{Model: model, Keys: keys, KeySize: blockSize}
		began := r.watch.elapsed()
		list, err := s.reader.Lookup(ctx, &q)
		took = r.watch.elapsed() - began
		for i := range list {
			if list[i].Held > 0 {
				got.Matched++
				got.DepthSum += list[i].Held / blockSize
			}
		}
		return got, took, err
	}
}
