package stream

import (
	"bytes"
	"context"
	"time"

	"github.com/kvscout/kvscout/events"
)

// trackerReach is how far back events.Tracker recognises a batch.
const trackerReach = 1024

// drain applies the held messages while no recovery is under way.
func (l *loop) drain(ctx context.Context) {
	for l.fetch == nil && l.held.len() > 0 {
		m := l.held.front()
		last, _ := l.track.Last()
		switch l.meaning(m) {
		case events.StepNext:
			l.apply(m.Message, m.received)
		case events.StepDuplicate:
			l.sink.Reject(events.ReasonDuplicate)
		case events.StepFirst:
			if l.mayAsk(m.Seq) {
				l.ask(ctx, 0, m.Seq, false)
				return
			}
			l.begin(m.Seq, m.Seq == 0)
			l.apply(m.Message, m.received)
		case events.StepGap:
			if l.mayAsk(m.Seq) {
				l.ask(ctx, last, m.Seq, false)
				return
			}
			if l.denied(m) {
				l.deny(last, m)
				break
			}
			l.lose(last+1, m.Seq)
			l.apply(m.Message, m.received)
		case events.StepReset:
			l.fell(m.Seq)
			continue // it is the first of its life now
		}
		l.held.pop()
	}
}

// meaning is what events.Tracker says of m, but for what the Tracker cannot know:
//   - A publisher sends no batch twice over one connection, and none over a new one that it sent before. So the first
//     message of a connection that repeats a batch is a new life with the same content, unless a replay came between.
//   - A replay may run ahead of the live stream by more than the Tracker remembers. Live numbers that still rise then
//     are repeats, not a new life.
func (l *loop) meaning(m *live) events.Step {
	if l.otherLife(m.Message) {
		return events.StepReset
	}
	step, _, _ := l.track.Observe(m.Seq, m.Payload)
	last, _ := l.track.Last()
	switch {
	case step == events.StepDuplicate && m.first && !l.synced:
		return events.StepReset
	case step == events.StepReset && m.Seq <= l.reached && last-m.Seq >= trackerReach && (m.rose || m.first && l.synced):
		return events.StepDuplicate
	}
	return step
}

// otherLife says whether m comes from another publisher process than the batches before it.
func (l *loop) otherLife(m events.Message) bool {
	return len(m.Epoch) > 0 && len(l.epoch) > 0 && !bytes.Equal(m.Epoch, l.epoch)
}

// mayAsk says whether the hole before live number seq can be asked for: there is whom to ask, it was not asked for
// before, and nothing failed just now.
func (l *loop) mayAsk(seq uint64) bool {
	return l.replays() && seq > l.answered && !time.Now().Before(l.coolGap)
}

// fell handles a live number that fell back. Numbers that fall again and again come from two publishers that share a
// connection; they are not asked for each time.
func (l *loop) fell(seq uint64) {
	cooling := time.Now().Before(l.coolReset)
	l.reset()
	l.coolReset = time.Now().Add(l.o.ReplayCooldown)
	if cooling {
		l.answered = seq
	}
}

// restart handles a new life that a replay has shown, and asks for all of it.
func (l *loop) restart(ctx context.Context) {
	l.abandon()
	l.reset()
	l.dropOlder()
	if time.Now().Before(l.coolReset) {
		l.coolGap = l.coolReset
		l.drain(ctx)
		return
	}
	l.coolReset = time.Now().Add(l.o.ReplayCooldown)
	l.ask(ctx, 0, 0, false)
}

// dropOlder drops what is held of older connections: it may be of an old life.
func (l *loop) dropOlder() {
	gone := l.held.filter(func(m live) bool { return m.conn == l.links.owner && l.links.open[m.conn] != nil })
	for range gone {
		l.sink.Reject(events.ReasonStalePublisher)
	}
}

// reset forgets the life so far.
func (l *loop) reset() {
	last, _ := l.track.Last()
	l.o.Logger.Debug("new life", "source", l.src.ID(), "after", last)
	l.publish.Store(nil)
	l.sink.Reset()
	l.resumed = resumed{}
	l.track.Forget()
	l.epoch = nil
	l.empty, l.lossy, l.unproven, l.doubt = false, false, false, false
	l.partial, l.tried, l.doubted = false, false, false
	l.answered, l.reached = 0, 0
	l.retryAt = time.Time{}
}

// begin tells with which number the stream starts. proven means that nothing came before it.
func (l *loop) begin(seq uint64, proven bool) {
	if l.empty && proven {
		l.empty = false // told already, with 0
		return
	}
	if l.empty {
		l.empty = false
		l.lose(0, seq)
		return
	}
	l.joined(seq, proven)
}

// joined tells that the stream starts with seq. complete means that nothing came before it.
func (l *loop) joined(seq uint64, complete bool) {
	l.o.Logger.Debug("joined", "source", l.src.ID(), "first", seq, "complete", complete)
	l.partial = !complete
	l.sink.Joined(seq, complete)
}

// lose tells that the batches from first up to the one before next are gone, and that the stream goes on with next.
func (l *loop) lose(first, next uint64) {
	l.lossy = true
	l.losses++
	if l.worthAsking(next) {
		l.tried = false
	}
	if time.Now().After(l.coolGap) { // losses during a cool-down do not prolong it
		l.coolGap = time.Now().Add(l.o.ReplayCooldown)
	}
	l.o.Logger.Warn("batches lost", "source", l.src.ID(), "from", first, "to", next-1)
	l.waiting = false
	l.sink.Gap(first, next-1)
	l.joined(next, false)
}

// denied says that the publisher was asked for what is missing before m, and does not know m's own number.
func (l *loop) denied(m *live) bool { return m.Seq <= l.answered && !l.hollow }

// deny takes m for lost with all before it: under a wrong number it may be an old batch.
func (l *loop) deny(last uint64, m *live) {
	l.sink.Reject(events.ReasonBadSequence)
	l.lose(last+1, m.Seq+1)
	l.track.Accept(m.Seq, m.Payload)
}

// worthAsking says whether a replay of everything may bring what was lost before number next. It may if nobody has said
// yet that the publisher's buffer lacks it, and if who said so did not know number next either, which the live stream
// has: one of the two is wrong about the numbers. What a replay of everything shows itself is judged at its end.
func (l *loop) worthAsking(next uint64) bool {
	if l.fetch == nil {
		return !l.hollow
	}
	return l.fetch.whole || next > l.answered
}

// apply hands the next batch to the sink.
func (l *loop) apply(m events.Message, received time.Time) {
	l.sink.Apply(m.Seq, m.Payload, received)
	l.track.Accept(m.Seq, m.Payload)
	l.doubt, l.waiting = false, false
	if len(m.Epoch) > 0 {
		if bytes.Equal(m.Epoch, l.epoch) {
			l.prove()
		}
		l.setEpoch(m.Epoch)
	}
}

// setEpoch notes the epoch of what was applied. The memory of m stays the message's.
func (l *loop) setEpoch(e []byte) {
	if bytes.Equal(e, l.epoch) {
		return
	}
	l.epoch = bytes.Clone(e)
	text := string(e)
	l.publish.Store(&text)
}
