package main

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/stream"
	"github.com/kvscout/kvscout/events/zmq"
	"github.com/kvscout/kvscout/indexer/ingest"
	"github.com/kvscout/kvscout/scorer"
)

// serveOptions are the settings of a server.
type serveOptions struct {
	listen, config string
	sources        []string
	workers        []ingest.Worker // of the file and of sources, put together by resolve

	render renderOptions

	logLevel, logFormat string
	level               slog.Level // of logLevel

	weights         scorer.Weights
	staleAfter      time.Duration
	keepOnGap       bool
	maxOrphanBlocks int
	maxPayloadBytes int
	maxPromptTokens int
	shutdownGrace   time.Duration

	snapshot      string
	snapshotEvery time.Duration
}

func (o *serveOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.listen, "listen", "127.0.0.1:9470", "`ADDRESS` to serve on: HOST:PORT or unix:///PATH; port 0 takes a free one")
	f.StringVar(&o.config, "config", "", "YAML `FILE` with the same settings and the list of workers (default: none)")
	f.StringArrayVar(&o.sources, "source", nil, "event `SPEC` of one rank of a worker, as described above; may be repeated (default: none)")
	o.render.register(f)
	f.StringVar(&o.logLevel, "log-level", "info", "least level that is logged: debug, info, warn or error")
	f.StringVar(&o.logFormat, "log-format", "text", "form of the log on standard error: text or json")
	o.weights = scorer.DefaultWeights()
	for t := range o.weights {
		tier := events.Tier(t)
		usage := fmt.Sprintf("what a token on tier %s is worth, 0 to 1", tier)
		if o.weights[t] == 0 {
			usage += " (default 0)" // which pflag leaves out
		}
		f.Float64Var(&o.weights[t], "weight-"+tier.String(), o.weights[t], usage)
	}
	f.DurationVar(&o.staleAfter, "stale-after", stream.DefaultStaleAfter, "a worker that is not reached for this long is stale and scores 0")
	f.BoolVar(&o.keepOnGap, "keep-on-gap", false, "keep what a worker held when its batches are lost for good, and call its answers upper bounds (default false: drop it)")
	f.IntVar(&o.maxOrphanBlocks, "max-orphan-blocks", 65536, "blocks per source that may wait for an unknown parent")
	f.IntVar(&o.maxPayloadBytes, "max-payload-bytes", zmq.DefaultMaxFrame, "largest event payload taken, in bytes; frames over 16777216 are refused before that")
	f.IntVar(&o.maxPromptTokens, "max-prompt-tokens", 1<<20, "longest prompt scored, in tokens")
	f.StringVar(&o.snapshot, "snapshot", "", "`FILE` that the index is kept in, so that a restart goes on where it ended; it has cache salts in it (default: none)")
	f.DurationVar(&o.snapshotEvery, "snapshot-every", time.Minute, "how often --snapshot is written; it is also written when the server stops")
	f.DurationVar(&o.shutdownGrace, "shutdown-grace", 10*time.Second, "time that calls under way have to finish when the server stops")
}

// resolve reads the file, puts the workers together and reports everything wrong with the settings.
func (o *serveOptions) resolve(flags *pflag.FlagSet) error {
	var fromFile []ingest.Worker
	if o.config != "" {
		var err error
		if fromFile, err = applyFile(flags, o.config); err != nil {
			return err
		}
	}
	var err error
	faults := []error{o.weights.Validate(), o.check(), o.render.check()}
	if o.workers, err = assemble(fromFile, o.sources); err != nil {
		faults = append(faults, err)
	}
	faults = append(faults, checkListen(o.listen, o.workers))
	if err := errors.Join(faults...); err != nil {
		return usageError{err}
	}
	return nil
}

// check looks at each setting by itself.
func (o *serveOptions) check() error {
	var faults []error
	bad := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if o.level.UnmarshalText([]byte(o.logLevel)) != nil {
		bad("log-level %q is not debug, info, warn or error", o.logLevel)
	}
	if o.logFormat != "text" && o.logFormat != "json" {
		bad("log-format %q is not text or json", o.logFormat)
	}
	if o.weights == (scorer.Weights{}) {
		bad("every weight is 0, so every score would be")
	}
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"stale-after", int64(o.staleAfter)},
		{"max-orphan-blocks", int64(o.maxOrphanBlocks)}, {"max-payload-bytes", int64(o.maxPayloadBytes)},
		{"max-prompt-tokens", int64(o.maxPromptTokens)}, {"shutdown-grace", int64(o.shutdownGrace)},
		{"snapshot-every", int64(o.snapshotEvery)},
	} {
		if f.value <= 0 {
			bad("%s is not positive", f.name)
		}
	}
	return errors.Join(faults...)
}
