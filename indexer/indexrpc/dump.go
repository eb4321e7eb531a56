package indexrpc

import (
	"context"
	"time"

	"connectrpc.com/connect"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/ingest"
)

// maxDumpBlocks bounds the blocks of one message of a Dump.
const maxDumpBlocks = 4096

// Dump sends what every source holds.
func (s *Service) Dump(ctx context.Context, req *connect.Request[kvscoutv1.DumpRequest], stream *connect.ServerStream[kvscoutv1.DumpResponse]) error {
	list := s.index.Ledgers()
	if req.Msg.GetWorker() != nil {
		var err error
		if list, err = s.targets(req.Msg.GetWorker()); err != nil {
			return Classify(err).Connect()
		}
	}
	if !s.streams.Enter() {
		return Overloaded("more than %d streams", s.opts.MaxStreams).Connect()
	}
	defer s.streams.Leave()
	for _, l := range list {
		if err := dump(ctx, l, stream); err != nil {
			return err
		}
	}
	return nil
}

// dump sends one source. It errs as a handler does.
func dump(ctx context.Context, l *indexer.Ledger, stream *connect.ServerStream[kvscoutv1.DumpResponse]) error {
	fresh, complete := l.Freshness(), l.HistoryComplete() // first: the blocks are then no older
	blocks := l.Dump()
	for {
		if ctx.Err() != nil {
			return Classify(context.Cause(ctx)).Connect()
		}
		part := blocks[:min(len(blocks), maxDumpBlocks)]
		blocks = blocks[len(part):]
		out := &kvscoutv1.DumpResponse{
			WorkerId: l.Source().Worker, Rank: Count(l.Source().Rank), Freshness: FreshnessOf(fresh, time.Now()), HistoryComplete: complete,
		}
		for i := range part {
			out.Blocks = append(out.Blocks, dumpBlockOf(&part[i]))
		}
		if err := stream.Send(out); err != nil {
			return err // connect's own: the caller is gone
		}
		if len(blocks) == 0 {
			return nil
		}
	}
}

func dumpBlockOf(b *indexer.HeldBlock) *kvscoutv1.DumpBlock {
	sc := b.In()
	out := &kvscoutv1.DumpBlock{
		EngineHash: b.Hash.Lo, Model: sc.Model, BlockSize: Count(sc.BlockSize), Adapter: sc.Adapter, Salted: sc.Salt != "",
	}
	for t := range events.Tier(events.TierCount) {
		if b.On(t) {
			out.Tiers = append(out.Tiers, TierOf(t))
		}
	}
	return out
}

// targets are the ledgers of a worker or of one rank of it. It errs with an *Error.
func (s *Service) targets(target *kvscoutv1.WorkerTarget) ([]*indexer.Ledger, error) {
	id := target.GetWorkerId()
	if _, ok := s.fleet.Worker(id); !ok {
		return nil, Failf(ReasonUnknownWorker, "%w: %.100q", ingest.ErrUnknownWorker, id)
	}
	var out []*indexer.Ledger
	for _, l := range s.ledgers()[id] {
		if target.Rank == nil || int(target.GetRank()) == l.Source().Rank {
			out = append(out, l)
		}
	}
	if len(out) == 0 && target.Rank != nil {
		return nil, Failf(ReasonUnknownRank, "%w: %.100s has no rank %d", ingest.ErrUnknownRank, id, target.GetRank())
	}
	return out, nil
}
