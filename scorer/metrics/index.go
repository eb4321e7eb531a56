package metrics

import (
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer/indexrpc"
)

var (
	indexVersion      = gauge("index_version", "Version of the index, which grows with each batch applied.")
	indexBlocks       = gauge("index_blocks", "Distinct blocks held by anyone.")
	indexHolderBlocks = gauge("index_holder_blocks", "What the sources hold together: a block counts for each source, tier and KV-cache group that has it.")
	indexScopes       = gauge("index_scopes", "Scopes (model, block size, namespace, adapter) that hold a block.")
	indexHandles      = gauge("index_engine_hashes", "Engine hashes known.")
	indexBytes        = gauge("index_bytes", "About how much memory the index takes.")
	indexRetired      = gauge("index_retired_bytes", "The part of kvscout_index_bytes that is of no use any more and waits for the epochs of lookups under way to end.")
	indexMaxBytes     = gauge("index_max_bytes", "What kvscout_index_bytes is kept below by forgetting what was stored longest ago; 0 is no bound.")
	topicMismatches   = counter("events_unknown_topic_total", "Messages on a shared port whose topic belongs to no source.")
	refusedPeers      = counter("events_refused_connections_total", "Connections refused at bound ports: too many, from where none is allowed, or no handshake in time.")

	ready          = gauge("ready", "1 when calls may be sent, else 0: it starts or shuts down.")
	serviceState   = gauge("service_state", "Always 1; the label tells the state: starting, ready, degraded or draining.", "state")
	sourcesWaiting = gauge("sources_waiting", "Configured sources that the start still waits for.")

	discovered        = gauge("discovery_workers", "Workers that a discoverer names now.", "discoverer")
	discoveryReports  = counter("discovery_reports_total", "Whole lists that a discoverer brought.", "discoverer")
	discoveryFailures = counter("discovery_failures_total", "Failures of a discoverer; a failure changes nothing.", "discoverer")
	discoveryPending  = gauge("discovery_pending_workers", "Workers that are named and cannot be listened to yet.")
	discoveryAsked    = counter("discovery_asked_total", "Times that workers were asked about themselves.")
	discoveryFailed   = counter("discovery_ask_failures_total", "Times that asking a worker about itself brought nothing.")
)

func (t telling) index(s *kvscoutv1.Stats) {
	t.count(indexVersion, s.GetIndexVersion())
	t.count(indexBlocks, s.GetBlocks())
	t.count(indexHolderBlocks, s.GetHolderBlocks())
	t.count(indexScopes, s.GetScopes())
	t.count(indexHandles, s.GetHandles())
	t.count(indexBytes, s.GetIndexBytes())
	t.count(indexRetired, s.GetRetiredBytes())
	t.count(indexMaxBytes, s.GetMaxIndexBytes())
	t.count(topicMismatches, s.GetTopicMismatches())
	t.count(refusedPeers, s.GetRefusedConnections())
}

func (t telling) readiness(r *kvscoutv1.Readiness) {
	state := r.GetState()
	t.truth(ready, indexrpc.Ready(state))
	t.value(serviceState, 1, word(state.String(), "SERVICE_STATE_"))
	t.count(sourcesWaiting, uint64(len(r.GetWaiting())))
}

func (t telling) discovery(d *kvscoutv1.DiscoveryStats) {
	if d == nil {
		return
	}
	for _, from := range d.GetDiscoverers() {
		t.count(discovered, uint64(from.GetWorkers()), from.GetName())
		t.count(discoveryReports, from.GetReports(), from.GetName())
		t.count(discoveryFailures, from.GetFailures(), from.GetName())
	}
	t.count(discoveryPending, uint64(len(d.GetPending())))
	t.count(discoveryAsked, d.GetAsked())
	t.count(discoveryFailed, d.GetAskFailures())
}
