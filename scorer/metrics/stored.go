package metrics

import kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"

// The metrics of what outlives the process: snapshots, and the log that servers share.
var (
	snapshotAge      = gauge("snapshot_age_seconds", "Age of the last snapshot written; absent without one.")
	snapshotTook     = gauge("snapshot_write_seconds", "Seconds that writing the last snapshot took; absent without one.")
	snapshotBytes    = gauge("snapshot_bytes", "Size of the last snapshot written; absent without one.")
	snapshotSources  = gauge("snapshot_sources", "Sources in the last snapshot written; absent without one.")
	snapshotSaves    = counter("snapshot_writes_total", "Snapshots written.")
	snapshotFailures = counter("snapshot_failures_total", "Snapshots that could not be written, by reason.", "reason")
	snapshotRestored = gauge("snapshot_restored_sources", "Sources that went on from the snapshot at the start, or since their workers were found again.")
	snapshotWaiting  = gauge("snapshot_waiting_sources", "Sources of the snapshot that wait for discovery to find their workers again.")

	logUnreached   = gauge("log_unreached_seconds", "How long the log has been out of reach; 0 while it is reached.")
	logReconnects  = counter("log_reconnects_total", "Connections to the log made after the first.")
	logIngested    = counter("log_ingest_records_total", "Records for the log, by outcome: stored, duplicate (another server had stored it), dropped and refused (each a gap for replicas).", "outcome")
	logFailures    = counter("log_ingest_failures_total", "Attempts to store that failed and were made again.")
	logWaiting     = gauge("log_ingest_waiting_bytes", "Bytes that wait to be stored in the log.")
	replicaRecords = counter("log_replica_records_total", "Records read from the log.")
	replicaBytes   = counter("log_replica_bytes_total", "Bytes read from the log.")
	replicaSkipped = counter("log_replica_skipped_total", "Records of the log that were not applied, by reason: bad, unknown, trimmed, conflict.", "reason")
	replicaAt      = gauge("log_replica_sequence", "Number of the last record read.")
	replicaPending = gauge("log_replica_pending_records", "Records behind it.")
	replicaLag     = gauge("log_replica_lag_seconds", "How long ago the last record read was stored; 0 when nothing is pending.")
	replicaBehind  = gauge("log_replica_behind", "1 while every source from the log is replaying, else 0.")
)

func (t telling) snapshot(s *kvscoutv1.SnapshotStats) {
	if s == nil {
		return
	}
	t.count(snapshotSaves, s.GetSaves())
	t.count(snapshotRestored, uint64(s.GetRestoredSources()))
	t.count(snapshotWaiting, uint64(s.GetWaitingSources()))
	for reason, n := range s.GetFailures() {
		t.count(snapshotFailures, n, reason)
	}
	if s.GetLastAge() == nil {
		return
	}
	t.value(snapshotAge, s.GetLastAge().AsDuration().Seconds())
	t.value(snapshotTook, s.GetLastTook().AsDuration().Seconds())
	t.count(snapshotBytes, s.GetLastBytes())
	t.count(snapshotSources, uint64(s.GetLastSources()))
}

func (t telling) log(l *kvscoutv1.LogStats) {
	if l == nil {
		return
	}
	t.value(logUnreached, l.GetUnreached().AsDuration().Seconds())
	t.count(logReconnects, l.GetReconnects())
	if p := l.GetIngest(); p != nil {
		t.count(logIngested, p.GetStored(), "stored")
		t.count(logIngested, p.GetDuplicates(), "duplicate")
		t.count(logIngested, p.GetDropped(), "dropped")
		t.count(logIngested, p.GetRefused(), "refused")
		t.count(logFailures, p.GetFailures())
		t.count(logWaiting, p.GetWaitingBytes())
	}
	if r := l.GetReplica(); r != nil {
		t.count(replicaRecords, r.GetRecords())
		t.count(replicaBytes, r.GetBytes())
		t.count(replicaSkipped, r.GetBad(), "bad")
		t.count(replicaSkipped, r.GetUnknown(), "unknown")
		t.count(replicaSkipped, r.GetTrimmed(), "trimmed")
		t.count(replicaSkipped, r.GetConflicts(), "conflict")
		t.count(replicaAt, r.GetSequence())
		t.count(replicaPending, r.GetPending())
		t.value(replicaLag, r.GetLag().AsDuration().Seconds())
		t.truth(replicaBehind, r.GetBehind())
	}
}
