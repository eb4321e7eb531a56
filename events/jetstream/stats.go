package jetstream

import (
	"sync/atomic"
	"time"
)

// LinkStats tells of the connection to the log.
type LinkStats struct {
	// Unreached is for how long the log has been out of reach, 0 while it is not; Reconnects how often it came back.
	Unreached  time.Duration
	Reconnects uint64
}

// Link tells of the connection now.
func (l *Log) Link() LinkStats {
	return LinkStats{Unreached: l.unreached(time.Now()), Reconnects: l.reconnects.Load()}
}

type publisherCounters struct {
	stored, duplicates, failures, dropped, refused atomic.Uint64
}

// PublisherStats tells what an ingester did.
type PublisherStats struct {
	// Stored records; Duplicates are those that another ingester had stored already.
	Stored, Duplicates uint64
	// Failures counts attempts to store that failed and were made again.
	Failures uint64
	// Dropped messages did not fit the queue, Refused records are larger than the server takes. Each shows as a hole.
	Dropped, Refused uint64
	// Waiting is what is not stored yet, in bytes.
	Waiting int
}

// Stats of the publisher now.
func (p *Publisher) Stats() PublisherStats {
	s := PublisherStats{
		Stored: p.n.stored.Load(), Duplicates: p.n.duplicates.Load(), Failures: p.n.failures.Load(),
		Dropped: p.n.dropped.Load(), Refused: p.n.refused.Load(),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.sources {
		b.mu.Lock()
		s.Waiting += b.bytes
		b.mu.Unlock()
	}
	return s
}

type followerCounters struct {
	records, bytes, bad, unknown, trimmed, conflicts atomic.Uint64
	sequence, pending                                atomic.Uint64
	stored                                           atomic.Int64 // when the last record was, Unix nanoseconds
	behind                                           atomic.Bool
}

// FollowerStats tells how far a replica has got.
type FollowerStats struct {
	// Records read, and their payloads in Bytes.
	Records, Bytes uint64
	// Bad records could not be read; Unknown ones are of a worker that was not described yet, or that this process
	// listens to itself.
	Bad, Unknown uint64
	// Trimmed counts records that went from the log before they were read.
	Trimmed uint64
	// Conflicts counts descriptions of a worker that differ from another ingester's.
	Conflicts uint64
	// Sequence is the number of the last record read, Pending how many are behind it, Lag how long ago it was stored if
	// there are any.
	Sequence, Pending uint64
	Lag               time.Duration
	// Behind says that answers are older than Options.MaxLag.
	Behind bool
}

// Stats of the follower now.
func (f *Follower) Stats() FollowerStats {
	now := time.Now()
	s := FollowerStats{
		Records: f.n.records.Load(), Bytes: f.n.bytes.Load(), Bad: f.n.bad.Load(), Unknown: f.n.unknown.Load(),
		Trimmed: f.n.trimmed.Load(), Conflicts: f.n.conflicts.Load(), Sequence: f.n.sequence.Load(),
		Pending: f.n.pending.Load(), Behind: f.n.behind.Load(),
	}
	if at := f.n.stored.Load(); at != 0 && s.Pending > 0 {
		s.Lag = max(now.Sub(time.Unix(0, at)), 0)
	}
	return s
}
