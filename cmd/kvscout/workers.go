package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/client"
)

func newWorkers() *cobra.Command {
	var o clientOptions
	var model, role string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "List the workers of a server, add or remove some",
		Long: `List the workers that a server listens to, one line for each rank, with the state of its event stream.

STATE is live when every event so far is in the index; "#5 2s ago" is the last batch and its age. HISTORY is complete when every block that the engine holds was announced to the server: only then is a miss a fact.`,
		Example: `  kvscout workers
  kvscout workers --model qwen3 --json
  kvscout workers add --source id=w0,engine=vllm,model=qwen3,events=tcp://10.0.0.7:5557
  kvscout workers remove w0`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			want, err := parseRole(role)
			if err != nil {
				return err
			}
			return listWorkers(cmd, &o, &kvscoutv1.ListWorkersRequest{Model: model, Role: want}, asJSON)
		},
	}
	o.register(cmd.Flags())
	cmd.Flags().StringVar(&model, "model", "", "only workers of this model or alias (default: any)")
	cmd.Flags().StringVar(&role, "role", "", "only workers of this role: prefill, decode or both (default: any)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer's JSON and nothing else")
	cmd.AddCommand(newWorkersAdd(), newWorkersRemove(), newWorkersReset())
	return cmd
}

func listWorkers(cmd *cobra.Command, o *clientOptions, req *kvscoutv1.ListWorkersRequest, asJSON bool) error {
	res, err := call(cmd.Context(), o, req, (*client.Client).ListWorkers)
	if err != nil {
		return err
	}
	if asJSON {
		return protoJSON(cmd.OutOrStdout(), res)
	}
	return printWorkers(cmd.OutOrStdout(), res.GetWorkers())
}

func printWorkers(w io.Writer, workers []*kvscoutv1.Worker) error {
	if len(workers) == 0 {
		_, err := fmt.Fprintln(w, "no workers")
		return err
	}
	t := newTable(w, "WORKER", "RANK", "ROLE", "MODEL", "ENGINE", "STATE", "HISTORY", "BLOCK", "EVENTS", "LABELS", "ERROR")
	for _, worker := range workers {
		spec := worker.GetSpec()
		for _, s := range worker.GetSources() {
			history := "incomplete"
			if s.GetHistoryComplete() {
				history = "complete"
			}
			t.row(spec.GetWorkerId(), s.GetRank(), roleWord(spec.GetRole()), orDash(spec.GetModel()), spec.GetEngine(),
				freshWords(s.GetFreshness()), history, numbers(s.GetBlockSizes()), orElse(s.GetEventEndpoint(), "pushed"),
				labels(spec.GetLabels()), orDash(s.GetError()))
		}
	}
	return t.flush()
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func numbers(list []uint32) string {
	return orDash(strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]"))
}

func labels(m map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, k+"="+m[k])
	}
	return orDash(strings.Join(parts, ","))
}

// addOptions are the settings of `kvscout workers add`.
type addOptions struct {
	clientOptions
	sources, aliases, adapters []string
	labels, urls               []string
	role                       string
	ranks                      uint32
	json                       bool
}

func newWorkersAdd() *cobra.Command {
	var o addOptions
	cmd := &cobra.Command{
		Use:   "add --source SPEC | --url ID=URL",
		Short: "Make a server listen to workers",
		Long: `Make a server listen to workers: one for each --source, which describes its rank 0, and one for each --url, the base of
its serving port, at which the server asks it for all the rest. A worker that is known already under another description is
replaced; ranks that are described otherwise drop what they held.

` + specHelp,
		Example: `  kvscout workers add --source id=w0,engine=vllm,model=qwen3,events=tcp://10.0.0.7:5557,replay=tcp://10.0.0.7:5558
  kvscout workers add --source id=w1,engine=sglang,model=qwen3,events=tcp://10.0.0.8:5557 --ranks 4 --role prefill --label zone=a
  kvscout workers add --url w2=http://10.0.0.9:8000`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return addWorkers(cmd, &o) },
	}
	f := cmd.Flags()
	o.clientOptions.register(f)
	f.StringArrayVar(&o.sources, "source", nil, "`SPEC` of the worker; may be repeated (default: none)")
	f.StringArrayVar(&o.urls, "url", nil, "`ID=URL` of a worker that is asked about itself at http://HOST:PORT; may be repeated (default: none)")
	f.StringArrayVar(&o.aliases, "alias", nil, "another `NAME` of the model; may be repeated (default: none)")
	f.StringArrayVar(&o.adapters, "adapter", nil, "`NAME` of a LoRA adapter that it serves, known before blocks of it are held; may be repeated (default: none)")
	f.StringArrayVar(&o.labels, "label", nil, "label `KEY=VALUE`, shown and not interpreted; may be repeated (default: none)")
	f.StringVar(&o.role, "role", "", "role of the workers: prefill, decode or both (default: not stated, serves both)")
	f.Uint32Var(&o.ranks, "ranks", 1, "data-parallel ranks of the worker of each --source; rank r publishes on the ports + r")
	f.BoolVar(&o.json, "json", false, "print each answer's JSON, one a line, and nothing else")
	return cmd
}

// specs makes the descriptions to send.
func (o *addOptions) specs() ([]*kvscoutv1.WorkerSpec, error) {
	if len(o.sources)+len(o.urls) == 0 {
		return nil, misuse("give at least one --source or --url")
	}
	sources, err := parseSources(o.sources)
	if err != nil {
		return nil, usageError{err}
	}
	role, err := parseRole(o.role)
	if err != nil {
		return nil, err
	}
	tags := make(map[string]string)
	for _, l := range o.labels {
		key, value, ok := strings.Cut(l, "=")
		if !ok || key == "" {
			return nil, misuse("label %q is not KEY=VALUE", l)
		}
		tags[key] = value
	}
	var out []*kvscoutv1.WorkerSpec
	for _, s := range sources {
		if s.Rank != 0 {
			return nil, misuse("source %s: describe rank 0 and give --ranks", s.ID())
		}
		out = append(out, workerSpec(s, o.ranks))
	}
	for _, u := range o.urls {
		id, url, ok := strings.Cut(u, "=")
		if !ok || id == "" {
			return nil, misuse("url %q is not ID=URL", u)
		}
		out = append(out, &kvscoutv1.WorkerSpec{WorkerId: id, Url: url})
	}
	for _, spec := range out {
		spec.Role, spec.Labels, spec.ModelAliases, spec.Adapters = role, tags, o.aliases, o.adapters
	}
	return out, nil
}

func addWorkers(cmd *cobra.Command, o *addOptions) error {
	specs, err := o.specs()
	if err != nil {
		return err
	}
	c, err := o.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	var added []*kvscoutv1.Worker
	for _, spec := range specs {
		res, err := c.RegisterWorker(cmd.Context(), &kvscoutv1.RegisterWorkerRequest{Worker: spec})
		if err != nil {
			return fmt.Errorf("worker %q: %w", spec.GetWorkerId(), err)
		}
		added = append(added, res.GetWorker())
		if o.json {
			if err := protoJSON(cmd.OutOrStdout(), res); err != nil {
				return err
			}
		} else if res.GetReplaced() {
			warn(cmd.ErrOrStderr(), "worker %q was replaced; ranks that are described otherwise dropped what they held", spec.GetWorkerId())
		}
	}
	if o.json {
		return nil
	}
	return printWorkers(cmd.OutOrStdout(), added)
}

func newWorkersRemove() *cobra.Command {
	var o clientOptions
	var rank int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "remove ID",
		Short: "Make a server forget a worker or one rank of it",
		Long: `Make a server forget a worker, or one rank of it. From then on no answer credits it. The command exits with 1 if the
server does not know it.`,
		Example: `  kvscout workers remove w0
  kvscout workers remove w0 --rank 1`,
		Args: oneArg("worker id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			only, err := parseRank(rank)
			if err != nil {
				return err
			}
			return removeWorker(cmd, &o, &kvscoutv1.DeregisterWorkerRequest{WorkerId: args[0], Rank: only}, asJSON)
		},
	}
	o.register(cmd.Flags())
	cmd.Flags().IntVar(&rank, "rank", -1, "only this rank; -1 is the whole worker")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer's JSON and nothing else")
	return cmd
}

func removeWorker(cmd *cobra.Command, o *clientOptions, req *kvscoutv1.DeregisterWorkerRequest, asJSON bool) error {
	res, err := call(cmd.Context(), o, req, (*client.Client).DeregisterWorker)
	if err != nil {
		return err
	}
	who := fmt.Sprintf("worker %q", req.GetWorkerId())
	if req.Rank != nil {
		who = fmt.Sprintf("rank %d of %s", req.GetRank(), who)
	}
	if asJSON {
		err = protoJSON(cmd.OutOrStdout(), res)
	} else if res.GetKnown() {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "removed %s\n", who)
	}
	if err == nil && !res.GetKnown() {
		err = fmt.Errorf("%s is not known", who)
	}
	return err
}

// specHelp explains the form of --source.
const specHelp = `SPEC is key=value,key=value with the keys
  id              worker id, the one that callers of Score use (required)
  engine          vllm, sglang or trtllm (required)
  model           served model name
  events          ZMQ endpoint of the events, tcp://HOST:PORT or ipc://PATH; a host of * is bound and the engine dials;
                  for trtllm also http://HOST:PORT/kv_cache_events, which is polled and tells of all ranks
  replay          ZMQ endpoint of the replay socket
  rank            data-parallel rank (0)
  block-size      tokens per block, until the stream tells its own
  topic           topic prefix to subscribe to (all)
  version         engine version, for people
  speculative     eagle: vLLM drops the last matched block
  eagle           true: SGLang keys its tree by pairs of tokens
  reuse-reports   true: stores of held blocks repeat them and are no copies
  hash-format     dynamo: SGLang's hashes cover the namespace
  unpublished     what the engine does without telling: sliding_window, recurrent_state, namespace, joined by +`
