package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/client"
)

// reportOptions are what both reports say.
type reportOptions struct {
	clientOptions
	worker, score string
	rank          uint32
	json          bool
}

func (o *reportOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	o.clientOptions.register(f)
	f.StringVar(&o.worker, "worker", "", "worker `ID` (default: none, must be given)")
	f.Uint32Var(&o.rank, "rank", 0, "rank of the worker (default 0)")
	f.StringVar(&o.score, "score-id", "", "`ID` of the answer, which kvscout score --remember prints (default: none)")
	f.BoolVar(&o.json, "json", false, "print the answer's JSON and nothing else")
}

func newReport() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Tell a server where a request was sent, or what its engine made of it",
		Long: `Tell a server where a request was sent, so that the worker is credited at once, or what the engine says of it, which the
server compares with its prediction. Routers do this by ReportRouted and ReportOutcome; the commands are to try it out.`,
		Example: `  kvscout report routed --worker w0 --score-id ID
  kvscout report outcome --worker w0 --score-id ID --prompt-tokens 1024 --cached-tokens 960`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newReportRouted(), newReportOutcome())
	return cmd
}

func newReportRouted() *cobra.Command {
	var o reportOptions
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:     "routed",
		Short:   "Credit a worker with a request that was sent to it",
		Long:    "Credit a worker with the prompt of an answer, until its events confirm that or --ttl has passed.",
		Example: "  kvscout report routed --worker w0 --score-id ID --ttl 5s",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			res, err := call(cmd.Context(), &o.clientOptions, &kvscoutv1.ReportRoutedRequest{
				WorkerId: o.worker, Rank: o.rank, ScoreId: o.score, Ttl: durationpb.New(ttl),
			}, (*client.Client).ReportRouted)
			if err != nil {
				return err
			}
			if o.json {
				return protoJSON(cmd.OutOrStdout(), res)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "credited %d tokens\n", res.GetCreditedTokens())
			return err
		},
	}
	o.register(cmd)
	cmd.Flags().DurationVar(&ttl, "ttl", 10*time.Second, "how long the worker is credited at most, up to 5m")
	return cmd
}

func newReportOutcome() *cobra.Command {
	var o reportOptions
	var prompt, cached uint32
	cmd := &cobra.Command{
		Use:   "outcome",
		Short: "Compare what an engine took from its cache with the prediction",
		Long: `Compare what an engine took from its cache (usage.prompt_tokens_details.cached_tokens) with the prediction of an answer, and
print how accurate the worker's predictions are.`,
		Example: "  kvscout report outcome --worker w0 --score-id ID --prompt-tokens 1024 --cached-tokens 960",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			res, err := call(cmd.Context(), &o.clientOptions, &kvscoutv1.ReportOutcomeRequest{
				WorkerId: o.worker, Rank: o.rank, ScoreId: o.score, PromptTokens: prompt, CachedTokens: cached,
			}, (*client.Client).ReportOutcome)
			if err != nil {
				return err
			}
			if o.json {
				return protoJSON(cmd.OutOrStdout(), res)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "predicted %d, cached %d; %s\n", res.GetPredictedTokens(), cached, accuracyWords(res.GetAccuracy()))
			return err
		},
	}
	o.register(cmd)
	cmd.Flags().Uint32Var(&prompt, "prompt-tokens", 0, "tokens of the prompt as the engine counted them (default: none, must be given)")
	cmd.Flags().Uint32Var(&cached, "cached-tokens", 0, "tokens that the engine took from its cache (default 0)")
	return cmd
}
