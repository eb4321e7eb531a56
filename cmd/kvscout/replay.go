package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kvscout/kvscout/events/recording"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/indexer/ingest"
)

// replayOptions are the settings of `kvscout replay`.
type replayOptions struct {
	clientOptions
	speed string
	model string
}

func newReplay() *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay FILE...",
		Short: "Play recordings into a server, or into an index of its own",
		Long: `Play the event streams of recordings into a running server (--server), or without it into an index in this process, whose
counters are shown at the end.

Batches are pushed (Publish) to workers that are registered without an endpoint. Files are played as one, by time and
each in its own order. A directory means every recording in it. Places that cannot be read are told and left out; the
command then exits with 1 and says "incomplete".`,
		Example: `  kvscout replay w0.kvrec
  kvscout replay --server http://127.0.0.1:9470 --model qwen3 --speed 10 w0.kvrec
  kvscout replay --speed max part-1.kvrec part-2.kvrec`,
		Args: someArgs("recording"),
		RunE: func(cmd *cobra.Command, args []string) error { return runReplay(cmd, args, &o) },
	}
	f := cmd.Flags()
	o.register(f)
	f.StringVar(&o.speed, "speed", "max", "times as fast as recorded: 1, 10, 0.5, ..., or max")
	f.StringVar(&o.model, "model", "", "served model name of the workers (default: the recording's, if it names one)")
	return cmd
}

func (o *replayOptions) register(f *pflag.FlagSet) {
	o.clientOptions.register(f)
	server := f.Lookup("server")
	server.Usage = "`URL` of a server to play into: http://HOST:PORT, https://HOST:PORT or unix:///PATH (default: none, play in this process)"
	server.DefValue, o.server = "", ""
}

// pace reads --speed: how many times as fast as recorded, 0 for max.
func (o *replayOptions) pace() (float64, error) {
	if o.speed == "max" {
		return 0, nil
	}
	x, err := strconv.ParseFloat(o.speed, 64)
	if err != nil || !(x >= 0.001 && x <= 1e6) {
		return 0, misuse("speed %q is not max or a number from 0.001 to 1000000", o.speed)
	}
	return x, nil
}

func runReplay(cmd *cobra.Command, args []string, o *replayOptions) error {
	speed, err := o.pace()
	if err != nil {
		return err
	}
	paths, err := recordingsIn(args)
	if err != nil {
		return err
	}
	api, done, err := o.target()
	if err != nil {
		return err
	}
	defer done()
	specs, messages, err := o.workers(paths, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if err := enrol(ctx, api, specs); err != nil {
		return err
	}
	m, err := openAll(paths, func(err error) { warn(cmd.ErrOrStderr(), "%v", err) })
	if err != nil {
		return err
	}
	defer m.close()
	p := &pusher{api: api, rejected: make(map[string]uint64)}
	bar := newProgress(cmd.ErrOrStderr(), "replay")
	err = play(ctx, m, p, speed, func(done int64) { bar.show(done, messages) })
	bar.end()
	if _, told := fmt.Fprintln(cmd.OutOrStdout(), p.summary()); err != nil || told != nil { // also of a part
		return cmp.Or(err, told)
	}
	if o.server == "" {
		res, err := api.GetStats(ctx, connect.NewRequest(&kvscoutv1.GetStatsRequest{}))
		if err != nil {
			return err
		}
		if err := printStats(cmd.OutOrStdout(), res.Msg.GetStats()); err != nil {
			return err
		}
	}
	if m.faults > 0 {
		return fmt.Errorf("%w: %d places could not be read", errIncomplete, m.faults)
	}
	return nil
}

// workers finds whom the recordings are of, and how many messages they hold.
func (o *replayOptions) workers(paths []string, stderr io.Writer) ([]*kvscoutv1.WorkerSpec, int64, error) {
	told := make(map[string]bool)
	specs, messages, err := survey(paths, o.model, func(worker string) {
		if !told[worker] {
			warn(stderr, "worker %q is described differently later on; its first description counts, so play unlike recordings one by one", worker)
		}
		told[worker] = true
	})
	if err != nil {
		return nil, 0, err
	}
	if o.server != "" && slices.ContainsFunc(specs, unnamed) {
		return nil, 0, misuse("the recordings name no model: give --model, the name that requests will use")
	}
	return specs, messages, nil
}

// target is where to play to: a server, or an index of our own behind the same methods. Call done at the end.
func (o *replayOptions) target() (api indexAPI, done func(), err error) {
	if o.server != "" {
		c, err := o.dialIndex()
		if err != nil {
			return nil, nil, err
		}
		return c, c.Close, nil
	}
	index := indexer.New(indexer.Options{})
	fleet := ingest.New(index, ingest.Options{})
	return indexrpc.New(index, fleet, indexrpc.Options{}), fleet.Close, nil
}

// play pushes every message of m, at its time if speed is not 0, and tells how many it came to.
func play(ctx context.Context, m *merger, p *pusher, speed float64, progress func(done int64)) error {
	var began time.Time
	var first, done int64
	for ctx.Err() == nil {
		rec, err := m.next()
		if err != nil {
			return err
		}
		if rec == nil {
			return p.flush(ctx)
		}
		if rec.Kind != recording.KindMessage {
			continue
		}
		progress(done)
		done++
		if speed > 0 {
			if began.IsZero() {
				began, first = time.Now(), rec.Time
			}
			at := began.Add(time.Duration(float64(rec.Time-first) / speed))
			if wait := time.Until(at); wait > 0 {
				if err := p.flush(ctx); err != nil {
					return err
				}
				sleep(ctx, wait)
			}
		}
		if err := p.add(ctx, rec); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
