package scorerpc

import (
	"context"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/scorer"
	"github.com/kvscout/kvscout/scorer/routed"
)

func keyOf(src events.Source) routed.Key { return routed.Key{Worker: src.Worker, Rank: src.Rank} }

// explain says of each listed source that holds anything what its groups hold, and why the match ended.
func (s *Service) explain(ctx context.Context, q *indexer.Query, listed []scorer.Ranked) (map[routed.Key]*kvscoutv1.Explanation, error) {
	wanted := make(map[routed.Key]bool, len(listed))
	for i := range listed {
		wanted[keyOf(listed[i].Source)] = listed[i].BlockSize > 0 && listed[i].Source.Model == q.Model
	}
	list, err := s.index.Explain(ctx, *q)
	if err != nil {
		return nil, err
	}
	out := make(map[routed.Key]*kvscoutv1.Explanation)
	for _, e := range list {
		if wanted[keyOf(e.Source)] {
			out[keyOf(e.Source)] = explanationOf(e)
		}
	}
	return out, nil
}

func explanationOf(e indexer.Explained) *kvscoutv1.Explanation {
	out := new(kvscoutv1.Explanation)
	for _, g := range e.Groups {
		h := &kvscoutv1.GroupHolding{
			Kind: g.Spec.String(), BlockSize: indexrpc.Count(g.BlockSize), Window: indexrpc.Count(g.Window),
			LeadingBlocks: indexrpc.Count(g.Leading), End: kvscoutv1.MatchEnd(g.End) + 1,
		}
		if g.ID >= 0 {
			id := indexrpc.Count(g.ID)
			h.Group = &id
		}
		for _, r := range g.Runs {
			h.Runs = append(h.Runs, &kvscoutv1.BlockRun{
				Tier: indexrpc.TierOf(r.Tier), FirstBlock: indexrpc.Count(r.First), Blocks: indexrpc.Count(r.Blocks),
			})
		}
		out.Groups = append(out.Groups, h)
	}
	return out
}
