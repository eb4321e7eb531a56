package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/discover"
	"github.com/kvscout/kvscout/events/recording"
	"github.com/kvscout/kvscout/events/stream"
	"github.com/kvscout/kvscout/indexer/ingest"
)

// recordOptions are the settings of `kvscout record`.
type recordOptions struct {
	sources  []string
	output   string
	during   time.Duration
	maxBytes int64
}

func newRecord() *cobra.Command {
	var o recordOptions
	cmd := &cobra.Command{
		Use:   "record --source SPEC -o FILE",
		Short: "Record event streams into a file",
		Long: `Record the event streams of engines into a file that replay and verify read, until --for, --max-bytes or a signal ends it.

What was published before is fetched first where the source has a replay endpoint. Each batch is written once, in the
order of its stream; losses, restarts and lost connections are written as notes. The file is written on every second,
so that a recorder that is killed loses at most the last one. The file holds prompts: only its owner may read it.

` + specHelp,
		Example: `  kvscout record --source id=w0,engine=vllm,events=tcp://10.0.0.7:5557,replay=tcp://10.0.0.7:5558 -o w0.kvrec
  kvscout record --source id=w0,engine=vllm,events=tcp://*:5557 -o w0.kvrec --for 10m --max-bytes 1000000000
  kvscout record convert w0.jsonl -o w0.kvrec`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runRecord(cmd, &o) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.sources, "source", nil, "event `SPEC` to record, as described above; may be repeated, at least one")
	f.StringVarP(&o.output, "output", "o", "", "`FILE` to write; one that exists is emptied")
	f.DurationVar(&o.during, "for", 0, "end after this time; 0 is never")
	f.Int64Var(&o.maxBytes, "max-bytes", 0, "end when the file has this many bytes, looked at once a second; 0 is never")
	cmd.AddCommand(newConvert())
	return cmd
}

// check reads the sources and reports everything wrong with the settings.
func (o *recordOptions) check() ([]events.Source, error) {
	var faults []error
	if len(o.sources) == 0 {
		faults = append(faults, errors.New("give at least one --source"))
	}
	if o.output == "" {
		faults = append(faults, errors.New("give --output FILE"))
	}
	if o.during < 0 || o.maxBytes < 0 {
		faults = append(faults, errors.New("for and max-bytes must not be negative"))
	}
	sources, err := parseSources(o.sources)
	faults = append(faults, err)
	ids := make(map[string]bool)
	for _, s := range sources {
		if s.Events == "" {
			faults = append(faults, fmt.Errorf("source %s: events is missing", s.ID()))
		}
		if ids[s.ID()] {
			faults = append(faults, fmt.Errorf("source %s is given twice", s.ID()))
		}
		ids[s.ID()] = true
	}
	if err == nil {
		if _, err := ingest.Group(sources); err != nil {
			faults = append(faults, err)
		} else {
			faults = append(faults, checkEndpoints(sources))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, usageError{err}
	}
	return sources, nil
}

func runRecord(cmd *cobra.Command, o *recordOptions) (err error) {
	sources, err := o.check()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	if o.during > 0 {
		ctx, cancel = context.WithTimeout(ctx, o.during)
		defer cancel()
	}
	w, err := recording.Create(o.output)
	if err != nil {
		return err
	}
	t := newTape(w, cancel)
	defer func() { err = errors.Join(err, t.close()) }()
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for _, src := range sources {
		head, err := t.head(src)
		if err != nil {
			return err
		}
		s, err := ingest.Listen(src, head, stream.Options{}, events.Limits{}, discover.Policy{})
		if err != nil {
			return usageError{err}
		}
		// Ends with ctx, which is cancelled when runRecord returns; waited for then.
		running.Go(func() {
			if err := s.Run(ctx); err != nil && ctx.Err() == nil {
				t.fail(fmt.Errorf("source %s: %w", src.ID(), err))
			}
		})
	}
	return watchTape(ctx, cmd, o, t)
}

// watchTape flushes every second and tells of progress until ctx ends or the file is large enough.
func watchTape(ctx context.Context, cmd *cobra.Command, o *recordOptions, t *tape) error {
	stderr := cmd.ErrOrStderr()
	live := isTerminal(stderr)
	warn(stderr, "recording %d sources to %s", len(o.sources), o.output)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for done := false; !done; {
		select {
		case <-ctx.Done():
			done = true
		case <-tick.C:
		}
		t.flush()
		info, err := os.Stat(o.output)
		if err != nil {
			return err
		}
		done = done || o.maxBytes > 0 && info.Size() >= o.maxBytes
		if live {
			fmt.Fprintf(stderr, "\r\x1b[K%s, %d bytes in the file", t.summary(), info.Size())
		}
		if done && live {
			fmt.Fprintln(stderr)
		}
	}
	warn(stderr, "recorded %s", t.summary())
	return nil
}
