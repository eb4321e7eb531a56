package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/kvscout/kvscout/scorer/bench"
)

// benchScoreOptions are the settings of `kvscout bench score`.
type benchScoreOptions struct {
	server, protocol, client        string
	credentials                     credentialOptions
	tokens, workers, prompts        int
	concurrency, connections, batch int
	serverPID                       int
	hashes, json                    bool
	during, warmup                  time.Duration
	rate, ingest                    float64
	control                         clientOptions // for filling the server
	target                          bench.Target
	calls                           bench.Client
}

func newBenchScore() *cobra.Command {
	var o benchScoreOptions
	cmd := &cobra.Command{
		Use:   "score",
		Short: "How fast a server answers Score over the wire",
		Long: `Put load on a server and time the right answers. Without --server, one is started beside, on a free port of 127.0.0.1, and
stopped at the end. The server is filled with --workers workers that hold --prompts prompts of --tokens tokens: they share
their first quarter, and each worker holds another part of each, from a little to all of it. At the end the workers are
taken away again. Every answer is checked; a wrong one is an error. Errors end the command with 1.

A lean client writes bytes made before to sockets of its own, so that the server is measured and not the client; a stock
client is what people use: connect-go, or grpc-go for --protocol grpc. Without --rate each of --concurrency callers asks
again as soon as it is answered. With --rate calls come by chance, so many a second, and one that begins late is timed
from when it was due. --ingest lets engines publish to the server meanwhile, which must be on this machine. To fill a server
that knows its callers, they must have the role operate.`,
		Example: `  kvscout bench score
  kvscout bench score --server http://127.0.0.1:9470 --tokens 16384 --concurrency 8 --protocol connect --json
  kvscout bench score --protocol grpc --rate 2000 --ingest 200000
  kvscout bench score --server https://kvscout:9470 --ca ca.crt --token-file operate.token`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runBenchScore(cmd, &o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.server, "server", "", "`URL` of the server: http://HOST:PORT, https://HOST:PORT or unix:///PATH (default: one is started)")
	o.credentials.register(f)
	f.StringVar(&o.protocol, "protocol", string(bench.ProtocolConnect), "what is spoken: grpc, connect or connect-json")
	f.StringVar(&o.client, "client", "", "lean or stock (default: lean; stock for grpc)")
	f.IntVar(&o.tokens, "tokens", 8192, "tokens of a prompt")
	f.IntVar(&o.prompts, "prompts", 8, "prompts that are asked for in turn")
	f.IntVar(&o.workers, "workers", 64, "workers that hold parts of them")
	f.IntVar(&o.concurrency, "concurrency", 8, "callers, each with one call under way at most")
	f.IntVar(&o.connections, "connections", 0, "connections of a stock client (default: 1 for grpc, else one for each caller)")
	f.IntVar(&o.batch, "batch", 0, "ask by ScoreBatch for so many prompts at once (default 0: by Score)")
	f.BoolVar(&o.hashes, "hashes", false, "send block hashes instead of tokens")
	f.Float64Var(&o.rate, "rate", 0, "calls a second of all callers together (default 0: as fast as they are answered)")
	f.Float64Var(&o.ingest, "ingest", 0, "blocks a second, stored and removed ones, that engines publish meanwhile (default 0: none)")
	f.DurationVar(&o.during, "duration", 3*time.Second, "how long calls count")
	f.DurationVar(&o.warmup, "warmup", 500*time.Millisecond, "how long calls are made before that")
	f.IntVar(&o.serverPID, "server-pid", 0, "process of the server if it is on this machine, to read its processor time (default: that of the server started)")
	f.BoolVar(&o.json, "json", false, "print the result as JSON and nothing else")
	return cmd
}

// maxBench bounds --duration and --warmup.
const maxBench = time.Hour

// check looks at the settings and puts in what follows from others.
func (o *benchScoreOptions) check() error {
	switch bench.Protocol(o.protocol) {
	case bench.ProtocolConnect, bench.ProtocolJSON, bench.ProtocolGRPC:
	default:
		return misuse("protocol %q is not grpc, connect or connect-json", o.protocol)
	}
	grpc := o.protocol == string(bench.ProtocolGRPC)
	switch {
	case o.client == "" && grpc:
		o.client = "stock"
	case o.client == "":
		o.client = "lean"
	case o.client != "lean" && o.client != "stock":
		return misuse("client %q is not lean or stock", o.client)
	}
	switch {
	case o.during <= 0 || o.during > maxBench || o.warmup < 0 || o.warmup > maxBench:
		return misuse("duration %v or warmup %v is not in 0 to %v", o.during, o.warmup, maxBench)
	case !(o.rate >= 0 && o.rate <= 1e7) || !(o.ingest == 0 || o.ingest >= bench.MinIngest && o.ingest <= 1e8):
		return misuse("rate %v or ingest %v cannot be", o.rate, o.ingest)
	}
	if o.connections == 0 {
		o.connections = o.concurrency
		if grpc {
			o.connections = 1
		}
	}
	o.calls = bench.Client{
		Protocol: bench.Protocol(o.protocol), Stock: o.client == "stock", Form: bench.Form{Hashes: o.hashes, Batch: o.batch},
		Callers: o.concurrency, Connections: o.connections,
	}
	if err := o.calls.Validate(); err != nil {
		return usageError{err}
	}
	return nil
}

func runBenchScore(cmd *cobra.Command, o *benchScoreOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	w, err := bench.New(o.tokens, o.workers, o.prompts, 1)
	if err != nil {
		return usageError{err}
	}
	w.ID = "bench-" + rand.Text()[:6] // so that two of them may load one server
	w.Model = w.ID
	if o.server == "" {
		if o.credentials.any() {
			return misuse("ca, cert, key and token-file are for a server that is named by --server")
		}
		self, err := os.Executable()
		if err != nil {
			return err
		}
		own, err := bench.StartServer(cmd.Context(), self, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		defer own.Stop()
		o.server, o.serverPID = own.URL, own.PID()
	}
	if err := o.reach(cmd.Context()); err != nil {
		return err
	}
	report, err := o.measure(cmd.Context(), w, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if o.json {
		err = json.NewEncoder(cmd.OutOrStdout()).Encode(report)
	} else {
		err = o.print(cmd.OutOrStdout(), w, report)
	}
	if report.Errors > 0 {
		err = errors.Join(err, fmt.Errorf("%d calls had no right answer; the first: %w", report.Errors, report.First))
	}
	return err
}

// scoreReport is a report with what was published meanwhile.
type scoreReport struct {
	bench.Report
	// Ingested is absent if nothing was published.
	*bench.Ingested
}

// measure fills the server, puts the load on it and empties it.
func (o *benchScoreOptions) measure(ctx context.Context, w *bench.Workload, progress io.Writer) (report scoreReport, err error) {
	api, err := o.control.dialIndex()
	if err != nil {
		return report, err
	}
	defer api.Close()
	defer func() { // also when ctx has ended
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, w.Empty(ctx, api))
	}()
	p := newProgress(progress, "bench score, filling")
	err = w.Fill(ctx, api, func(done, total int) { p.show(int64(done), int64(total)) })
	p.end()
	if err != nil {
		return report, err
	}
	if o.ingest > 0 {
		return o.beside(ctx, w, api)
	}
	report.Report, err = o.load(ctx, w)
	return report, err
}

// load drives the callers.
func (o *benchScoreOptions) load(ctx context.Context, w *bench.Workload) (bench.Report, error) {
	callers, end, err := w.Callers(o.target, o.calls)
	if err != nil {
		return bench.Report{}, err
	}
	report := bench.Run(ctx, callers, bench.Load{
		Warmup: o.warmup, During: o.during, Rate: o.rate, ServerPID: o.serverPID, Scores: max(1, o.batch),
	})
	return report, errors.Join(end(), ctx.Err())
}

// beside drives the callers while engines publish.
func (o *benchScoreOptions) beside(ctx context.Context, w *bench.Workload, api *indexClient) (report scoreReport, err error) {
	got, err := w.Beside(ctx, api, o.ingest, func() (err error) {
		report.Report, err = o.load(ctx, w)
		return err
	})
	report.Ingested = &got
	return report, err
}

// print prints a report for people.
func (o *benchScoreOptions) print(w io.Writer, load *bench.Workload, r scoreReport) error {
	what := fmt.Sprintf("%d tokens", o.tokens)
	if o.hashes {
		what = fmt.Sprintf("%d block hashes", load.Blocks())
	}
	fmt.Fprintf(w, "%s, %d workers, %d callers, %s, %s client: %d calls in %.1f s\n\n",
		what, o.workers, o.concurrency, o.protocol, o.client, r.Calls, r.Seconds)
	t := newTable(w, "REQUESTS/S", "P50 US", "P99 US", "MAX US", "SERVER CPU US", "CLIENT CPU US", "ERRORS")
	cpu := "-"
	if r.ServerCPU != nil {
		cpu = fmt.Sprintf("%.0f", *r.ServerCPU)
	}
	t.row(fmt.Sprintf("%.0f", r.Requests), fmt.Sprintf("%.0f", r.P50), fmt.Sprintf("%.0f", r.P99), fmt.Sprintf("%.0f", r.Max),
		cpu, fmt.Sprintf("%.0f", r.ClientCPU), r.Errors)
	if err := t.flush(); err != nil {
		return err
	}
	for _, reason := range r.Names() {
		fmt.Fprintf(w, "%d errors: %s\n", r.Reasons[reason], reason)
	}
	if r.Ingested != nil {
		fmt.Fprintf(w, "beside %.0f blocks stored and removed a second, visible after %.2f ms (p50) and %.2f ms (p99)\n", r.Blocks, r.LagP50, r.LagP99)
	}
	return nil
}
