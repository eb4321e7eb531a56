package indexrpc

import (
	"cmp"
	"context"
	"slices"
	"time"

	"connectrpc.com/connect"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer"
)

// maxScopes bounds the scopes listed for one source: salts can make any number of them.
const maxScopes = 256

// Inspect shows who holds a prompt, or what a worker's state is.
func (s *Service) Inspect(ctx context.Context, req *connect.Request[kvscoutv1.InspectRequest]) (*connect.Response[kvscoutv1.InspectResponse], error) {
	return answer(s.inspect(ctx, req.Msg))
}

func (s *Service) inspect(ctx context.Context, req *kvscoutv1.InspectRequest) (*kvscoutv1.InspectResponse, error) {
	// Read first: the answer is at least as new as its version says.
	out := &kvscoutv1.InspectResponse{IndexVersion: s.index.Version()}
	var err error
	switch {
	case req.GetPrompt() != nil && req.GetWorker() != nil:
		return nil, Failf(ReasonTwoTargets, "both prompt and worker are set")
	case req.GetPrompt() != nil:
		out.Prompt, err = s.holders(ctx, req.GetPrompt())
	case req.GetWorker().GetWorkerId() != "":
		out.Sources, err = s.inspectWorker(req.GetWorker())
	default:
		return nil, Failf(ReasonNoTarget, "neither a prompt nor a worker with an id is set")
	}
	return out, err
}

func (s *Service) holders(ctx context.Context, target *kvscoutv1.PromptTarget) (*kvscoutv1.PromptHolders, error) {
	q, err := ReadPrompt(target, s.opts.MaxTokens)
	if err != nil {
		return nil, err
	}
	if err := Resolve(s.fleet, target.GetModel(), &q); err != nil {
		return nil, err
	}
	list, err := s.index.Holdings(ctx, q)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b indexer.Holding) int {
		return cmp.Or(
			cmp.Compare(heldTokens(b), heldTokens(a)),
			cmp.Compare(a.Source.Worker, b.Source.Worker),
			cmp.Compare(a.Source.Rank, b.Source.Rank),
		)
	})
	now := time.Now()
	out := &kvscoutv1.PromptHolders{PromptTokens: Count(q.Length())}
	for _, h := range list {
		out.Holders = append(out.Holders, holderOf(h, now))
	}
	return out, nil
}

// heldTokens is the length of the runs together, in tokens.
func heldTokens(h indexer.Holding) int {
	blocks := 0
	for _, r := range h.Runs {
		blocks += r.Blocks
	}
	return blocks * h.BlockSize
}

func holderOf(h indexer.Holding, now time.Time) *kvscoutv1.PromptHolder {
	out := &kvscoutv1.PromptHolder{
		WorkerId:  h.Source.Worker,
		Rank:      Count(h.Source.Rank),
		BlockSize: Count(h.BlockSize),
		Freshness: FreshnessOf(h.Freshness, now),
		Bound:     BoundOf(h.Bound),
	}
	for _, r := range h.Runs {
		out.Runs = append(out.Runs, &kvscoutv1.BlockRun{Tier: TierOf(r.Tier), FirstBlock: Count(r.First), Blocks: Count(r.Blocks)})
	}
	return out
}

func (s *Service) inspectWorker(target *kvscoutv1.WorkerTarget) ([]*kvscoutv1.SourceInspection, error) {
	list, err := s.targets(target)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	var out []*kvscoutv1.SourceInspection
	for _, l := range list {
		one := inspectionOf(l, now)
		if s.opts.Accuracy != nil {
			one.Stats.Accuracy = s.opts.Accuracy(l.Source().Worker, l.Source().Rank)
		}
		out = append(out, one)
	}
	return out, nil
}

func inspectionOf(l *indexer.Ledger, now time.Time) *kvscoutv1.SourceInspection {
	fresh := l.Freshness()
	st := l.Stats()
	scopes := l.Scopes()
	listed := scopes[:min(len(scopes), maxScopes)]
	out := &kvscoutv1.SourceInspection{
		Stats:         sourceStatsOf(l, &st, fresh, now),
		ScopesOmitted: Count(len(scopes) - len(listed)),
	}
	for _, sc := range listed {
		out.Scopes = append(out.Scopes, &kvscoutv1.ScopeStats{
			Model:     sc.Model,
			BlockSize: Count(sc.BlockSize),
			Adapter:   sc.Adapter,
			Salted:    sc.Salted,
			Blocks:    uint64(max(0, sc.Blocks)),
		})
	}
	return out
}
