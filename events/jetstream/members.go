package jetstream

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// member is what is known of a worker's description.
type member struct {
	Member
	body     string
	ingester uint64
	seen     time.Time // by the log's clock
}

// describe takes the last description of each worker before anything else is read, since the records of its sources may
// have outlived the first one in the log.
func (f *Follower) describe(ctx context.Context, stream jetstream.Stream) error {
	f.mu.Lock()
	known := len(f.members) > 0 && !f.trimmed
	f.mu.Unlock()
	if known {
		return nil
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(f.log.prefix+".worker.>"))
	if err != nil {
		return err
	}
	for subject := range info.State.Subjects {
		msg, err := stream.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		f.mu.Lock()
		f.recordLocked(msg.Sequence, subject, msg.Data, msg.Time, time.Now())
		f.mu.Unlock()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trimmed = false
	return nil
}

// forgetLocked takes a worker out.
func (f *Follower) forgetLocked(id string) {
	f.target.Forget(id)
	delete(f.members, id)
	maps.DeleteFunc(f.sources, func(p place, _ *source) bool { return p.worker == id })
}

// memberLocked takes a description of a worker, or its end.
func (f *Follower) memberLocked(id string, r *record, stored time.Time) error {
	have := f.members[id]
	other := have != nil && have.ingester != 0 && have.ingester != r.ingester
	fresh := other && stored.Sub(have.seen) <= 2*describeEvery*f.log.o.Heartbeat
	if r.kind == kindGone {
		if have != nil && !fresh {
			f.forgetLocked(id)
		}
		return nil
	}
	if have != nil && have.body == string(r.body) {
		if !fresh {
			have.ingester, have.seen = r.ingester, stored
		}
		return nil
	}
	if fresh {
		f.n.conflicts.Add(1)
		return nil
	}
	m, err := parseMember(id, r.body)
	if err != nil {
		return err
	}
	if err := f.target.Describe(m); err != nil {
		f.log.logger().Warn("worker is not followed", "worker", id, "error", err)
		return nil
	}
	f.members[id] = &member{Member: m, body: string(r.body), ingester: r.ingester, seen: stored}
	for p, s := range f.sources {
		if p.worker == id && f.target.Sink(p.worker, p.rank) != s.sink {
			delete(f.sources, p) // what it held is gone, so it begins anew
		}
	}
	return nil
}
