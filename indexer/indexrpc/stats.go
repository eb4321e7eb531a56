package indexrpc

import (
	"context"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/discover"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/ingest"
)

const (
	defaultInterval = time.Second
	minInterval     = 10 * time.Millisecond
)

// GetStats returns every counter once.
func (s *Service) GetStats(context.Context, *connect.Request[kvscoutv1.GetStatsRequest]) (*connect.Response[kvscoutv1.GetStatsResponse], error) {
	return connect.NewResponse(&kvscoutv1.GetStatsResponse{Stats: s.Stats(time.Now())}), nil
}

// StreamStats sends the counters at once and then at each interval.
func (s *Service) StreamStats(ctx context.Context, req *connect.Request[kvscoutv1.StreamStatsRequest], stream *connect.ServerStream[kvscoutv1.StreamStatsResponse]) error {
	interval, err := readInterval(req.Msg.GetInterval())
	if err != nil {
		return Classify(err).Connect()
	}
	if !s.streams.Enter() {
		return Overloaded("more than %d streams of statistics", s.opts.MaxStreams).Connect()
	}
	defer s.streams.Leave()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if err := stream.Send(&kvscoutv1.StreamStatsResponse{Stats: s.Stats(time.Now())}); err != nil {
			return err // connect's own: the caller is gone
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return Classify(context.Cause(ctx)).Connect()
		}
	}
}

func readInterval(d *durationpb.Duration) (time.Duration, error) {
	if d == nil {
		return defaultInterval, nil
	}
	if err := d.CheckValid(); err != nil {
		return 0, Failf(ReasonBadInterval, "interval: %w", err)
	}
	switch v := d.AsDuration(); {
	case v == 0:
		return defaultInterval, nil
	case v < minInterval:
		return 0, Failf(ReasonBadInterval, "interval %v, want at least %v", v, minInterval)
	default:
		return v, nil
	}
}

// Stats returns every counter as of now. The caller owns what it returns.
func (s *Service) Stats(now time.Time) *kvscoutv1.Stats {
	x := s.index.Stats()
	out := &kvscoutv1.Stats{
		IndexVersion: x.Version,
		Uptime:       durationpb.New(now.Sub(s.opts.Start)),
		Scopes:       uint64(x.Scopes),
		Blocks:       uint64(x.Blocks),
		HolderBlocks: uint64(x.HolderBlocks),

		IndexBytes:    uint64(max(0, x.Bytes)),
		RetiredBytes:  uint64(max(0, x.Retired)),
		MaxIndexBytes: uint64(max(0, s.index.MaxBytes())),

		TopicMismatches:    s.fleet.TopicMismatches(),
		RefusedConnections: s.fleet.RefusedConnections(),
		Discovery:          discoveryOf(s.fleet.Discovery()),
	}
	for _, l := range s.index.Ledgers() {
		fresh := l.Freshness() // first: the counts are then no older than the batch that it names
		st := l.Stats()
		out.Handles += uint64(max(0, st.Handles))
		out.OrphansWaiting += uint64(st.OrphanStores)
		src := sourceStatsOf(l, &st, fresh, now)
		if s.opts.Accuracy != nil {
			src.Accuracy = s.opts.Accuracy(src.GetWorkerId(), l.Source().Rank)
		}
		out.Sources = append(out.Sources, src)
	}
	out.Readiness = s.readiness(out.Sources, now)
	if s.opts.ScoreStats != nil {
		out.Score = s.opts.ScoreStats()
	}
	if s.opts.LogStats != nil {
		out.Log = s.opts.LogStats()
	}
	if s.opts.RendererStats != nil {
		out.Renderers = s.opts.RendererStats()
	}
	if s.opts.AccessStats != nil {
		out.Access = s.opts.AccessStats()
	}
	if s.opts.Snapshot != nil {
		out.Snapshot = snapshotStatsOf(s.opts.Snapshot(), now)
	}
	return out
}

func snapshotStatsOf(k ingest.KeeperStats, now time.Time) *kvscoutv1.SnapshotStats {
	out := &kvscoutv1.SnapshotStats{
		Outcome:         k.Outcome,
		Error:           k.Why,
		RestoredSources: Count(k.Restored.Sources),
		RestoredWorkers: Count(k.Restored.Workers),
		WaitingSources:  Count(k.Restored.Waiting),
		Saves:           k.Saves,
		Failures:        k.Failures,
	}
	for reason, n := range k.Restored.Dropped {
		if out.DroppedSources == nil {
			out.DroppedSources = make(map[string]uint64)
		}
		out.DroppedSources[reason] = uint64(n)
	}
	if k.Outcome == ingest.OutcomeRestored {
		out.RestoredAge = durationpb.New(k.Age)
	}
	if !k.Saved.IsZero() {
		out.LastAge, out.LastTook = durationpb.New(max(0, now.Sub(k.Saved))), durationpb.New(k.Took)
		out.LastBytes, out.LastSources, out.LastSkipped = uint64(k.Bytes), Count(k.Sources), Count(k.Skipped)
	}
	return out
}

// discoveryOf is nil without discoverers.
func discoveryOf(u discover.Update) *kvscoutv1.DiscoveryStats {
	if len(u.Discoverers) == 0 {
		return nil
	}
	out := &kvscoutv1.DiscoveryStats{Asked: u.Asked, AskFailures: u.AskFailed}
	for _, d := range u.Discoverers {
		out.Discoverers = append(out.Discoverers, &kvscoutv1.DiscovererStats{
			Name: d.Name, Workers: Count(d.Workers), Reports: d.Reports, Failures: d.Failures, Error: d.Err,
		})
	}
	for _, p := range u.Pending {
		out.Pending = append(out.Pending, &kvscoutv1.PendingWorker{WorkerId: p.ID, Reason: p.Why})
	}
	return out
}

func sourceStatsOf(l *indexer.Ledger, st *indexer.SourceStats, fresh indexer.Freshness, now time.Time) *kvscoutv1.SourceStats {
	src := l.Source()
	out := &kvscoutv1.SourceStats{
		WorkerId:        src.Worker,
		Rank:            Count(src.Rank),
		Freshness:       FreshnessOf(fresh, now),
		HistoryComplete: l.HistoryComplete(),
		Connections:     st.Connections,
		Bytes:           st.Bytes,
		Batches:         st.Batches,
		StoredEvents:    st.Stored,
		RemovedEvents:   st.Removed,
		ClearedEvents:   st.Cleared,
		ReplayedBatches: st.Replayed,
		Gaps:            st.Gaps,
		LostBatches:     st.Lost,
		ReuseReports:    st.ReuseReports,
		Resets:          st.Resets,
		OrphansWaiting:  uint64(st.OrphanStores),
		OrphansDropped:  uint64(max(0, st.OrphansDropped)),
		EvictedBlocks:   st.Evicted,
		StateSeconds:    max(0, now.Sub(st.Since).Seconds()),
		Model:           src.Model,
		Engine:          string(src.Engine),
		Bound:           BoundOf(st.Bound),
		Error:           fresh.Why,
	}
	if fresh.HasSequence {
		out.LagSeconds = proto.Float64(st.Lag.Seconds())
	}
	for t, n := range st.Resident {
		if n > 0 {
			out.Tiers = append(out.Tiers, &kvscoutv1.TierBlocks{Tier: TierOf(events.Tier(t)), Blocks: uint64(n)})
		}
	}
	for r, n := range st.Rejected {
		if n == 0 {
			continue
		}
		if out.Rejected == nil {
			out.Rejected = make(map[string]uint64)
		}
		out.Rejected[events.Reason(r).String()] = n
	}
	return out
}
