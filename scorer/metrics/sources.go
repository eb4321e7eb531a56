package metrics

import (
	"strconv"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// perSource is gauge or counter for a metric of each source.
func perSource(make func(name, help string, labels ...string) family, name, help string, labels ...string) family {
	return make(name, help, append([]string{"worker", "rank"}, labels...)...)
}

var (
	workers        = gauge("workers", "Workers that are listened to.")
	sources        = gauge("sources", "Sources (ranks of workers) by state; states without a source are left out.", "state")
	sourcesOmitted = gauge("sources_omitted", "Sources without metrics of their own, because there are too many.")

	sourceInfo     = perSource(gauge, "source_info", "Always 1; the labels tell model and engine.", "model", "engine")
	sourceState    = perSource(gauge, "source_state", "Always 1; the label tells the state: unknown, connecting, replaying, live, gap or stale.", "state")
	sourceBound    = perSource(gauge, "source_bound", "Always 1; the label tells what answers about it are: exact, upper, lower or estimate.", "bound")
	sourceSince    = perSource(gauge, "source_state_seconds", "Seconds since the state changed.")
	sourceSequence = perSource(gauge, "source_sequence", "Number of the last batch applied; absent without one.")
	sourceAge      = perSource(gauge, "source_event_age_seconds", "Seconds since the last batch was received; absent without one.")
	sourceLag      = perSource(gauge, "source_lag_seconds", "Seconds from the arrival of the last batch to its being visible to lookups; absent without one.")
	sourceComplete = perSource(gauge, "source_history_complete", "1 if everything that the engine holds was seen since it was empty, else 0.")

	sourceConnections = perSource(counter, "source_connections_total", "Connections made.")
	sourceBytes       = perSource(counter, "source_received_bytes_total", "Payload bytes received.")
	sourceBatches     = perSource(counter, "source_batches_total", "Batches applied.")
	sourceReplayed    = perSource(counter, "source_replayed_batches_total", "Batches that came by replay.")
	sourceEvents      = perSource(counter, "source_events_total", "Events applied, by kind: stored, removed, cleared.", "kind")
	sourceRejected    = perSource(counter, "source_rejected_total", "Batches and events that were not applied, by reason.", "reason")
	sourceGaps        = perSource(counter, "source_gaps_total", "Holes in the sequence that could not be filled.")
	sourceLost        = perSource(counter, "source_lost_batches_total", "Batches in the holes that could not be filled.")
	sourceResets      = perSource(counter, "source_resets_total", "Restarts of the engine seen.")
	sourceReuse       = perSource(counter, "source_reuse_reports_total", "Stores taken as reports of what is held.")
	sourceWaiting     = perSource(gauge, "source_orphans_waiting", "Stores that wait for their parent.")
	sourceDropped     = perSource(counter, "source_orphans_dropped_total", "Stores given up because too many wait.")
	sourceEvicted     = perSource(counter, "source_evicted_blocks_total", "Blocks forgotten because the index was at its bound of memory.")
	sourceBlocks      = perSource(gauge, "source_blocks", "Blocks held, by tier; tiers without blocks are left out.", "tier")

	sourceOutcomes  = perSource(counter, "source_outcomes_total", "Outcomes that were reported, by how the prediction compared: equal, over, under.", "result")
	sourceWrong     = perSource(counter, "source_outcomes_wrong_total", "Exact answers that differed from the outcome, and bounds that did not hold.")
	sourceMistokens = perSource(counter, "source_outcome_tokens_total", "Tokens that were predicted and not taken (over), or taken and not predicted (under).", "result")
	sourceAccuracy  = perSource(gauge, "source_accuracy_ratio", "Share of equal predictions among the last 64 outcomes, 0 to 1; absent without one.")
	sourceFlagged   = perSource(gauge, "source_flagged", "Always 1, for sources whose accuracy fell; the label tells the likely cause.", "cause")
)

func (t telling) sources(list []*kvscoutv1.SourceStats) {
	states := make(map[string]uint64)
	ids := make(map[string]bool)
	for i, s := range list {
		ids[s.GetWorkerId()] = true
		states[stateOf(s)]++
		if i < MaxSources {
			t.source(s, s.GetWorkerId(), strconv.FormatUint(uint64(s.GetRank()), 10))
		}
	}
	t.count(workers, uint64(len(ids)))
	for state, n := range states {
		t.count(sources, n, state)
	}
	t.count(sourcesOmitted, uint64(max(0, len(list)-MaxSources)))
}

func stateOf(s *kvscoutv1.SourceStats) string {
	return word(s.GetFreshness().GetState().String(), "FRESHNESS_STATE_")
}

func (t telling) source(s *kvscoutv1.SourceStats, worker, rank string) {
	t.value(sourceInfo, 1, worker, rank, s.GetModel(), s.GetEngine())
	t.value(sourceState, 1, worker, rank, stateOf(s))
	t.value(sourceBound, 1, worker, rank, word(s.GetBound().GetKind().String(), "BOUND_KIND_"))
	t.value(sourceSince, s.GetStateSeconds(), worker, rank)
	if f := s.GetFreshness(); f.LastSequence != nil {
		t.count(sourceSequence, f.GetLastSequence(), worker, rank)
	}
	if f := s.GetFreshness(); f.AgeSeconds != nil {
		t.value(sourceAge, f.GetAgeSeconds(), worker, rank)
	}
	if s.LagSeconds != nil {
		t.value(sourceLag, s.GetLagSeconds(), worker, rank)
	}
	t.truth(sourceComplete, s.GetHistoryComplete(), worker, rank)
	for _, c := range []struct {
		family family
		n      uint64
	}{
		{sourceConnections, s.GetConnections()}, {sourceBytes, s.GetBytes()}, {sourceBatches, s.GetBatches()},
		{sourceReplayed, s.GetReplayedBatches()}, {sourceGaps, s.GetGaps()}, {sourceLost, s.GetLostBatches()},
		{sourceResets, s.GetResets()}, {sourceReuse, s.GetReuseReports()}, {sourceWaiting, s.GetOrphansWaiting()},
		{sourceDropped, s.GetOrphansDropped()}, {sourceEvicted, s.GetEvictedBlocks()},
	} {
		t.count(c.family, c.n, worker, rank)
	}
	t.count(sourceEvents, s.GetStoredEvents(), worker, rank, "stored")
	t.count(sourceEvents, s.GetRemovedEvents(), worker, rank, "removed")
	t.count(sourceEvents, s.GetClearedEvents(), worker, rank, "cleared")
	for reason, n := range s.GetRejected() {
		t.count(sourceRejected, n, worker, rank, reason)
	}
	for _, b := range s.GetTiers() {
		t.count(sourceBlocks, b.GetBlocks(), worker, rank, word(b.GetTier().String(), "TIER_"))
	}
	if a := s.GetAccuracy(); a != nil {
		t.accuracy(a, worker, rank)
	}
}

func (t telling) accuracy(a *kvscoutv1.Accuracy, worker, rank string) {
	t.count(sourceOutcomes, a.GetEqual(), worker, rank, "equal")
	t.count(sourceOutcomes, a.GetOver(), worker, rank, "over")
	t.count(sourceOutcomes, a.GetUnder(), worker, rank, "under")
	t.count(sourceWrong, a.GetWrong(), worker, rank)
	t.count(sourceMistokens, a.GetOverTokens(), worker, rank, "over")
	t.count(sourceMistokens, a.GetUnderTokens(), worker, rank, "under")
	if a.Recent != nil {
		t.value(sourceAccuracy, a.GetRecent(), worker, rank)
	}
	if a.GetFlagged() {
		t.value(sourceFlagged, 1, worker, rank, word(a.GetCause().String(), "ACCURACY_CAUSE_"))
	}
}
