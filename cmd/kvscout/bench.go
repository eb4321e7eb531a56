package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/kvscout/kvscout/indexer/bench"
	"github.com/kvscout/kvscout/indexer/workload"
)

func newBench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the index on fixed workloads, and a server",
		Long: `Measure the index, in this process, or a server (score), on workloads that are the same bit for bit on every machine.
Their answers are known, and checked: a command exits with 1 if one was wrong. Nothing else should run on the machine.
docs/performance.md says what is timed, and what other indexes reach.`,
		Example: `  kvscout bench pinned --reps 3
  kvscout bench mooncake --cap 100000 --trace conversation_trace.jsonl
  kvscout bench wide`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchPinned(), newBenchMooncake(), newBenchWide(), newBenchBeside(), newBenchGC(), newBenchScore())
	return cmd
}

// benchFlags are those of every workload.
type benchFlags struct {
	json bool
	reps int
}

func (f *benchFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.json, "json", false, "print the result as JSON and nothing else")
	cmd.Flags().IntVar(&f.reps, "reps", 1, "measure so often, on a new index each time, and print medians")
}

func (f *benchFlags) check() error {
	if f.reps < 1 || f.reps > bench.MaxReps {
		return misuse("reps %d is not in 1 to %d", f.reps, bench.MaxReps)
	}
	return nil
}

// options tell of progress on w until end is called.
func (f *benchFlags) options(w io.Writer) (o bench.Options, end func()) {
	var p *progress
	stage := ""
	end = func() {
		if p != nil {
			p.end()
		}
	}
	return bench.Options{Reps: f.reps, Progress: func(now string, done, total int) {
		if now != stage {
			end()
			p, stage = newProgress(w, "bench "+now), now
		}
		p.show(int64(done), int64(total))
	}}, end
}

func newBenchPinned() *cobra.Command {
	var f benchFlags
	var scale float64
	var ownHashes bool
	cmd := &cobra.Command{
		Use:   "pinned",
		Short: "256 holders, 12.8 million blocks, prefixes shared by 1, 8 and 64",
		Long: `Fill an index with the blocks of 256 holders that share prefixes in families of 1, 8 and 64, with repeats and removals
from the middle, and then ask: for prefixes of each kind of family, for long prefixes that 64 holders have (gate), and
for what nobody has (miss). At full scale this takes a few gigabytes of memory.

The depths of all answers must be the published ones, and at a smaller scale those that follow from how the workload is
made. They hold where a repeated store is no second copy. The index counts copies, so each removal names its block once
for each copy; a second run, not timed, announces it once, and its own right answers are checked and printed beside.`,
		Example: `  kvscout bench pinned --reps 3
  kvscout bench pinned --scale 0.1 --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runBenchPinned(cmd, f, scale, ownHashes) },
	}
	f.add(cmd)
	cmd.Flags().Float64Var(&scale, "scale", 1, "make so much of the workload, over 0 to 1; only 1 has published numbers")
	cmd.Flags().BoolVar(&ownHashes, "own-hashes", false, "let each holder hash blocks in its own way, as engines with a random seed do")
	return cmd
}

func runBenchPinned(cmd *cobra.Command, f benchFlags, scale float64, ownHashes bool) error {
	if err := f.check(); err != nil {
		return err
	}
	p, err := workload.NewPinned(scale)
	if errors.Is(err, workload.ErrScale) {
		return misuse("%w", err)
	} else if err != nil {
		return err
	}
	options, end := f.options(cmd.ErrOrStderr())
	options.OwnHashes = ownHashes
	report, err := bench.Pinned(cmd.Context(), p, options)
	end()
	return f.print(cmd.OutOrStdout(), report, err, func(w io.Writer) error { return printPinned(w, p, report) })
}

func newBenchMooncake() *cobra.Command {
	var f benchFlags
	var capacity, copies int
	var trace string
	cmd := &cobra.Command{
		Use:   "mooncake",
		Short: "A trace of conversations over 16 workers that evict",
		Long: `Serve the requests of a trace by 16 workers in turn, each with a cache of --cap blocks that gives up its least recently
used leaves. Each request is asked for before it is served. The trace is the Mooncake conversation trace
(kvcache-ai/Mooncake, FAST25-release/traces), or another of its form: JSON lines whose hash_ids name prefixes.

All answers must be those that follow from the caches, and for --cap and --copies of 100000 and 1, 4000 and 1, and 100000
and 8 on the conversation trace the published ones.`,
		Example: `  kvscout bench mooncake --cap 100000 --trace conversation_trace.jsonl
  kvscout bench mooncake --cap 4000 --copies 1 --trace conversation_trace.jsonl --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runBenchMooncake(cmd, f, capacity, copies, trace) },
	}
	f.add(cmd)
	cmd.Flags().IntVar(&capacity, "cap", 100_000, "blocks that each worker holds")
	cmd.Flags().IntVar(&copies, "copies", 1, "serve the trace so often, each time with blocks of its own")
	cmd.Flags().StringVar(&trace, "trace", "", "`FILE` of the trace (no default)")
	return cmd
}

func runBenchMooncake(cmd *cobra.Command, f benchFlags, capacity, copies int, path string) error {
	if err := f.check(); err != nil {
		return err
	}
	if path == "" {
		return misuse("bench mooncake needs --trace")
	}
	trace, err := readTrace(path)
	if err != nil {
		return err
	}
	m, err := workload.NewMooncake(trace, capacity, copies)
	if errors.Is(err, workload.ErrVariant) {
		return misuse("%w", err)
	} else if err != nil {
		return err
	}
	options, end := f.options(cmd.ErrOrStderr())
	report, err := bench.Mooncake(cmd.Context(), m, options)
	end()
	return f.print(cmd.OutOrStdout(), report, err, func(w io.Writer) error { return printMooncake(w, report) })
}

func readTrace(path string) (*workload.Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	trace, err := workload.ReadTrace(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return trace, nil
}

// print prints a report, also one with wrong answers, and returns the error that the run ended with.
func (f *benchFlags) print(w io.Writer, report any, err error, table func(io.Writer) error) error {
	if err != nil && !errors.Is(err, bench.ErrWrong) {
		return err
	}
	if f.json {
		return errors.Join(err, json.NewEncoder(w).Encode(report))
	}
	return errors.Join(err, table(w))
}

func printPinned(w io.Writer, p *workload.Pinned, r bench.PinnedReport) error {
	fmt.Fprintf(w, "fill %.2f M blocks/s, %d blocks held, %.1f B of heap and %s of memory for each\n",
		r.FillMBlocks, r.Resident, r.Heap, orUnknown(r.RSS))
	fmt.Fprintf(w, "copies counted: %d copies more, %d blocks held\n\n", r.Counted.Copies, r.Counted.Resident)
	t := newTable(w, "QUERIES", "N", "P50 NS", "P99 NS", "DEPTH SUM", "MATCHED", "COPIES COUNTED")
	for _, c := range p.Cells {
		got, counted := r.Cells[c.Name], r.Counted.Cells[c.Name]
		t.row(c.Name, got.N, got.P50, got.P99, got.DepthSum, got.Matched, counted.DepthSum)
	}
	return t.flush()
}

func printMooncake(w io.Writer, r bench.MooncakeReport) error {
	t := newTable(w, "FIND P50 NS", "P99 NS", "WRITES M/S", "BLOCKS HELD", "HEAP B", "MEMORY B", "CHECKSUM", "FINAL")
	t.row(r.FindP50, r.FindP99, fmt.Sprintf("%.2f", r.WritesMOps), r.Resident, fmt.Sprintf("%.1f", r.Heap), orUnknown(r.RSS),
		r.Checksum, r.FinalChecksum)
	return t.flush()
}

// orUnknown shows bytes that the system may not tell.
func orUnknown(bytes *float64) string {
	if bytes == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f B", *bytes)
}
