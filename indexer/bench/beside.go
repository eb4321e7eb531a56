package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/workload"
)

// BesideReport is what lookups take beside a writer, and alone.
type BesideReport struct {
	// Idle and Busy are the same queries with nothing else running and with one writer that never rests.
	Idle CellReport `json:"idle"`
	Busy CellReport `json:"busy"`
	// Ratio is the median over all rounds of busy p50 : idle p50.
	Ratio float64 `json:"p50_ratio"`
	// Writes is the writer's speed, stored and removed blocks, in millions a second.
	Writes float64 `json:"writes_mblocks_s"`
}

// round is one pass of the queries without the writer and one with it.
type round struct {
	idle, busy CellReport
	writes     float64
}

// Beside measures lookups of the pinned workload's prompts that 8 sources hold, alone and beside a writer that stores
// the same prompts and removes them again. Options.Reps is the number of rounds. It errs as Pinned does.
func Beside(ctx context.Context, p *workload.Pinned, o Options) (BesideReport, error) {
	at := slices.IndexFunc(p.Cells, func(c workload.Cell) bool { return c.Name == "h8" })
	cell := p.Cells[at]
	fill := &pinnedRun{p: p, o: o, stage: "beside, filling", script: newScript(workload.MixedEvery/4, workload.MixedEvery+1024)}
	fill.watch = newStopwatch()
	fill.script.own = o.OwnHashes
	for _, q := range p.Mixed {
		fill.mixed = append(fill.mixed, keysOf(q))
	}
	s, err := open(workload.PinnedHolders)
	if err != nil {
		return BesideReport{}, err
	}
	if _, _, err := fill.fill(ctx, s); err != nil {
		return BesideReport{}, err
	}
	s.check(&fill.checks, p.Resident)
	w, err := newBusyWriter(s.x, cell)
	if err != nil {
		return BesideReport{}, err
	}
	r := &besideRun{s: s, cell: cell, want: cell.Want, watch: fill.watch, writer: w.ledger}
	for _, q := range cell.Queries {
		r.queries = append(r.queries, keysOf(q))
	}
	var rounds []round
	for i := range max(1, o.Reps) {
		o.progress("beside", i, max(1, o.Reps))
		one, err := r.round(ctx, w, &fill.checks)
		if err != nil {
			return BesideReport{}, err
		}
		rounds = append(rounds, one)
	}
	o.progress("beside", len(rounds), len(rounds))
	return BesideReport{
		Idle:   medianCell(rounds, func(r round) CellReport { return r.idle }),
		Busy:   medianCell(rounds, func(r round) CellReport { return r.busy }),
		Ratio:  median(rounds, func(r round) float64 { return float64(r.busy.P50) / float64(max(1, r.idle.P50)) }),
		Writes: median(rounds, func(r round) float64 { return r.writes }),
	}, fill.checks.err()
}

func medianCell(list []round, get func(round) CellReport) CellReport {
	out := get(list[0])
	out.P50 = median(list, func(r round) int64 { return get(r).P50 })
	out.P99 = median(list, func(r round) int64 { return get(r).P99 })
	return out
}

// besideRun is what the rounds share.
type besideRun struct {
	s       *subject
	cell    workload.Cell
	queries [][]indexer.Key
	want    workload.Answer
	watch   stopwatch
	writer  *indexer.Ledger
}

// round asks all queries alone and then beside the writer.
func (r *besideRun) round(ctx context.Context, w *busyWriter, c *checks) (out round, err error) {
	if out.idle, err = r.ask(ctx); err != nil {
		return out, err
	}
	stop, done := make(chan struct{}), make(chan int)
	began := r.watch.elapsed()
	go func() { done <- w.run(stop) }() // stopped by stop, waited for by done
	out.busy, err = r.ask(ctx)
	close(stop)
	blocks := <-done
	out.writes = float64(blocks) / 1e6 / (r.watch.elapsed() - began).Seconds()
	for name, cell := range map[string]CellReport{"idle": out.idle, "busy": out.busy} {
		c.equal(fmt.Sprintf("%s depth sum", name), cell.DepthSum, r.want.DepthSum)
		c.equal(fmt.Sprintf("%s matched", name), cell.Matched, r.want.Matched)
	}
	return out, err
}

// ask times each query besidePasses times. What the writer holds changes while it is asked for, so it is left out of the
// answer.
func (r *besideRun) ask(ctx context.Context) (CellReport, error) {
	var got answer
	latencies := make([]time.Duration, 0, besidePasses*len(r.queries))
	for pass := range besidePasses {
		for _, q := range r.queries {
			began := r.watch.elapsed()
			list, err := r.s.find(ctx, q)
			took := r.watch.elapsed() - began
			if err != nil {
				return CellReport{}, err
			}
			latencies = append(latencies, took)
			if pass > 0 {
				continue
			}
			for i := range list {
				if list[i].Source != r.writer.Number() {
					got.add(list[i : i+1])
				}
			}
		}
	}
	slices.Sort(latencies)
	return CellReport{len(latencies), percentile(latencies, .5), percentile(latencies, .99), got.DepthSum, got.Matched}, ctx.Err()
}

// besidePasses is how often a round asks each query, so that it lasts long enough for the writer to matter.
const besidePasses = 100

// busyWriter is a source that stores prompts and removes them again.
type busyWriter struct {
	ledger  *indexer.Ledger
	batches []events.Batch
	blocks  []int // of each batch
}

// newBusyWriter opens a writer of a cell's prompts. Each is stored in batches of 8 blocks, and 64 prompts later removed
// from its end.
func newBusyWriter(x *indexer.Index, c workload.Cell) (*busyWriter, error) {
	const behind = 64
	s := newScript(0, 0)
	for i := range len(c.Queries) + behind {
		if i < len(c.Queries) {
			s.writePrompt(c.Queries[i], i)
		}
		if i >= behind {
			s.removePrompt(c.Queries[i-behind], i-behind)
		}
	}
	w := &busyWriter{}
	for _, step := range s.steps {
		w.batches = append(w.batches, step.batch)
		w.blocks = append(w.blocks, len(step.batch.Events[0].Hashes))
	}
	var err error
	w.ledger, err = x.Open(events.Source{Worker: "writer", Engine: events.EngineVLLM, Model: model, BlockSize: blockSize})
	if err == nil {
		w.ledger.Joined(true)
	}
	return w, err
}

// promptBlocks names the blocks of prompt i.
func promptBlocks(contents []uint64, i int) (out []workload.Block) {
	for at, c := range contents {
		out = append(out, workload.Block{Content: c, Key: uint64(i+1)<<32 | uint64(at)})
	}
	return out
}

func (s *script) writePrompt(contents []uint64, i int) {
	op := workload.Op{}
	for list := range slices.Chunk(promptBlocks(contents, i), 8) {
		op.Blocks = list
		s.add(op)
		op.Parent, op.HasParent = list[len(list)-1].Key, true
	}
}

func (s *script) removePrompt(contents []uint64, i int) {
	blocks := promptBlocks(contents, i)
	slices.Reverse(blocks)
	for list := range slices.Chunk(blocks, 8) {
		s.add(workload.Op{Remove: true, Copies: 1, Blocks: list})
	}
}

// run applies all batches again and again until it is stopped, and says how many blocks it stored and removed. It leaves
// off where nothing is held.
func (w *busyWriter) run(stop <-chan struct{}) (blocks int) {
	for {
		for i := range w.batches {
			w.ledger.Apply(&w.batches[i])
			blocks += w.blocks[i]
		}
		select {
		case <-stop:
			return blocks
		default:
		}
	}
}
