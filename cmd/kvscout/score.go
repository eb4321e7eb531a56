package main

import (
	"fmt"
	"io"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// scoreOptions are the settings of `kvscout score`.
type scoreOptions struct {
	clientOptions
	requestOptions
	candidates []string
	role       string
	json       bool
}

func newScore() *cobra.Command {
	var o scoreOptions
	cmd := &cobra.Command{
		Use:   "score",
		Short: "Ask a server which workers hold how much of a prompt",
		Long: `Ask a running server which workers hold how much of a prompt, best first.

The prompt is given as token ids (--tokens), as the HTTP body that the engine would get (--body), as text (--prompt),
or as block keys (--hashes); exactly one of them.

Columns: HELD is what the worker holds on its device, REUSABLE what the engine would skip of it, both in tokens from
the prompt's first; TIERS is what each tier adds; BOUND says whether the numbers are facts.`,
		Example: `  kvscout score --model qwen3 --tokens ids.json
  echo '[1, 2, 3]' | kvscout score --model qwen3 --tokens - --json
  kvscout score --server unix:///run/kvscout.sock --body chat.json --candidate w0 --candidate w1
  kvscout score --model qwen3 --prompt "Once upon a time"`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runScore(cmd, &o) },
	}
	f := cmd.Flags()
	o.clientOptions.register(f)
	o.requestOptions.register(f)
	f.StringArrayVar(&o.candidates, "candidate", nil, "worker `ID` to rate; may be repeated (default: every worker of the model)")
	f.StringVar(&o.role, "role", "", "only workers of this role: prefill, decode or both (default: any)")
	f.BoolVar(&o.json, "json", false, "print the answer's JSON and nothing else")
	return cmd
}

func runScore(cmd *cobra.Command, o *scoreOptions) error {
	req, err := o.request(cmd.InOrStdin(), cmd.Flags().Changed)
	if err != nil {
		return err
	}
	if req.Role, err = parseRole(o.role); err != nil {
		return err
	}
	req.Candidates = o.candidates
	c, err := o.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := c.bounded(cmd.Context())
	defer cancel()
	res, err := c.Score(ctx, connect.NewRequest(req))
	if err != nil {
		return err
	}
	if o.json {
		return protoJSON(cmd.OutOrStdout(), res.Msg)
	}
	for _, w := range res.Msg.GetWarnings() {
		warn(cmd.ErrOrStderr(), "warning: %s", w)
	}
	return printScores(cmd.OutOrStdout(), res.Msg)
}

func printScores(w io.Writer, m *kvscoutv1.ScoreResponse) error {
	fmt.Fprintf(w, "prompt %d tokens, index version %d", m.GetPromptTokens(), m.GetIndexVersion())
	if r := m.GetRender(); r != nil {
		fmt.Fprintf(w, ", rendered by %s in %v", r.GetRenderer(), r.GetDuration().AsDuration())
	}
	fmt.Fprintln(w)
	if len(m.GetWorkers()) == 0 {
		_, err := fmt.Fprintln(w, "no workers")
		return err
	}
	t := newTable(w, "WORKER", "RANK", "SCORE", "HELD", "REUSABLE", "TIERS", "BOUND", "FRESHNESS")
	for _, s := range m.GetWorkers() {
		if !s.GetKnown() {
			t.row(s.GetWorkerId(), "-", "-", "-", "-", "-", boundWords(s.GetBound()), "not known")
			continue
		}
		t.row(s.GetWorkerId(), s.GetRank(), fmt.Sprintf("%.3f", s.GetScore()), s.GetHeldTokens(), s.GetReusableTokens(),
			tierTokens(s.GetTiers()), boundWords(s.GetBound()), freshWords(s.GetFreshness()))
	}
	return t.flush()
}

func tierTokens(tiers []*kvscoutv1.TierTokens) string {
	var parts []string
	for _, t := range tiers {
		parts = append(parts, fmt.Sprintf("%s %d", tierWord(t.GetTier()), t.GetTokens()))
	}
	return orDash(strings.Join(parts, ", "))
}
