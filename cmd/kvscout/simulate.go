package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/kvscout/kvscout/events/simulate"
)

// simulateOptions are the settings of `kvscout simulate`.
type simulateOptions struct {
	engines           int
	form, model, host string
	blockSize, blocks int
	rate              float64
	during            time.Duration
	requests          int
	seed              uint64
	basePort          int
	register, score   string
	sample            string
	json              bool
	credentialOptions
}

// mixed is the --form of a fleet of several forms.
const mixed = "mixed"

func newSimulate() *cobra.Command {
	var o simulateOptions
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Run engines without engines: a real prefix cache, real events, no model",
		Long: `Run simulated engines under made-up traffic (shared system prompts, conversations, tenants, adapters). Each has a real
prefix cache and publishes the bytes that vLLM or SGLang would, over ZMQ with a replay endpoint.

With --register they are registered at a running server, and removed from it at the end. With --score each request is
scored there before an engine serves it, by gRPC and by Connect JSON in turn, and the prediction for the engine that
serves it is compared with the number that the engine itself reports (cached_tokens). A request is only scored when the
server has applied the last batch, so an exact answer must be equal: if one is not, the command exits with 1.`,
		Example: `  kvscout simulate
  kvscout simulate --engines 4 --form mixed --for 15s --register http://127.0.0.1:9470 --score http://127.0.0.1:9470
  kvscout simulate --form sglang --base-port 5557 --rate 100 --seed 7`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runSimulate(cmd, &o) },
	}
	f := cmd.Flags()
	f.IntVar(&o.engines, "engines", 4, "engines to run")
	f.StringVar(&o.form, "form", mixed, "what they publish: vllm, vllm-array, sglang, sglang-array or mixed")
	f.StringVar(&o.model, "model", "sim-model", "served model name")
	f.StringVar(&o.host, "host", "127.0.0.1", "address that the engines bind")
	f.IntVar(&o.blockSize, "block-size", simulate.DefaultBlockSize, "tokens per block")
	f.IntVar(&o.blocks, "blocks", simulate.DefaultBlocks, "blocks that the cache of one engine has room for")
	f.Float64Var(&o.rate, "rate", 20, "requests a second over all engines; 0 is as fast as possible")
	f.DurationVar(&o.during, "for", 0, "end after this time; 0 is never")
	f.IntVar(&o.requests, "requests", 0, "end after this many requests; 0 is never")
	f.Uint64Var(&o.seed, "seed", 1, "the same seed makes the same traffic")
	f.IntVar(&o.basePort, "base-port", 0, "first TCP port: engine i publishes on port + 2i and replays on port + 2i + 1; 0 is free ports")
	f.StringVar(&o.register, "register", "", "`URL` of the server at which to register the engines (default: none)")
	f.StringVar(&o.score, "score", "", "`URL` of the server that scores each request (default: none)")
	f.StringVar(&o.sample, "sample", "", "`FILE` to which the token ids of one served prompt are written as JSON, to try kvscout score with (default: none)")
	f.BoolVar(&o.json, "json", false, "print the summary as JSON and nothing else")
	o.credentialOptions.register(f)
	groupFlags(f, "Server", "register", "score", "ca", "cert", "key", "token-file", "insecure-token")
	return cmd
}

// fleet describes the engines and their traffic.
func (o *simulateOptions) fleet() (simulate.FleetConfig, error) {
	none := simulate.FleetConfig{}
	if o.engines < 1 || o.engines > 1024 {
		return none, misuse("engines %d is not in 1..1024", o.engines)
	}
	if o.blocks < 1 || o.blockSize < 1 {
		return none, misuse("blocks and block-size must be positive")
	}
	if o.basePort < 0 || o.basePort > 0 && o.basePort+2*o.engines-1 > 65535 {
		return none, misuse("base-port %d leaves no room for %d engines", o.basePort, o.engines)
	}
	if !(o.rate >= 0 && o.rate <= 1e6) || o.during < 0 || o.requests < 0 {
		return none, misuse("rate, for and requests must not be negative, nor the rate over 1000000")
	}
	engines := simulate.MixedEngines(o.engines, o.host)
	traffic := simulate.DefaultTraffic()
	traffic.Align = 2 * o.blockSize
	if o.form != mixed {
		form, err := simulate.ParseForm(o.form)
		if err != nil {
			return none, usageError{err}
		}
		for i := range engines {
			engines[i].Form = form
		}
		if form == simulate.FormSGLangArray {
			traffic.Adapters = nil // this form cannot announce them
		}
	}
	for i := range engines {
		e := &engines[i]
		e.Model, e.BlockSize, e.Blocks, e.Seed = o.model, o.blockSize, o.blocks, o.seed+uint64(i)
		e.Topic = "kv@" + e.Worker + "@" + o.model
		if o.basePort > 0 {
			e.Events = "tcp://" + net.JoinHostPort(o.host, strconv.Itoa(o.basePort+2*i))
			e.Replay = "tcp://" + net.JoinHostPort(o.host, strconv.Itoa(o.basePort+2*i+1))
		}
	}
	return simulate.FleetConfig{Engines: engines, Traffic: traffic, Seed: o.seed}, nil
}

func runSimulate(cmd *cobra.Command, o *simulateOptions) (err error) {
	cfg, err := o.fleet()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if o.during > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx) // without a deadline: calls have bounds of their own
		defer cancel()
		defer time.AfterFunc(o.during, cancel).Stop()
	}
	fleet, err := simulate.NewFleet(cfg)
	if errors.Is(err, simulate.ErrConfig) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fleet.Close()) }()
	s := newSimulation(o, fleet.Engines(), simulate.NewTraffic(o.seed, cfg.Traffic))
	for _, e := range s.engines {
		warn(cmd.ErrOrStderr(), "engine %s publishes as %s: --source %s", e.src.Worker, e.Form(), sourceSpec(e.src))
	}
	if s.judge, err = newJudge(o); err != nil {
		return err
	}
	defer s.judge.Close()
	roll, err := newEnrolment(ctx, o, s.engines, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, roll.leave(context.WithoutCancel(ctx))) }()
	if err := s.run(ctx, newBoard(cmd, o.json)); err != nil {
		return err
	}
	s.countRemovals(context.WithoutCancel(ctx))
	sum := s.summary()
	if err := sum.print(cmd.OutOrStdout(), o.json); err != nil {
		return err
	}
	if sum.Wrong > 0 {
		return fmt.Errorf("%w: %d of %d answers", errWrong, sum.Wrong, sum.Scored)
	}
	return nil
}
