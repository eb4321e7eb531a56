package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/workload"
)

// PinnedReport is what the pinned workload showed.
type PinnedReport struct {
	// FillMBlocks is the speed of the whole stream, stored and removed blocks, in millions a second.
	FillMBlocks float64 `json:"fill_mblocks_s"`
	// Heap and RSS are bytes for each block that a holder has in the end; RSS is null where the system does not tell.
	Heap float64  `json:"heap_bytes_per_holder_block"`
	RSS  *float64 `json:"rss_bytes_per_holder_block"`
	// Resident counts the blocks that holders have in the end.
	Resident int `json:"resident"`
	// Cells are the queries' latencies and answers, by the cell's name.
	Cells map[string]CellReport `json:"cells"`
	// Counted is the same stream with copies counted.
	Counted CountedReport `json:"counted"`
}

// CellReport is one set of queries, in the first pass over a new index.
type CellReport struct {
	N        int   `json:"n"`
	P50      int64 `json:"p50_ns"`
	P99      int64 `json:"p99_ns"`
	DepthSum int   `json:"depth_sum"`
	Matched  int   `json:"matched"`
}

// CountedReport is what is held where a repeated store is a second copy and each removal is announced once.
type CountedReport struct {
	Resident int `json:"resident"`
	// Copies left in the end, beside the first of each block. The workload's: the index does not tell.
	Copies int                      `json:"copies"`
	Cells  map[string]CountedAnswer `json:"cells"`
}

// CountedAnswer is the answer to one set of queries.
type CountedAnswer struct {
	DepthSum int `json:"depth_sum"`
	Matched  int `json:"matched"`
}

// Pinned measures the index on the workload. It errs with ErrWrong, beside a complete report, if any answer was not the
// right one, and with the context's error.
func Pinned(ctx context.Context, p *workload.Pinned, o Options) (PinnedReport, error) {
	r := &pinnedRun{p: p, o: o, script: newScript(workload.MixedEvery/4, workload.MixedEvery+1024), watch: newStopwatch()}
	r.script.own = o.OwnHashes
	for _, q := range p.Mixed {
		r.mixed = append(r.mixed, keysOf(q))
	}
	var reports []PinnedReport
	for i := range max(1, o.Reps) {
		r.stage = fmt.Sprintf("pinned %d/%d", i+1, max(1, o.Reps))
		report, err := r.measure(ctx)
		if err != nil {
			return PinnedReport{}, err
		}
		reports = append(reports, report)
		runtime.GC() // the index of this repetition goes before the next one's base is read
	}
	out := mediansOfPinned(reports)
	r.stage = "pinned, copies counted"
	var err error
	if out.Counted, err = r.counted(ctx); err != nil {
		return PinnedReport{}, err
	}
	return out, r.checks.err()
}

// pinnedRun is what the repetitions share.
type pinnedRun struct {
	p      *workload.Pinned
	o      Options
	stage  string
	script *script
	mixed  [][]indexer.Key
	watch  stopwatch
	checks checks
}

// measure runs one repetition.
func (r *pinnedRun) measure(ctx context.Context) (PinnedReport, error) {
	base := baseMemory()
	s, err := open(workload.PinnedHolders)
	if err != nil {
		return PinnedReport{}, err
	}
	took, probed, err := r.fill(ctx, s)
	if err != nil {
		return PinnedReport{}, err
	}
	used := usedMemory()
	out := PinnedReport{
		FillMBlocks: float64(r.p.Stream) / 1e6 / took.Seconds(),
		Resident:    s.x.Stats().HolderBlocks,
		Cells:       make(map[string]CellReport),
	}
	out.Heap, out.RSS = used.per(r.p.Resident, base)
	for _, c := range r.p.Cells {
		latencies, got, err := r.ask(ctx, s, c)
		if err != nil {
			return PinnedReport{}, err
		}
		slices.Sort(latencies)
		out.Cells[c.Name] = CellReport{len(latencies), percentile(latencies, .5), percentile(latencies, .99), got.DepthSum, got.Matched}
		r.checks.answer(c.Name, got, c.Want)
	}
	if r.p.MixedSum >= 0 {
		r.checks.equal("depth sum while filling", probed.DepthSum, r.p.MixedSum)
	}
	s.check(&r.checks, r.p.Resident)
	return out, nil
}

// counted runs the stream with each removal announced once.
func (r *pinnedRun) counted(ctx context.Context) (CountedReport, error) {
	r.script.once = true
	s, err := open(workload.PinnedHolders)
	if err != nil {
		return CountedReport{}, err
	}
	if _, _, err := r.fill(ctx, s); err != nil {
		return CountedReport{}, err
	}
	out := CountedReport{Resident: s.x.Stats().HolderBlocks, Copies: r.p.Copies, Cells: make(map[string]CountedAnswer)}
	for _, c := range r.p.Cells {
		_, got, err := r.ask(ctx, s, c)
		if err != nil {
			return CountedReport{}, err
		}
		out.Cells[c.Name] = CountedAnswer(got.Answer)
		r.checks.answer(c.Name+" with counted copies", got, c.Counted)
	}
	s.check(&r.checks, r.p.CountedResident)
	return out, nil
}

// fill applies the whole stream, with a probe after each MixedEvery stored blocks, and tells how long the applying took.
func (r *pinnedRun) fill(ctx context.Context, s *subject) (took time.Duration, probed answer, err error) {
	stored, done, probes := 0, 0, 0
	flush := func() {
		began := r.watch.elapsed()
		s.apply(r.script.steps)
		took += r.watch.elapsed() - began
		done += len(r.script.steps)
		r.script.reset()
		r.o.progress(r.stage, done, r.p.Len())
	}
	r.script.reset()
	for op := range r.p.Ops() {
		r.script.add(op)
		if !op.Remove {
			stored += len(op.Blocks)
		}
		if stored < workload.MixedEvery {
			continue
		}
		stored = 0
		flush()
		list, err := s.find(ctx, r.mixed[probes%len(r.mixed)])
		if err != nil {
			return 0, probed, err
		}
		probed.add(list)
		probes++
		if err := ctx.Err(); err != nil {
			return 0, probed, err
		}
	}
	flush()
	return took, probed, nil
}

// ask times each query of a cell.
func (r *pinnedRun) ask(ctx context.Context, s *subject, c workload.Cell) (latencies []time.Duration, got answer, err error) {
	queries := make([][]indexer.Key, len(c.Queries))
	for i, q := range c.Queries {
		queries[i] = keysOf(q)
	}
	latencies = make([]time.Duration, 0, len(queries))
	for _, q := range queries {
		q = s.written(q)
		began := r.watch.elapsed()
		list, err := s.find(ctx, q)
		took := r.watch.elapsed() - began
		if err != nil {
			return nil, got, err
		}
		latencies = append(latencies, took)
		got.add(list)
	}
	return latencies, got, ctx.Err()
}

// mediansOfPinned is one report for all repetitions.
func mediansOfPinned(list []PinnedReport) PinnedReport {
	out := PinnedReport{
		FillMBlocks: median(list, func(r PinnedReport) float64 { return r.FillMBlocks }),
		Heap:        median(list, func(r PinnedReport) float64 { return r.Heap }),
		Resident:    list[0].Resident,
		Cells:       make(map[string]CellReport),
	}
	if list[0].RSS != nil {
		rss := median(list, func(r PinnedReport) float64 { return *r.RSS })
		out.RSS = &rss
	}
	for name, c := range list[0].Cells {
		c.P50 = median(list, func(r PinnedReport) int64 { return r.Cells[name].P50 })
		c.P99 = median(list, func(r PinnedReport) int64 { return r.Cells[name].P99 })
		out.Cells[name] = c
	}
	return out
}
