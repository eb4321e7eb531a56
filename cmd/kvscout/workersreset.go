package main

import (
	"fmt"

	"github.com/spf13/cobra"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/client"
)

func newWorkersReset() *cobra.Command {
	var o clientOptions
	var rank int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "reset ID",
		Short: "Make a server forget what a worker or one rank of it holds",
		Long: `Make a server forget what a worker, or one rank of it, holds: after its engine's cache was emptied by hand, which an idle
engine tells only with its next step. The command exits with 1 if the server does not know it.`,
		Example: `  kvscout workers reset w0
  kvscout workers reset w0 --rank 1`,
		Args: oneArg("worker id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			only, err := parseRank(rank)
			if err != nil {
				return err
			}
			return resetWorker(cmd, &o, &kvscoutv1.ResetWorkerRequest{WorkerId: args[0], Rank: only}, asJSON)
		},
	}
	o.register(cmd.Flags())
	cmd.Flags().IntVar(&rank, "rank", -1, "only this rank; -1 is the whole worker")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer's JSON and nothing else")
	return cmd
}

func resetWorker(cmd *cobra.Command, o *clientOptions, req *kvscoutv1.ResetWorkerRequest, asJSON bool) error {
	res, err := call(cmd.Context(), o, req, (*client.Client).ResetWorker)
	if err != nil {
		return err
	}
	if asJSON {
		err = protoJSON(cmd.OutOrStdout(), res)
	} else if res.GetKnown() {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "reset worker %q\n", req.GetWorkerId())
	}
	if err == nil && !res.GetKnown() {
		err = fmt.Errorf("worker %q or its rank is not known", req.GetWorkerId())
	}
	return err
}
