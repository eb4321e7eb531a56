package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/spf13/pflag"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/discover"
	"github.com/kvscout/kvscout/events/stream"
	"github.com/kvscout/kvscout/events/zmq"
	"github.com/kvscout/kvscout/indexer/ingest"
	"github.com/kvscout/kvscout/scorer"
)

// leastIndexBytes is a bound below which an index has little but its tables.
const leastIndexBytes = 16 << 20

// serveOptions are the settings of a server.
type serveOptions struct {
	listen, config string
	sources        []string
	workers        []discover.Worker // of the file and of sources, put together by resolve
	// sourcesGiven: sources are of flags or variables, which go before the file's.
	sourcesGiven bool

	configPoll, workerRefresh, healthEvery time.Duration
	workerNetworks, bindPeers              []string
	peers                                  []netip.Prefix  // of bindPeers
	policy                                 discover.Policy // of workerNetworks

	kubernetes kubernetesOptions
	cluster    []discover.Discoverer // of kubernetes

	render renderOptions
	access accessOptions

	logLevel, logFormat string
	level               slog.Level // of logLevel

	weights         scorer.Weights
	staleAfter      time.Duration
	keepOnGap       bool
	maxOrphanBlocks int
	maxPayloadBytes int
	maxPromptTokens int
	maxIndexBytes   int
	shutdownGrace   time.Duration
	readyGrace      time.Duration

	snapshot      string
	snapshotEvery time.Duration

	log   logOptions
	admin adminOptions
}

func (o *serveOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.listen, "listen", "127.0.0.1:9470", "`ADDRESS` to serve on: HOST:PORT or unix:///PATH; port 0 takes a free one")
	f.StringVar(&o.config, "config", "", "YAML `FILE` with the same settings and the list of workers (default: none)")
	f.StringArrayVar(&o.sources, "source", nil, "event `SPEC` of one rank of a worker, as described above; may be repeated (default: none)")
	f.DurationVar(&o.configPoll, "config-poll", discover.DefaultPoll, "how often the workers of the file, certificates and callers are read again; a file that is wrong changes nothing")
	f.DurationVar(&o.workerRefresh, "worker-refresh", discover.DefaultRefresh, "how often workers with a url are asked about themselves")
	f.StringArrayVar(&o.workerNetworks, "worker-network", nil, "`NETWORK` or address that workers are in: nothing else is dialled for events or asked by a url; may be repeated (default: all but link-local and metadata addresses)")
	f.StringArrayVar(&o.bindPeers, "bind-peer", nil, "`NETWORK` or address from which engines may dial endpoints that are bound; may be repeated (default: any)")
	f.DurationVar(&o.healthEvery, "health-every", 0, "how often /health of workers with a url is asked; one that fails for stale-after scores 0 (default 0: never)")
	o.kubernetes.register(f)
	o.render.register(f)
	o.access.register(f)
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
	f.IntVar(&o.maxIndexBytes, "max-index-bytes", 0, "memory of the index, in bytes; above it what was stored longest ago is forgotten, and answers about its workers are lower bounds (default 0: no bound)")
	f.StringVar(&o.snapshot, "snapshot", "", "`FILE` that the index is kept in, so that a restart goes on where it ended; it has cache salts in it (default: none)")
	f.DurationVar(&o.snapshotEvery, "snapshot-every", time.Minute, "how often --snapshot is written; it is also written when the server stops")
	f.DurationVar(&o.readyGrace, "ready-grace", ingest.DefaultReadyGrace, "time that configured workers have to be reached and replayed before health says SERVING without them")
	f.DurationVar(&o.shutdownGrace, "shutdown-grace", 10*time.Second, "time that calls under way have to finish when the server stops")
	o.log.register(f)
	o.admin.register(f)
}

// resolve reads the file, puts the workers together and reports everything wrong with the settings.
func (o *serveOptions) resolve(flags *pflag.FlagSet) error {
	var fromFile []discover.Worker
	o.sourcesGiven = flags.Changed("source")
	if o.config != "" {
		var err error
		if fromFile, err = applyFile(flags, o.config); err != nil {
			return err
		}
	}
	var err error
	faults := []error{o.weights.Validate(), o.check(), o.render.check(), o.access.check(o.listen), o.log.check()}
	if o.policy, err = discover.ParsePolicy(o.workerNetworks); err != nil {
		faults = append(faults, fmt.Errorf("worker-network: %w", err))
	}
	if o.cluster, err = o.kubernetes.discoverers(o.policy); err != nil {
		faults = append(faults, err)
	}
	allowed, err := discover.ParsePolicy(o.bindPeers)
	if err != nil {
		faults = append(faults, fmt.Errorf("bind-peer: %w", err))
	}
	o.peers = allowed.Allow
	if o.workers, err = assemble(fromFile, o.sources); err != nil {
		faults = append(faults, err)
	}
	faults = append(faults, checkListen(o.listen, o.workers), o.admin.resolve(flags, o.workers))
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
		{"config-poll", int64(o.configPoll)}, {"worker-refresh", int64(o.workerRefresh)},
		{"stale-after", int64(o.staleAfter)},
		{"max-orphan-blocks", int64(o.maxOrphanBlocks)}, {"max-payload-bytes", int64(o.maxPayloadBytes)},
		{"max-prompt-tokens", int64(o.maxPromptTokens)}, {"shutdown-grace", int64(o.shutdownGrace)},
		{"ready-grace", int64(o.readyGrace)},
		{"snapshot-every", int64(o.snapshotEvery)},
	} {
		if f.value <= 0 {
			bad("%s is not positive", f.name)
		}
	}
	if o.maxIndexBytes != 0 && o.maxIndexBytes < leastIndexBytes {
		bad("max-index-bytes %d is neither 0 nor at least %d", o.maxIndexBytes, leastIndexBytes)
	}
	if o.healthEvery < 0 {
		bad("health-every is negative")
	}
	return errors.Join(faults...)
}
