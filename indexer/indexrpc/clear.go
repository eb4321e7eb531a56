package indexrpc

import (
	"context"

	"connectrpc.com/connect"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer"
)

// Clear forgets what a worker, a rank of it, or every worker in a namespace holds.
func (s *Service) Clear(_ context.Context, req *connect.Request[kvscoutv1.ClearRequest]) (*connect.Response[kvscoutv1.ClearResponse], error) {
	return answer(s.clear(req.Msg))
}

func (s *Service) clear(req *kvscoutv1.ClearRequest) (*kvscoutv1.ClearResponse, error) {
	out := new(kvscoutv1.ClearResponse)
	forget := func(list []*indexer.Ledger, how func(*indexer.Ledger) int) {
		for _, l := range list {
			if n := how(l); n > 0 {
				out.Sources++
				out.Blocks += uint64(n)
			}
		}
	}
	switch {
	case req.GetWorker() != nil && req.GetNamespace() != nil:
		return nil, Failf(ReasonTwoTargets, "both worker and namespace are set")
	case req.GetNamespace() != nil:
		ns := req.GetNamespace()
		model, adapter, err := s.fleet.Resolve(ns.GetModel())
		if err != nil {
			return nil, err
		}
		if ns.GetAdapter() != "" {
			adapter = ns.GetAdapter()
		}
		var of []*indexer.Ledger
		for _, l := range s.index.Ledgers() {
			if l.Source().Model == model {
				of = append(of, l)
			}
		}
		forget(of, func(l *indexer.Ledger) int {
			return l.ForgetNamespace(indexer.Namespace{Salt: ns.GetCacheSalt(), Adapter: adapter})
		})
	case req.GetWorker().GetWorkerId() != "":
		list, err := s.targets(req.GetWorker())
		if err != nil {
			return nil, err
		}
		forget(list, (*indexer.Ledger).Forget)
	default:
		return nil, Failf(ReasonNoTarget, "neither a worker with an id nor a namespace is set")
	}
	return out, nil
}
