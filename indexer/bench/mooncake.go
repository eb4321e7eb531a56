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

// MooncakeReport is what the mooncake workload showed.
type MooncakeReport struct {
	// FindP50 and FindP99 are of the queries asked as the requests come.
	FindP50 int64 `json:"find_p50_ns"`
	FindP99 int64 `json:"find_p99_ns"`
	// WritesMOps is the speed at which all operations are applied to a new index, in millions of stored and removed
	// blocks a second.
	WritesMOps float64 `json:"writes_mops_s"`
	// Heap and RSS are bytes for each block that a worker has in the end; RSS is null where the system does not tell.
	Heap float64  `json:"heap_bytes_per_holder_block"`
	RSS  *float64 `json:"rss_bytes_per_holder_block"`
	// Resident counts the blocks that workers have in the end.
	Resident int `json:"resident"`
	// Checksum adds up the depths of all answers as the requests come, FinalChecksum those of all queries asked again in
	// the end.
	Checksum      int `json:"checksum"`
	FinalChecksum int `json:"final_checksum"`
}

// Mooncake measures the index on the workload. It errs with ErrWrong, beside a complete report, if any answer was not
// the right one, and with the context's error.
func Mooncake(ctx context.Context, m *workload.Mooncake, o Options) (MooncakeReport, error) {
	r := newMooncakeRun(m, o)
	var reports []MooncakeReport
	for i := range max(1, o.Reps) {
		r.stage = fmt.Sprintf("mooncake %d/%d", i+1, max(1, o.Reps))
		report, err := r.measure(ctx)
		if err != nil {
			return MooncakeReport{}, err
		}
		reports = append(reports, report)
		runtime.GC() // the index of this repetition goes before the next one's base is read
	}
	return mediansOfMooncake(reports), r.checks.err()
}

// mooncakeRun is what the repetitions share.
type mooncakeRun struct {
	m         *workload.Mooncake
	o         Options
	stage     string
	queries   [][]indexer.Key
	script    *script
	ends      []int // of each request's steps in script
	latencies []time.Duration
	watch     stopwatch
	checks    checks
}

func newMooncakeRun(m *workload.Mooncake, o Options) *mooncakeRun {
	r := &mooncakeRun{
		m: m, o: o,
		script:    newScript(2*len(m.Requests), m.Stored+m.Removed),
		latencies: make([]time.Duration, 0, len(m.Requests)),
		watch:     newStopwatch(),
	}
	for _, req := range m.Requests {
		r.queries = append(r.queries, keysOf(req.Query))
		for _, op := range req.Ops {
			r.script.add(op)
		}
		r.ends = append(r.ends, len(r.script.steps))
	}
	return r
}

// measure runs one repetition: the requests as they come, all queries again, all writes into another index.
func (r *mooncakeRun) measure(ctx context.Context) (MooncakeReport, error) {
	base := baseMemory()
	s, err := open(workload.MooncakeWorkers)
	if err != nil {
		return MooncakeReport{}, err
	}
	got, err := r.serve(ctx, s)
	if err != nil {
		return MooncakeReport{}, err
	}
	used := usedMemory()
	final, err := r.askAgain(ctx, s)
	if err != nil {
		return MooncakeReport{}, err
	}
	r.checks.answer("checksum:", got, r.m.Want)
	r.checks.answer("final checksum:", final, r.m.Final)
	s.check(&r.checks, r.m.Resident)

	slices.Sort(r.latencies)
	out := MooncakeReport{
		FindP50:       percentile(r.latencies, .5),
		FindP99:       percentile(r.latencies, .99),
		Resident:      s.x.Stats().HolderBlocks,
		Checksum:      got.DepthSum,
		FinalChecksum: final.DepthSum,
	}
	out.Heap, out.RSS = used.per(r.m.Resident, base)
	took, err := r.write()
	if err != nil {
		return MooncakeReport{}, err
	}
	out.WritesMOps = float64(r.m.Stored+r.m.Removed) / 1e6 / took.Seconds()
	return out, ctx.Err()
}

// serve asks for each request, timed, and then applies what it changes.
func (r *mooncakeRun) serve(ctx context.Context, s *subject) (got answer, err error) {
	r.latencies = r.latencies[:0]
	from := 0
	for i, q := range r.queries {
		q = s.written(q)
		began := r.watch.elapsed()
		list, err := s.find(ctx, q)
		took := r.watch.elapsed() - began
		if err != nil {
			return got, err
		}
		r.latencies = append(r.latencies, took)
		got.add(list)
		s.apply(r.script.steps[from:r.ends[i]])
		from = r.ends[i]
		if i%1024 == 0 {
			r.o.progress(r.stage, i, 2*len(r.queries))
			if err := ctx.Err(); err != nil {
				return got, err
			}
		}
	}
	return got, nil
}

// askAgain asks for all requests in the end.
func (r *mooncakeRun) askAgain(ctx context.Context, s *subject) (got answer, err error) {
	for i, q := range r.queries {
		list, err := s.find(ctx, q)
		if err != nil {
			return got, err
		}
		got.add(list)
		if i%1024 == 0 {
			r.o.progress(r.stage, len(r.queries)+i, 2*len(r.queries))
			if err := ctx.Err(); err != nil {
				return got, err
			}
		}
	}
	return got, nil
}

// write applies everything to a new index.
func (r *mooncakeRun) write() (time.Duration, error) {
	s, err := open(workload.MooncakeWorkers)
	if err != nil {
		return 0, err
	}
	began := r.watch.elapsed()
	s.apply(r.script.steps)
	took := r.watch.elapsed() - began
	s.check(&r.checks, r.m.Resident)
	return took, nil
}

// mediansOfMooncake is one report for all repetitions.
func mediansOfMooncake(list []MooncakeReport) MooncakeReport {
	out := list[0]
	out.FindP50 = median(list, func(r MooncakeReport) int64 { return r.FindP50 })
	out.FindP99 = median(list, func(r MooncakeReport) int64 { return r.FindP99 })
	out.WritesMOps = median(list, func(r MooncakeReport) float64 { return r.WritesMOps })
	out.Heap = median(list, func(r MooncakeReport) float64 { return r.Heap })
	if out.RSS != nil {
		rss := median(list, func(r MooncakeReport) float64 { return *r.RSS })
		out.RSS = &rss
	}
	return out
}
