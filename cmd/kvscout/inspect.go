package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/client"
)

// inspectOptions are the settings of `kvscout inspect`.
type inspectOptions struct {
	clientOptions
	scopeOptions
	worker string
	rank   int
	json   bool
}

func newInspect() *cobra.Command {
	var o inspectOptions
	cmd := &cobra.Command{
		Use:   "inspect",
		Short: "Look into a server's index: who holds a prompt, or what a worker holds",
		Long: `Look into a server's index. With --worker: the counters of a worker and the scopes in which it holds blocks. With --tokens
or --hashes: every worker that holds the beginning of the prompt, and on which tiers, block by block.`,
		Example: `  kvscout inspect --worker w0 --rank 1
  kvscout inspect --model qwen3 --tokens ids.json
  kvscout inspect --model qwen3 --hashes keys.json --block-size 16 --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runInspect(cmd, &o) },
	}
	f := cmd.Flags()
	o.clientOptions.register(f)
	o.scopeOptions.register(f)
	f.StringVar(&o.worker, "worker", "", "worker `ID` to look into (default: none)")
	f.IntVar(&o.rank, "rank", -1, "only this rank of the worker; -1 is every rank")
	f.BoolVar(&o.json, "json", false, "print the answer's JSON and nothing else")
	return cmd
}

func (o *inspectOptions) request(stdin io.Reader) (*kvscoutv1.InspectRequest, error) {
	given := 0
	for _, s := range []string{o.worker, o.tokens, o.hashes} {
		if s != "" {
			given++
		}
	}
	if given != 1 {
		return nil, misuse("give exactly one of --worker, --tokens and --hashes, not %d of them", given)
	}
	rank, err := parseRank(o.rank)
	if err != nil {
		return nil, err
	}
	if o.worker != "" {
		return &kvscoutv1.InspectRequest{Worker: &kvscoutv1.WorkerTarget{WorkerId: o.worker, Rank: rank}}, nil
	}
	if rank != nil {
		return nil, misuse("rank belongs to worker")
	}
	salt, err := o.salt()
	if err != nil {
		return nil, err
	}
	target := &kvscoutv1.PromptTarget{Model: o.model, Adapter: o.adapter, CacheSalt: salt, ExtraKey: o.extraKey}
	if target.Tokens, err = o.readTokens(stdin); err != nil {
		return nil, err
	}
	target.BlockHashes, err = o.readHashes(stdin)
	return &kvscoutv1.InspectRequest{Prompt: target}, err
}

func runInspect(cmd *cobra.Command, o *inspectOptions) error {
	req, err := o.request(cmd.InOrStdin())
	if err != nil {
		return err
	}
	res, err := call(cmd.Context(), &o.clientOptions, req, (*client.Client).Inspect)
	switch {
	case err != nil:
		return err
	case o.json:
		return protoJSON(cmd.OutOrStdout(), res)
	case o.worker != "":
		return printInspection(cmd.OutOrStdout(), res)
	default:
		return printHolders(cmd.OutOrStdout(), res)
	}
}

func printInspection(w io.Writer, m *kvscoutv1.InspectResponse) error {
	var stats []*kvscoutv1.SourceStats
	for _, s := range m.GetSources() {
		stats = append(stats, s.GetStats())
	}
	if err := printSources(w, stats); err != nil {
		return err
	}
	fmt.Fprintln(w)
	t := newTable(w, "RANK", "MODEL", "BLOCK SIZE", "ADAPTER", "SALTED", "EXTRA", "BLOCKS")
	for _, s := range m.GetSources() {
		for _, c := range s.GetScopes() {
			t.row(s.GetStats().GetRank(), orDash(c.GetModel()), c.GetBlockSize(), orDash(c.GetAdapter()), c.GetSalted(), c.GetExtra(), c.GetBlocks())
		}
		if n := s.GetScopesOmitted(); n > 0 {
			t.row(s.GetStats().GetRank(), fmt.Sprintf("%d more scopes", n))
		}
	}
	return t.flush()
}

func printHolders(w io.Writer, m *kvscoutv1.InspectResponse) error {
	fmt.Fprintf(w, "prompt %d tokens, index version %d\n", m.GetPrompt().GetPromptTokens(), m.GetIndexVersion())
	if len(m.GetPrompt().GetHolders()) == 0 {
		_, err := fmt.Fprintln(w, "nobody holds its first block")
		return err
	}
	t := newTable(w, "WORKER", "RANK", "BLOCK SIZE", "BLOCKS", "BOUND", "FRESHNESS")
	for _, h := range m.GetPrompt().GetHolders() {
		var runs []string
		for _, r := range h.GetRuns() {
			runs = append(runs, fmt.Sprintf("%s %d..%d", tierWord(r.GetTier()), r.GetFirstBlock(), r.GetFirstBlock()+r.GetBlocks()-1))
		}
		t.row(h.GetWorkerId(), h.GetRank(), h.GetBlockSize(), orDash(strings.Join(runs, ", ")), boundWords(h.GetBound()), freshWords(h.GetFreshness()))
	}
	return t.flush()
}
