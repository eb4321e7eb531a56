package bench

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"slices"

	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/workload"
)

// GCReport is what the garbage collector costs an index that is full.
type GCReport struct {
	// HolderBlocks that the index holds, and the live heap with the workload beside it, in bytes.
	HolderBlocks int `json:"holder_blocks"`
	Heap         int `json:"heap_bytes"`
	// Forced cycles are started one after the other with nothing else running. Natural ones come as a writer and answers
	// that nobody uses again make garbage.
	Forced  GCCycles `json:"forced"`
	Natural GCCycles `json:"natural"`
}

// GCCycles is what several cycles of the collector took.
type GCCycles struct {
	Cycles int `json:"cycles"`
	// Pauses in which the collector stopped everything, their 99th percentile and the longest, in nanoseconds: upper ends
	// of the runtime's buckets.
	Pauses   int   `json:"pauses"`
	PauseP99 int64 `json:"pause_p99_ns"`
	PauseMax int64 `json:"pause_max_ns"`
	// Millis is the time from a cycle's start to its end, the median. Only of forced ones.
	Millis float64 `json:"cycle_ms,omitempty"`
	// CPU is the collector's part of the processor time that was used, 0 to 1. Idle processors that help it do not count.
	CPU float64 `json:"cpu_share"`
	// P50 and P99 of a lookup while this went on, in nanoseconds. Only of natural ones.
	P50 int64 `json:"find_p50_ns,omitempty"`
	P99 int64 `json:"find_p99_ns,omitempty"`
}

// naturalMost bounds the lookups that wait for natural cycles.
const naturalMost = 5_000_000

// GC fills an index with the pinned workload and then counts what Options.Reps forced and as many natural cycles of the
// collector take. It errs as Pinned does.
func GC(ctx context.Context, p *workload.Pinned, o Options) (out GCReport, err error) {
	fill := &pinnedRun{p: p, o: o, stage: "gc, filling", script: newScript(workload.MixedEvery/4, workload.MixedEvery+1024)}
	fill.watch = newStopwatch()
	fill.script.own = o.OwnHashes
	for _, q := range p.Mixed {
		fill.mixed = append(fill.mixed, keysOf(q))
	}
	s, err := open(workload.PinnedHolders)
	if err != nil {
		return out, err
	}
	if _, _, err := fill.fill(ctx, s); err != nil {
		return out, err
	}
	s.check(&fill.checks, p.Resident)
	cell := p.Cells[slices.IndexFunc(p.Cells, func(c workload.Cell) bool { return c.Name == "h8" })]
	w, err := newBusyWriter(s.x, cell)
	if err != nil {
		return out, err
	}
	out.Heap, out.HolderBlocks = liveHeap(), s.x.Stats().HolderBlocks
	out.Forced = forced(max(1, o.Reps), fill.watch)
	o.progress("gc, natural cycles", 0, max(1, o.Reps))
	if out.Natural, err = natural(ctx, s, w, cell, fill); err != nil {
		return out, err
	}
	s.check(&fill.checks, p.Resident) // the writer left nothing
	return out, fill.checks.err()
}

// forced runs n cycles.
func forced(n int, watch stopwatch) GCCycles {
	before := readCollector()
	var took []float64
	for range n {
		began := watch.elapsed()
		runtime.GC()
		took = append(took, float64((watch.elapsed()-began).Microseconds())/1000)
	}
	out := readCollector().since(before)
	out.Millis = median(took, func(v float64) float64 { return v })
	return out
}

// natural looks prompts up beside a writer until as many cycles as wanted have come by themselves.
func natural(ctx context.Context, s *subject, w *busyWriter, cell workload.Cell, run *pinnedRun) (out GCCycles, err error) {
	var queries [][]indexer.Key
	for _, q := range cell.Queries {
		queries = append(queries, keysOf(q))
	}
	stop, done := make(chan struct{}), make(chan int)
	go func() { done <- w.run(stop) }() // stopped by stop, waited for by done
	defer func() {
		close(stop)
		<-done
	}()
	want, latencies := max(1, run.o.Reps), make([]uint32, 0, naturalMost)
	before := readCollector()
	for i := 0; i < naturalMost && ctx.Err() == nil; i++ {
		keys := queries[i%len(queries)]
		if i%64 == 0 { // garbage: an answer in memory of its own
			if _, err := s.x.Lookup(ctx, indexer.Query{Model: model, Keys: keys, KeySize: blockSize}); err != nil {
				return out, err
			}
			if now := readCollector().since(before); now.Cycles >= want {
				slices.Sort(latencies)
				now.P50, now.P99 = percentile(latencies, .5), percentile(latencies, .99)
				return now, nil
			}
		}
		began := run.watch.elapsed()
		_, err := s.find(ctx, keys)
		latencies = append(latencies, uint32(min(run.watch.elapsed()-began, math.MaxUint32)))
		if err != nil {
			return out, err
		}
	}
	if err := ctx.Err(); err != nil {
		return out, err
	}
	return out, fmt.Errorf("%w: only %d of %d cycles came in %d lookups", ErrWrong, readCollector().since(before).Cycles, want, naturalMost)
}

// collector is what the runtime counts of its garbage collector.
type collector struct {
	cycles       uint64
	pauses       *metrics.Float64Histogram // seconds
	spent, total float64                   // processor seconds, without the idle ones
}

func readCollector() collector {
	list := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/sched/pauses/total/gc:seconds"},
		{Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/cpu/classes/gc/mark/idle:cpu-seconds"},
		{Name: "/cpu/classes/total:cpu-seconds"},
		{Name: "/cpu/classes/idle:cpu-seconds"},
	}
	metrics.Read(list)
	idle := list[3].Value.Float64()
	return collector{
		cycles: list[0].Value.Uint64(),
		pauses: list[1].Value.Float64Histogram(),
		spent:  list[2].Value.Float64() - idle,
		total:  list[4].Value.Float64() - list[5].Value.Float64() - idle,
	}
}

// since is what came after before.
func (c collector) since(before collector) GCCycles {
	out := GCCycles{Cycles: int(c.cycles - before.cycles)}
	if used := c.total - before.total; used > 0 {
		out.CPU = min(1, max(0, (c.spent-before.spent)/used))
	}
	counts := slices.Clone(c.pauses.Counts)
	for i := range counts {
		counts[i] -= before.pauses.Counts[i]
		out.Pauses += int(counts[i])
	}
	left := int(math.Ceil(.99 * float64(out.Pauses)))
	for i, n := range counts {
		if n == 0 {
			continue
		}
		end := int64(c.pauses.Buckets[i+1] * 1e9)
		if left > 0 {
			out.PauseP99 = end
		}
		left -= int(n)
		out.PauseMax = end
	}
	return out
}
