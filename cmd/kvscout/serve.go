package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/cobra"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/discover"
	"github.com/kvscout/kvscout/events/stream"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/indexer/ingest"
	"github.com/kvscout/kvscout/scorer/access"
	"github.com/kvscout/kvscout/scorer/calls"
	"github.com/kvscout/kvscout/scorer/scorerpc"
	"github.com/kvscout/kvscout/scorer/server"
	"github.com/kvscout/kvscout/scorer/turn"
)

func newServe() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Listen to engines and answer over gRPC, gRPC-Web and Connect",
		Long: `Listen to the events of engines, keep the index, and answer over gRPC, gRPC-Web and Connect (HTTP with JSON) on one port.

Workers come from --source, from the file of --config, or later by RegisterWorker ("kvscout workers add"). One line on
standard output tells the address once calls are answered; the log goes to standard error. SIGINT and SIGTERM stop the
server: calls under way may finish within --shutdown-grace. A second signal ends it at once.

A worker may be listed by its url alone, http://HOST:PORT of its serving port: it is asked for its event endpoints, ranks and
model. The workers of the file are read again when it changes; a file that is wrong changes nothing and is told in the log.

In Kubernetes, --kubernetes-pods or --kubernetes-endpoint-slices find the workers by label; they come and go with their pods.

A flag beats its variable (--listen: KVSCOUT_LISTEN), that beats the file of --config, which has the same names with
underscores, "sources" for --source, and "workers", a list of workers. --source replaces "sources" and adds to "workers".

` + specHelp + "\n\n" + renderSpecHelp,
		Example: `  kvscout serve --source id=w0,engine=vllm,model=qwen3,events=tcp://10.0.0.7:5557,replay=tcp://10.0.0.7:5558
  kvscout serve --kubernetes-pods app=vllm --kubernetes-port 8000
  kvscout serve --config kvscout.yaml --listen unix:///run/kvscout.sock
  KVSCOUT_SOURCE="id=w0,engine=sglang,model=m,events=tcp://*:5557;id=w1,engine=sglang,model=m,events=tcp://*:5558" kvscout serve`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runServe(cmd, &o) },
	}
	o.register(cmd.Flags())
	groupServeFlags(cmd.Flags())
	return cmd
}

func runServe(cmd *cobra.Command, o *serveOptions) error {
	start := time.Now()
	if err := o.resolve(cmd.Flags()); err != nil {
		return err
	}
	log := newLogger(cmd.ErrOrStderr(), o.logFormat, o.level)
	operators, err := o.admin.start(cmd.Context(), log)
	if err != nil {
		return err
	}
	defer operators.stop()
	turns := o.access.turns()
	guard, err := o.access.guard(turns, log)
	if err != nil {
		return err
	}
	defer background(cmd.Context(), func(ctx context.Context) { guard.Run(ctx, o.configPoll) })()
	renderers, err := o.render.newRenderers(o.maxPromptTokens, log)
	if err != nil {
		return err
	}
	defer background(cmd.Context(), renderers.run)()
	defer tuneGC(memlimit.FromCgroup, log)()
	warnUnknown(log, cmd.Root())
	share, err := o.log.open(o.staleAfter, log)
	if err != nil {
		return err
	}
	defer share.close()
	listener, err := server.Listen(cmd.Context(), o.listen)
	if err != nil {
		return err
	}
	warnOpen(log, guard, listener.Addr())
	index := indexer.New(indexer.Options{MaxOrphanBlocks: o.maxOrphanBlocks, KeepOnGap: o.keepOnGap, MaxBytes: o.maxIndexBytes})
	fleet := o.newFleet(index, share, log)
	defer fleet.Close()
	share.attach(fleet)
	var keeper *ingest.Keeper
	if o.snapshot != "" {
		keeper = ingest.NewKeeper(index, fleet, o.snapshot, log)
	}
	configured, err := restore(fleet, keeper, o.workers)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	asker := o.newAsker()
	defer asker.Close()
	defer discoverWorkers(cmd.Context(), o, asker, fleet, log)()
	defer share.follow(cmd.Context(), fleet)()
	srv, scores := parts{
		guard: guard, turns: turns, index: index, fleet: fleet, asker: asker, keeper: keeper, renderers: renderers, share: share,
		operators: operators, ready: newReadiness(o, index, configured), log: log, start: start,
	}.newServer(o)
	return keep(cmd.Context(), keeper, fleet, o.snapshotEvery, func(ctx context.Context) error {
		defer background(ctx, scores.Run)()
		return serveOn(ctx, srv, listener, guard.TLS() != nil, cmd.OutOrStdout())
	})
}

// newFleet is the fleet that fills the index.
func (o *serveOptions) newFleet(index *indexer.Index, share *sharing, log *slog.Logger) *ingest.Fleet {
	return ingest.New(index, ingest.Options{
		Stream: stream.Options{StaleAfter: o.staleAfter, KeepOnGap: o.keepOnGap, Peers: o.peers},
		Limits: events.Limits{PayloadBytes: o.maxPayloadBytes},
		Policy: o.policy,
		Log:    share.ingestLog(),
		Logger: log,
	})
}

// background lets run go on until ctx ends. The function returned ends it and waits.
func background(ctx context.Context, run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); run(ctx) }() // ended by stop, which waits on done
	return func() { cancel(); <-done }
}

// keep calls serve, saving the fleet meanwhile, and saves it once more when serve has returned.
func keep(ctx context.Context, keeper *ingest.Keeper, fleet *ingest.Fleet, every time.Duration, serve func(context.Context) error) error {
	if keeper == nil {
		return serve(ctx)
	}
	stop := background(ctx, func(ctx context.Context) { keeper.Run(ctx, every) })
	err := serve(ctx)
	stop()
	fleet.Close() // first: what its streams still bring belongs into the file
	return errors.Join(err, keeper.Save())
}

// restore registers and returns the configured workers that are described whole, and by keeper those of the snapshot. Discovery then
// names the configured ones again, which changes nothing.
func restore(fleet *ingest.Fleet, keeper *ingest.Keeper, configured []discover.Worker) ([]ingest.Worker, error) {
	workers, err := ingest.Described(configured)
	if err == nil && keeper != nil {
		err = keeper.Restore(workers)
	} else if err == nil {
		_, err = fleet.Restore(workers, nil)
	}
	if err != nil {
		return nil, usageError{err}
	}
	return workers, nil
}

// newReadiness waits for the configured workers, those described whole and those that are to be asked.
func newReadiness(o *serveOptions, index *indexer.Index, described []ingest.Worker) *ingest.Readiness {
	var asked []string
	for _, w := range o.workers {
		if w.URL != "" {
			asked = append(asked, w.ID)
		}
	}
	return ingest.NewReadiness(index, described, asked, o.readyGrace)
}

// parts are what a server is put together from.
type parts struct {
	guard     *access.Guard
	turns     *turn.Queue
	index     *indexer.Index
	fleet     *ingest.Fleet
	asker     *discover.Asker
	keeper    *ingest.Keeper // nil without a snapshot
	renderers *renderers     // nil without any
	share     *sharing
	operators *operators
	ready     *ingest.Readiness
	log       *slog.Logger
	start     time.Time // of the process
}

// newServer puts the services together.
func (p parts) newServer(o *serveOptions) (*server.Server, *scorerpc.Service) {
	scores := scorerpc.New(p.index, p.fleet, scorerpc.Options{
		MaxCalls: o.access.maxCalls, Turns: p.turns,
		MaxPromptTokens: o.maxPromptTokens, Weights: o.weights, Renderer: p.renderers.renderer(), Logger: p.log,
		TenantHeader: o.render.tenantHeader, StripFields: o.render.stripFields,
		TrustCallerTokens: o.render.trustCallerTokens, FlagFingerprints: o.render.mismatch == "flag",
		Tracer: p.operators.traces.Tracer(), Rendered: p.operators.steps.Rendered, LookedUp: p.operators.steps.LookedUp,
	})
	about := indexrpc.Options{
		MaxTokens: o.maxPromptTokens, ScoreStats: scores.Stats, RendererStats: p.renderers.stats, LogStats: p.share.stats(),
		Accuracy: scores.Accuracy, Waiting: p.ready.Waiting, Start: p.start,
		Describe: p.asker.Describe, AccessStats: p.guard.Stats,
	}
	if p.keeper != nil {
		about.Snapshot = p.keeper.Stats
	}
	inspector := indexrpc.New(p.index, p.fleet, about)
	p.operators.observe(inspector)
	return server.New(server.Options{
		Guard:       p.guard,
		Origins:     o.access.origins,
		Score:       scores,
		Index:       inspector,
		Ready:       p.ready.Wait,
		Drain:       inspector.Drain,
		Render:      scores,
		RenderReady: p.renderers.ready,
		Grace:       o.shutdownGrace,
		Logger:      p.log,
		Observe:     p.operators.calls.Observe,
		Tracer:      p.operators.traces.Tracer(),
		// A token is at most 12 bytes of a JSON body; a call lasts as long as the renderer may.
		ReadMaxBytes: max(server.DefaultReadMaxBytes, 16*o.maxPromptTokens),
		CallTimeout:  max(server.DefaultCallTimeout, o.render.callTimeout()),
	}), scores
}

// serveOn tells the address and serves until ctx ends. Connections made from now on are answered, since the listener is
// open already.
func serveOn(ctx context.Context, srv *server.Server, l net.Listener, secure bool, stdout io.Writer) error {
	address := "http://" + l.Addr().String()
	if secure {
		address = "https://" + l.Addr().String()
	}
	if l.Addr().Network() == "unix" {
		address = "unix://" + l.Addr().String()
	}
	if _, err := fmt.Fprintln(stdout, "kvscout serves on "+address); err != nil {
		return errors.Join(err, l.Close())
	}
	return srv.Serve(ctx, l)
}

func newLogger(w io.Writer, format string, level slog.Level) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	var h slog.Handler = slog.NewTextHandler(w, opts)
	if format == "json" {
		h = slog.NewJSONHandler(w, opts)
	}
	return slog.New(calls.LogHandler(h))
}
