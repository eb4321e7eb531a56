package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/client"
)

// targetOptions name a worker or a rank of it.
type targetOptions struct {
	worker string
	rank   int
}

func (o *targetOptions) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.worker, "worker", "", "worker `ID` (default: none)")
	cmd.Flags().IntVar(&o.rank, "rank", -1, "only this rank of the worker; -1 is every rank")
}

// target is nil without --worker.
func (o *targetOptions) target() (*kvscoutv1.WorkerTarget, error) {
	rank, err := parseRank(o.rank)
	switch {
	case err != nil:
		return nil, err
	case o.worker == "" && rank != nil:
		return nil, misuse("rank belongs to worker")
	case o.worker == "":
		return nil, nil
	}
	return &kvscoutv1.WorkerTarget{WorkerId: o.worker, Rank: rank}, nil
}

func newDump() *cobra.Command {
	var o clientOptions
	var of targetOptions
	cmd := &cobra.Command{
		Use:   "dump",
		Short: "Print what every worker holds, as JSON lines",
		Long: `Print what every worker holds, as JSON lines: each line is a part of what one rank of a worker holds, block by block. Salts
and tokens are in none of it. --timeout bounds the whole.`,
		Example: `  kvscout dump > index.jsonl
  kvscout dump --worker w0 --rank 1 | jq '.blocks | length'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDump(cmd, &o, &of) },
	}
	o.register(cmd.Flags())
	of.register(cmd)
	return cmd
}

func runDump(cmd *cobra.Command, o *clientOptions, of *targetOptions) error {
	target, err := of.target()
	if err != nil {
		return err
	}
	c, err := o.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), o.timeout)
	defer cancel()
	stream, err := c.Dump(ctx, &kvscoutv1.DumpRequest{Worker: target})
	if err != nil {
		return err
	}
	defer stream.Close()
	for stream.Receive() {
		if err := protoJSON(cmd.OutOrStdout(), stream.Msg()); err != nil {
			cancel() // so that Close need not wait for the server
			return err
		}
	}
	return stream.Err()
}

// clearOptions are the settings of `kvscout clear`.
type clearOptions struct {
	clientOptions
	targetOptions
	scope     scopeOptions // of which only the namespace is used
	namespace bool
	json      bool
}

func newClear() *cobra.Command {
	var o clearOptions
	cmd := &cobra.Command{
		Use:   "clear",
		Short: "Make a server forget what a worker holds, or what is held in a namespace",
		Long: `Make a server forget what a worker holds (--worker), or what every worker holds in one namespace of a model (--namespace, with
--model, --cache-salt and --adapter; without the last two it is the common one). The engines are not told and may hold it
still, so answers about these workers are lower bounds until an engine clears its cache.`,
		Example: `  kvscout clear --worker w0
  KVSCOUT_CACHE_SALT=tenant-7 kvscout clear --namespace --model qwen3`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runClear(cmd, &o) },
	}
	f := cmd.Flags()
	o.clientOptions.register(f)
	o.targetOptions.register(cmd)
	f.BoolVar(&o.namespace, "namespace", false, "forget a namespace instead of a worker")
	f.StringVar(&o.scope.model, "model", "", "served model name of --namespace (default: the only one the server knows)")
	f.StringVar(&o.scope.adapter, "adapter", "", "LoRA adapter of --namespace (default: none)")
	f.StringVar(&o.scope.cacheSalt, "cache-salt", "", "cache salt of --namespace; others see it in the process list, so prefer KVSCOUT_CACHE_SALT or the next flag (default: none)")
	f.StringVar(&o.scope.cacheSaltFile, "cache-salt-file", "", "`FILE` that holds the cache salt; a newline at its end is left out (default: none)")
	f.BoolVar(&o.json, "json", false, "print the answer's JSON and nothing else")
	return cmd
}

func (o *clearOptions) request() (*kvscoutv1.ClearRequest, error) {
	target, err := o.target()
	if err != nil {
		return nil, err
	}
	if (target != nil) == o.namespace {
		return nil, misuse("give exactly one of --worker and --namespace")
	}
	if target != nil {
		return &kvscoutv1.ClearRequest{Worker: target}, nil
	}
	salt, err := o.scope.salt()
	return &kvscoutv1.ClearRequest{
		Namespace: &kvscoutv1.NamespaceTarget{Model: o.scope.model, CacheSalt: salt, Adapter: o.scope.adapter},
	}, err
}

func runClear(cmd *cobra.Command, o *clearOptions) error {
	req, err := o.request()
	if err != nil {
		return err
	}
	res, err := call(cmd.Context(), &o.clientOptions, req, (*client.Client).Clear)
	if err != nil {
		return err
	}
	if o.json {
		return protoJSON(cmd.OutOrStdout(), res)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "forgot %d blocks of %d sources\n", res.GetBlocks(), res.GetSources())
	return err
}
