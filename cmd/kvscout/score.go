package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/client"
)

// scoreOptions are the settings of `kvscout score`.
type scoreOptions struct {
	clientOptions
	requestOptions
	candidates []string
	role       string
	weights    string
	maxWorkers uint32
	explain    bool
	remember   bool
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
the prompt's first; TIERS is what each tier adds; BOUND says whether the numbers are facts. --explain adds what each
KV-cache group holds and why the match ended there. --remember prints the id by which "kvscout report" names the answer.`,
		Example: `  kvscout score --model qwen3 --tokens ids.json
  echo '[1, 2, 3]' | kvscout score --model qwen3 --tokens - --json
  kvscout score --server unix:///run/kvscout.sock --body chat.json --candidate w0 --candidate w1
  kvscout score --model qwen3 --prompt "Once upon a time"
  kvscout score --model qwen3 --tokens ids.json --role prefill --weights device=1,host=0.5 --max-workers 3 --explain`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runScore(cmd, &o) },
	}
	f := cmd.Flags()
	o.clientOptions.register(f)
	o.requestOptions.register(f)
	f.StringArrayVar(&o.candidates, "candidate", nil, "worker `ID` to rate; may be repeated (default: every worker of the model)")
	f.StringVar(&o.role, "role", "", "only workers of this role: prefill, decode or both (default: any)")
	f.StringVar(&o.weights, "weights", "", "what a token is worth by tier, as `TIER=WEIGHT,...`, each 0 to 1; the tiers are device, host, disk, shared, unknown (default: the server's)")
	f.Uint32Var(&o.maxWorkers, "max-workers", 0, "list at most so many workers, the best; 0 is all")
	f.BoolVar(&o.explain, "explain", false, "tell what each KV-cache group of a worker holds, and why the match ended")
	f.BoolVar(&o.remember, "remember", false, "have the server keep the answer, so that it can be reported on, and print its id")
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
	if req.TierWeights, err = parseWeights(o.weights); err != nil {
		return err
	}
	req.Candidates, req.MaxWorkers, req.Explain, req.Remember = o.candidates, o.maxWorkers, o.explain, o.remember
	res, err := call(cmd.Context(), &o.clientOptions, req, (*client.Client).Score)
	if err != nil {
		return err
	}
	if o.json {
		return protoJSON(cmd.OutOrStdout(), res)
	}
	for _, w := range res.GetWarnings() {
		warn(cmd.ErrOrStderr(), "warning: %s", w)
	}
	return printScores(cmd.OutOrStdout(), res)
}

func printScores(w io.Writer, m *kvscoutv1.ScoreResponse) error {
	fmt.Fprintf(w, "prompt %d tokens, index version %d", m.GetPromptTokens(), m.GetIndexVersion())
	if r := m.GetRender(); r != nil {
		fmt.Fprintf(w, ", rendered by %s in %v", r.GetRenderer(), r.GetDuration().AsDuration())
	}
	if m.GetScoreId() != "" {
		fmt.Fprintf(w, ", score id %s", m.GetScoreId())
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
			tierTokens(s), boundWords(s.GetBound()), freshWords(s.GetFreshness()))
	}
	if err := t.flush(); err != nil {
		return err
	}
	return printAside(w, m)
}

// printAside tells what stands beside the table.
func printAside(w io.Writer, m *kvscoutv1.ScoreResponse) error {
	if n := m.GetWorkersOmitted(); n > 0 {
		fmt.Fprintf(w, "and %d more workers\n", n)
	}
	if o := m.GetBestOutside(); o != nil {
		fmt.Fprintf(w, "best outside: %s rank %d, held %d\n", o.GetWorkerId(), o.GetRank(), o.GetHeldTokens())
	}
	for _, s := range m.GetWorkers() {
		if s.GetFlagged() != nil {
			fmt.Fprintf(w, "flagged: %s rank %d, %s\n", s.GetWorkerId(), s.GetRank(), accuracyWords(s.GetFlagged()))
		}
		for _, g := range s.GetExplanation().GetGroups() {
			fmt.Fprintf(w, "explained: %s rank %d, %s\n", s.GetWorkerId(), s.GetRank(), groupWords(g))
		}
	}
	return nil
}

func tierTokens(s *kvscoutv1.WorkerScore) string {
	var parts []string
	for _, t := range s.GetTiers() {
		parts = append(parts, fmt.Sprintf("%s %d", tierWord(t.GetTier()), t.GetTokens()))
	}
	if n := s.GetPredictedTokens(); n > 0 {
		parts = append(parts, fmt.Sprintf("predicted %d", n))
	}
	return orDash(strings.Join(parts, ", "))
}
