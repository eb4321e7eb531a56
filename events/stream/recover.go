package stream

import (
	"context"
	"time"

	"github.com/kvscout/kvscout/events"
)

// reply handles what the recovery under way brought.
func (l *loop) reply(ctx context.Context, r reply) {
	if r.done {
		l.fetched(ctx, r)
		return
	}
	if l.fetch.rebuild {
		l.fetch.rebuild = false
		doubted := l.doubted // of the replay before, for whose sake this one may be
		l.reset()
		l.doubted = doubted
	}
	l.proved()
	if !l.fetch.begun {
		l.fetch.begun, l.fetch.first = true, r.Seq
	}
	l.hollow = false
	last, seen := l.track.Last()
	if r.first && r.again {
		l.unproven = seen // another connection answers now
	}
	switch {
	case l.otherLife(r.Message):
		l.restart(ctx)
	case !seen:
		l.start(r)
	case r.Seq <= last && l.track.Recognises(r.Seq, r.Payload):
		l.unproven, l.doubt = false, false
		if r.Seq == l.cursor {
			l.prove()
		}
	case r.Seq == last && r.first:
		l.restart(ctx)
	case r.Seq <= last:
		l.sink.Reject(events.ReasonBadReply)
	default:
		l.advance(last, r)
	}
}

// proved notes that a replay has shown that the publisher is there.
func (l *loop) proved() { l.synced, l.silentSince = true, time.Time{} }

// start begins the stream with the first batch of a replay from 0, or with an older one that came live if the
// publisher's buffer has already lost that. Only number 0 is known to have none before it: a replay that begins with 1
// may come from a publisher that counts from 1, or from one that has lost just its first batch.
func (l *loop) start(r reply) {
	m := l.held.front()
	if m == nil || m.Seq >= r.Seq || l.otherLife(m.Message) {
		l.begin(r.Seq, r.Seq == 0)
		l.replayed(r)
		return
	}
	first := l.held.pop()
	l.begin(first.Seq, first.Seq == 0)
	l.apply(first.Message, first.received)
	l.advance(first.Seq, r)
}

// advance applies a replayed batch after last, telling what is missing between them.
func (l *loop) advance(last uint64, r reply) {
	if !l.unproven {
		last = l.fill(last, r.Seq)
	}
	switch {
	case r.Seq <= last: // the live stream had it too
		return
	case r.Seq > last+1:
		l.lose(last+1, r.Seq)
	case l.unproven: // it would continue, but nothing shows that it is the same life
		l.reset()
		l.joined(r.Seq, false)
		l.fetch.begins = r.first // the batch asked for, the one before r, is gone
	}
	l.unproven = false
	l.replayed(r)
}

// fill applies held messages that continue after last, up to the one before next, and returns the new last.
func (l *loop) fill(last, next uint64) uint64 {
	for m := l.held.front(); m != nil && last+1 < next && m.Seq == last+1 && !l.otherLife(m.Message); m = l.held.front() {
		l.apply(m.Message, m.received)
		last = m.Seq
		l.held.pop()
	}
	return last
}

// replayed applies a replayed batch and drops the live copies at the head of the queue that it makes repeats.
func (l *loop) replayed(r reply) {
	l.apply(r.Message, r.received)
	l.reached = max(l.reached, r.Seq)
	l.fetch.applied++
	for m := l.held.front(); m != nil && m.Seq <= r.Seq && l.repeats(m); m = l.held.front() {
		l.held.pop()
		l.sink.Reject(events.ReasonDuplicate)
	}
}

// repeats says whether m is a batch that was applied.
func (l *loop) repeats(m *live) bool {
	return !l.otherLife(m.Message) && l.track.Recognises(m.Seq, m.Payload)
}

// fetched handles the end of a recovery.
func (l *loop) fetched(ctx context.Context, r reply) {
	f := l.fetch
	l.fetch = nil
	l.cancel()
	l.count(f, r.rejected)
	_, seen := l.track.Last()
	l.hollow = l.hollow || r.ended && !f.begun && !r.again && f.wants > 0
	switch {
	case !r.ended:
		l.failed(ctx, r.err)
		return
	case r.empty && l.hollow:
		l.answered = max(l.answered, f.wants)
		l.tried = l.tried || f.whole
		l.doubt = l.doubt || l.unproven && l.away // as if there were nobody to ask
		l.silentSince = time.Time{}
	case r.empty && seen && (l.unproven || r.again || f.rebuild):
		// The batch that we had last is unknown there: the publisher counts anew and has not got as far.
		l.restart(ctx)
		return
	default:
		l.proved()
		l.conclude(f, r.rejected == [events.ReasonCount]int{})
		l.answered = max(l.answered, f.wants)
		if m := l.held.front(); !seen && !l.empty && (m == nil || m.Seq == 0) {
			l.empty = true // rule 13: a publisher that has published nothing is known to hold nothing
			l.joined(0, true)
		}
	}
	l.unproven = false
	l.drain(ctx)
}

// conclude notes whether a replay of everything would bring more than f did. readable: every reply was. One that starts
// with 1, or had replies that could not be read, may have lost its first batch on the way; another one, once, shows.
func (l *loop) conclude(f *recovery, readable bool) {
	switch {
	case f.whole && (l.doubted || readable && f.first != 1), f.begins && readable:
		l.tried = true
	case f.whole:
		l.doubted = true
	}
}

// failed notes a recovery that got no whole answer, and goes on without. If that left something open, it is rebuilt from
// the beginning when the publisher answers again, unless the sink keeps what it has.
func (l *loop) failed(ctx context.Context, err error) {
	l.o.Logger.WarnContext(ctx, "replay failed", "source", l.src.ID(), "error", err)
	l.lastErr = err
	l.coolGap = time.Now().Add(l.o.ReplayCooldown)
	_, seen := l.track.Last()
	open, losses := !seen || l.unproven, l.losses
	l.doubt = l.doubt || l.unproven && l.away
	l.unproven = false
	l.drain(ctx)
	if (open || l.losses > losses) && !l.o.KeepOnGap || l.waiting {
		l.retryAt = l.coolGap
	}
}

// count tells the sink what a recovery brought.
func (l *loop) count(f *recovery, rejected [events.ReasonCount]int) {
	if f.applied > 0 {
		l.sink.Replayed(f.applied)
	}
	for reason, n := range rejected {
		for range n {
			l.sink.Reject(events.Reason(reason))
		}
	}
}
