package main

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kvscout/kvscout/cmd/kvscout/dashboard"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/client"
)

const (
	// minTopInterval keeps the view readable and cheap.
	minTopInterval = 100 * time.Millisecond
	// onceWidth is that of a frame that no terminal shows.
	onceWidth = 160
)

// topOptions are the settings of `kvscout top`.
type topOptions struct {
	clientOptions
	interval time.Duration
	once     bool
}

func newTop() *cobra.Command {
	var o topOptions
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch a server live in the terminal",
		Long: `Watch a server live in the terminal: its sources (state, lag, blocks by tier, stores and removals a second), scores a second and
how long they take, and how predictions compare with what engines report. "?" shows the keys and what the words mean, "q" ends it.

Sources can be sorted by any column, filtered ("/": words, !word, state:gap, model:qwen) and opened (enter): what was rejected and
why, gaps, orphans, why answers are bounds, labels, endpoints, scopes. When the server goes away the last numbers stay, marked as
old, and it is called again until it is back. It needs 60 columns and 12 lines. NO_COLOR is honoured.

Where there is no terminal, --once prints everything once as text, and kvscout stats --watch prints all counters again and again.`,
		Example: `  kvscout top
  kvscout top --server http://10.0.0.1:9470 --interval 5s
  kvscout top --once > state.txt`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runTop(cmd, &o) },
	}
	f := cmd.Flags()
	o.register(f)
	f.DurationVar(&o.interval, "interval", time.Second, "time between two answers of the server, at least 100ms")
	f.BoolVar(&o.once, "once", false, "print everything once as text; it takes one interval, for the rates")
	return cmd
}

func runTop(cmd *cobra.Command, o *topOptions) error {
	if o.interval < minTopInterval {
		return misuse("interval %v is under %v", o.interval, minTopInterval)
	}
	out := cmd.OutOrStdout()
	if !o.once && !isTerminal(out) {
		return misuse("top needs a terminal; use kvscout top --once, or kvscout stats --watch")
	}
	c, err := o.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	opts := dashboard.Options{
		Server: o.server, Interval: o.interval, Timeout: o.timeout, Stream: statsStream(c),
		Detail: func(worker string, rank uint32) (dashboard.Detail, error) {
			return sourceDetail(cmd.Context(), c, worker, rank)
		},
	}
	if o.once {
		return dashboard.Once(cmd.Context(), opts, out, cmp.Or(columnsOf(out), onceWidth))
	}
	return dashboard.Run(cmd.Context(), opts, cmd.InOrStdin(), out)
}

// statsStream brings the counters of c's server.
func statsStream(c *client.Client) dashboard.Stream {
	return func(ctx context.Context, interval time.Duration, take func(*kvscoutv1.Stats)) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := c.StreamStats(ctx, &kvscoutv1.StreamStatsRequest{Interval: durationpb.New(interval)})
		if err != nil {
			return err
		}
		for stream.Receive() {
			take(stream.Msg().GetStats())
		}
		err = stream.Err()
		cancel() // so that Close need not wait for the server
		_ = stream.Close()
		return err
	}
}

// sourceDetail asks what the counters do not tell of a source.
func sourceDetail(ctx context.Context, c *client.Client, worker string, rank uint32) (dashboard.Detail, error) {
	var d dashboard.Detail
	seen, err := c.Inspect(ctx, &kvscoutv1.InspectRequest{Worker: &kvscoutv1.WorkerTarget{WorkerId: worker, Rank: &rank}})
	if err != nil {
		return d, err
	}
	for _, s := range seen.GetSources() {
		d.Scopes, d.ScopesOmitted = s.GetScopes(), s.GetScopesOmitted()
	}
	list, err := c.ListWorkers(ctx, new(kvscoutv1.ListWorkersRequest))
	if err != nil {
		return d, err
	}
	for _, w := range list.GetWorkers() {
		if w.GetSpec().GetWorkerId() == worker {
			d.Worker = w
		}
	}
	return d, nil
}
