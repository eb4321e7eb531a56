package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kvscout/kvscout/indexer/bench"
	"github.com/kvscout/kvscout/indexer/workload"
)

func newBenchWide() *cobra.Command {
	var f benchFlags
	var ownHashes bool
	cmd := &cobra.Command{
		Use:   "wide",
		Short: "One system prompt that 2,048 sources hold",
		Long: `Let 2,048 sources hold one prompt of 64 blocks, each with 16 blocks of its own behind it, as a fleet does that serves one
system prompt. Ask for the prompt, and for the prompt with one source's blocks behind it: who holds how much (shared, tail),
and a full match for every source (the same with _match). Printed beside is the heap that one more holder of a block takes.`,
		Example: `  kvscout bench wide --reps 3
  kvscout bench wide --own-hashes --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			options, end := f.options(cmd.ErrOrStderr())
			options.OwnHashes = ownHashes
			report, err := bench.Wide(cmd.Context(), options)
			end()
			return f.print(cmd.OutOrStdout(), report, err, func(w io.Writer) error { return printWide(w, report) })
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&ownHashes, "own-hashes", false, "let each source hash blocks in its own way, as engines with a random seed do")
	return cmd
}

func newBenchBeside() *cobra.Command {
	return newPinnedCell(pinnedCell{
		use:   "beside",
		short: "Lookups beside a writer that never rests",
		long: `Fill an index with the pinned workload. Then ask its prompts that 8 sources hold, each many times: alone, and beside one
writer that stores these prompts and removes them again as fast as it can; and so on in turn, --reps times. Printed are
medians over the rounds, and that of busy p50 : idle p50. Two free processors are needed, or the ratio shows only that they
are shared. docs/performance.md says more.`,
		example: `  kvscout bench beside --reps 5
  kvscout bench beside --scale 0.1 --json`,
		reps: "rounds, each alone and beside the writer",
		run: func(cmd *cobra.Command, f benchFlags, p *workload.Pinned, o bench.Options, end func()) error {
			report, err := bench.Beside(cmd.Context(), p, o)
			end()
			return f.print(cmd.OutOrStdout(), report, err, func(w io.Writer) error { return printBeside(w, report) })
		},
	})
}

func newBenchGC() *cobra.Command {
	return newPinnedCell(pinnedCell{
		use:   "gc",
		short: "What the garbage collector costs a full index",
		long: `Fill an index with the pinned workload, 12.8 million blocks of holders. Then let the garbage collector run --reps cycles by
force with nothing else running, and wait for as many that come by themselves beside a writer and lookups. Printed are the
pauses in which everything stops, the processor time, and what a lookup took meanwhile.`,
		example: `  kvscout bench gc --reps 10
  kvscout bench gc --own-hashes --json`,
		reps: "cycles, forced ones and as many natural ones",
		run: func(cmd *cobra.Command, f benchFlags, p *workload.Pinned, o bench.Options, end func()) error {
			report, err := bench.GC(cmd.Context(), p, o)
			end()
			return f.print(cmd.OutOrStdout(), report, err, func(w io.Writer) error { return printGC(w, report) })
		},
	})
}

// pinnedCell is a command that measures something else on the pinned workload.
type pinnedCell struct {
	use, short, long, example string
	reps                      string // what --reps counts
	run                       func(*cobra.Command, benchFlags, *workload.Pinned, bench.Options, func()) error
}

func newPinnedCell(c pinnedCell) *cobra.Command {
	var f benchFlags
	var scale float64
	var ownHashes bool
	cmd := &cobra.Command{
		Use:     c.use,
		Short:   c.short,
		Long:    c.long,
		Example: c.example,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
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
			return c.run(cmd, f, p, options, end)
		},
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "print the result as JSON and nothing else")
	cmd.Flags().IntVar(&f.reps, "reps", 5, c.reps)
	cmd.Flags().Float64Var(&scale, "scale", 1, "make so much of the workload, over 0 to 1")
	cmd.Flags().BoolVar(&ownHashes, "own-hashes", false, "let each holder hash blocks in its own way, as engines with a random seed do")
	return cmd
}

func printWide(w io.Writer, r bench.WideReport) error {
	fmt.Fprintf(w, "%d holders, %.2f B of heap for one more holder of a block, %.1f B for a block that one has\n\n",
		r.Holders, r.ExtraHolder, r.TailBlock)
	t := newTable(w, "QUERIES", "N", "P50 NS", "P99 NS", "DEPTH SUM", "MATCHED")
	for _, name := range []string{"shared", "tail", "shared_match", "tail_match"} {
		c := r.Cells[name]
		t.row(name, c.N, c.P50, c.P99, c.DepthSum, c.Matched)
	}
	return t.flush()
}

func printBeside(w io.Writer, r bench.BesideReport) error {
	fmt.Fprintf(w, "busy p50 : idle p50 = %.2f, the writer did %.2f M blocks/s\n\n", r.Ratio, r.Writes)
	t := newTable(w, "LOOKUPS", "N", "P50 NS", "P99 NS")
	t.row("idle", r.Idle.N, r.Idle.P50, r.Idle.P99)
	t.row("busy", r.Busy.N, r.Busy.P50, r.Busy.P99)
	return t.flush()
}

func printGC(w io.Writer, r bench.GCReport) error {
	fmt.Fprintf(w, "%d blocks of holders, %d bytes of live heap\n\n", r.HolderBlocks, r.Heap)
	t := newTable(w, "CYCLES", "N", "PAUSES", "PAUSE P99 NS", "PAUSE MAX NS", "CYCLE MS", "CPU", "FIND P50 NS", "P99 NS")
	share := func(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }
	c := r.Forced
	t.row("forced", c.Cycles, c.Pauses, c.PauseP99, c.PauseMax, fmt.Sprintf("%.1f", c.Millis), share(c.CPU), "-", "-")
	c = r.Natural
	t.row("natural", c.Cycles, c.Pauses, c.PauseP99, c.PauseMax, "-", share(c.CPU), c.P50, c.P99)
	return t.flush()
}
