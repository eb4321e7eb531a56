package main

import (
	"fmt"
	"io"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// stats tells the state of the log, nil for a server that shares none.
func (s *sharing) stats() func() *kvscoutv1.LogStats {
	if s.log == nil {
		return nil
	}
	return func() *kvscoutv1.LogStats {
		link := s.log.Link()
		out := &kvscoutv1.LogStats{Unreached: durationpb.New(link.Unreached), Reconnects: link.Reconnects}
		if s.publisher != nil {
			p := s.publisher.Stats()
			out.Ingest = &kvscoutv1.LogIngestStats{
				Stored: p.Stored, Duplicates: p.Duplicates, Failures: p.Failures, Dropped: p.Dropped, Refused: p.Refused,
				WaitingBytes: uint64(p.Waiting),
			}
		}
		if s.follower != nil {
			f := s.follower.Stats()
			out.Replica = &kvscoutv1.LogReplicaStats{
				Records: f.Records, Bytes: f.Bytes, Bad: f.Bad, Unknown: f.Unknown, Trimmed: f.Trimmed, Conflicts: f.Conflicts,
				Sequence: f.Sequence, Pending: f.Pending, Lag: durationpb.New(f.Lag), Behind: f.Behind,
			}
		}
		return out
	}
}

// printLog tells the state of the log in a few lines, if the server shares one.
func printLog(w io.Writer, l *kvscoutv1.LogStats) {
	if l == nil {
		return
	}
	fmt.Fprint(w, "log: ")
	if d := l.GetUnreached().AsDuration(); d > 0 {
		fmt.Fprintf(w, "out of reach for %v, ", d.Round(time.Second))
	}
	fmt.Fprintf(w, "%d reconnects\n", l.GetReconnects())
	if p := l.GetIngest(); p != nil {
		fmt.Fprintf(w, "  ingest: %d records stored, %d by others, %d failures, %d dropped, %d refused, %d bytes waiting\n",
			p.GetStored(), p.GetDuplicates(), p.GetFailures(), p.GetDropped(), p.GetRefused(), p.GetWaitingBytes())
	}
	if r := l.GetReplica(); r != nil {
		fmt.Fprintf(w, "  replica: at record %d, %d behind it", r.GetSequence(), r.GetPending())
		if lag := r.GetLag().AsDuration(); lag > 0 {
			fmt.Fprintf(w, " (%v)", lag.Round(time.Millisecond))
		}
		if r.GetBehind() {
			fmt.Fprint(w, ", behind")
		}
		fmt.Fprintf(w, "; %d trimmed, %d bad, %d unknown, %d conflicts\n", r.GetTrimmed(), r.GetBad(), r.GetUnknown(), r.GetConflicts())
	}
}
