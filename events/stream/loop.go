package stream

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/zmq"
)

// loop is the state of a running stream. All of it belongs to the goroutine of Run.
type loop struct {
	src    events.Source
	sink   events.Sink
	o      Options
	replay events.Endpoint
	in     *inbox
	wg     *sync.WaitGroup // of the fetches

	track events.Tracker
	held  held
	epoch []byte // of the publisher's life, empty if it sends none
	// publish is where others read the epoch.
	publish *atomic.Pointer[string]
	// empty: told to have begun at 0, with nothing applied yet.
	empty bool
	// lossy: batches of this life were lost.
	lossy bool
	// partial: something came before the batch with which this life began for us, or was lost since. tried: a replay of
	// everything that the publisher has, has ended since, so that another one would bring no more. doubted: one has whose
	// first replies may have been lost on the way.
	partial, tried, doubted bool
	// hollow: the replay endpoint answered with nothing when the live stream had shown a batch. It keeps none, so its
	// silence proves nothing.
	hollow bool
	// losses counts the holes that could not be filled, ever.
	losses int

	links links
	// unproven: the publisher may have been replaced since the last batch applied.
	unproven bool
	// synced: a replay has brought something or ended since the session began.
	synced bool
	// away: the connection had been lost for StaleAfter when the session began. doubt: so it had, and no replay has
	// shown since what became of the publisher; nothing is known until it speaks.
	away, doubt bool
	resumed

	fetch  *recovery // under way, or nil
	cancel context.CancelFunc
	// answered is the highest number of a live message for whose sake a replay was asked and ended.
	answered uint64
	// reached is the highest number applied from a replay in this life.
	reached uint64
	// No hole is asked for before coolGap, no fallen number before coolReset, and what a failed replay left open is
	// tried again at retryAt (zero: nothing is open).
	coolGap, coolReset, retryAt time.Time

	downSince time.Time // zero while connected
	// silentSince is when the publisher was last known to be there, while only a peer is connected that has not spoken; zero
	// otherwise.
	silentSince time.Time
	state       events.State
	why         string // the error told with state
	lastErr     error
	timer       *time.Timer
}

// recovery is a fetch and what it is for.
type recovery struct {
	*fetch
	// whole: it asks for everything from the beginning.
	whole bool
	// begins: it brought the first batch that the publisher still has, if every reply could be read. A replay from the
	// beginning would bring no more.
	begins bool
	// rebuild: it replaces what the sink has, once it brings something.
	rebuild bool
	applied int
	// first is the number that its first reply had, if it had any.
	first uint64
	begun bool
}

func newLoop(s *Stream, in *inbox, wg *sync.WaitGroup) *loop {
	l := &loop{
		src: s.src, sink: s.sink, o: s.o, replay: s.replay, in: in, wg: wg, publish: &s.epoch,
		held:  held{maxMessages: s.o.QueueMessages, maxBytes: s.o.QueueBytes},
		links: links{bound: s.live.Bind, open: make(map[uint64]*connection)},
		timer: time.NewTimer(s.o.StaleAfter), downSince: time.Now(),
	}
	if s.resume != nil {
		l.resume(*s.resume, s.proven)
	}
	return l
}

func (l *loop) run(ctx context.Context) {
	defer l.timer.Stop()
	defer l.abandon()
	l.settle()
	for {
		var replies <-chan reply
		if l.fetch != nil {
			replies = l.fetch.out
		}
		select {
		case <-ctx.Done():
			return
		case in := <-l.in.ch:
			l.in.took(in)
			l.input(ctx, in)
		case r := <-replies:
			l.fetch.took(r)
			l.reply(ctx, r)
		case <-l.timer.C:
			l.retry(ctx)
		}
		l.settle()
	}
}

func (l *loop) input(ctx context.Context, in *input) {
	switch in.kind {
	case inputUp:
		if l.links.up(in.conn) {
			l.session(ctx)
		}
	case inputDown:
		l.down(ctx, in.conn, in.err)
	case inputMessage:
		l.message(ctx, in)
	}
}

// down notes the end of a connection, or of an attempt to make one.
func (l *loop) down(ctx context.Context, conn uint64, err error) {
	l.lastErr = err
	if conn != 0 && (errors.Is(err, zmq.ErrFrameTooLarge) || errors.Is(err, zmq.ErrMessageTooLarge)) {
		reason := events.ReasonTooLarge
		if l.links.bound && conn != l.links.owner {
			reason = events.ReasonBadFrames // of a stranger: it says nothing of the source
		}
		l.sink.Reject(reason)
	}
	if !l.links.bound && errors.Is(err, zmq.ErrHandshake) {
		l.sink.Reject(events.ReasonHandshake) // at a bound port anyone's, and counted there
	}
	if l.links.down(conn) {
		l.session(ctx)
		return
	}
	if !l.links.alive() && l.downSince.IsZero() {
		l.downSince = time.Now()
		if !l.silentSince.IsZero() {
			l.downSince = l.silentSince // who has gone proved nothing
		}
	}
}

// session begins when a publisher speaks to us that may not be the one before.
func (l *loop) session(ctx context.Context) {
	last, seen := l.track.Last()
	l.away = !l.downSince.IsZero() && time.Since(l.downSince) >= l.o.StaleAfter
	if l.links.bound && seen && l.silentSince.IsZero() {
		l.silentSince = time.Now()
		if !l.downSince.IsZero() {
			l.silentSince = l.downSince
		}
	}
	l.downSince = time.Time{}
	l.synced, l.answered = false, 0
	l.coolGap, l.coolReset = time.Time{}, time.Time{}
	l.abandon()
	if !l.replays() {
		l.doubt = l.doubt || seen && l.away
		return
	}
	l.unproven = seen
	if !seen {
		l.dropOlder() // the replay brings them, if they are of this life
	}
	l.ask(ctx, last, 0, false)
}

// message queues one live message and handles the queue.
func (l *loop) message(ctx context.Context, in *input) {
	m, err := events.ParseFrames(in.frames)
	switch {
	case errors.Is(err, events.ErrSequence), err == nil && m.Seq == events.EndSequence:
		l.sink.Reject(events.ReasonBadSequence)
		return
	case err != nil:
		l.sink.Reject(events.ReasonBadFrames)
		return
	case !strings.HasPrefix(string(m.Topic), l.src.Topic):
		l.sink.Reject(events.ReasonTopicMismatch)
		return
	}
	taken, fresh := l.links.speak(in.conn)
	if !taken {
		l.sink.Reject(events.ReasonStalePublisher)
		return
	}
	if fresh || !l.downSince.IsZero() {
		l.session(ctx)
	}
	l.silentSince = time.Time{}
	c := l.links.open[in.conn]
	dropped := l.held.push(live{
		Message: m, conn: in.conn, received: in.received, first: !c.spoke, rose: c.spoke && m.Seq > c.last,
	})
	for range dropped {
		l.sink.Reject(events.ReasonOverflow)
	}
	c.spoke, c.last = true, m.Seq
	l.drain(ctx)
}

// replays says whether there is an endpoint to ask.
func (l *loop) replays() bool { return l.replay.Address != "" }

// ask starts a recovery from number from on.
func (l *loop) ask(ctx context.Context, from, wants uint64, rebuild bool) {
	l.abandon()
	ctx, l.cancel = context.WithCancel(ctx)
	limit := int64(l.o.QueueBytes)
	f := &fetch{
		options: zmq.ReplayOptions{Endpoint: l.replay, IdleTimeout: l.o.ReplayIdle, Control: l.o.Control},
		total:   l.o.ReplayTotal, slots: l.o.Replays, next: from, wants: wants,
		out: make(chan reply, fetchReplies), limit: limit, room: semaphore.NewWeighted(limit),
	}
	l.fetch = &recovery{fetch: f, whole: from == 0, rebuild: rebuild}
	l.retryAt = time.Time{}
	l.wg.Go(func() { f.run(ctx) }) // ends with its question or by abandon; Run waits for it
	l.o.Logger.DebugContext(ctx, "replay asked", "source", l.src.ID(), "from", from, "wants", wants)
}

// abandon ends the recovery under way, if any. What it has brought but not handed over is asked for anew by whoever
// abandons it.
func (l *loop) abandon() {
	if l.fetch == nil {
		return
	}
	l.cancel()
	l.count(l.fetch, [events.ReasonCount]int{})
	l.fetch = nil
}

// retry tries again what a failed replay left open: everything from the beginning.
func (l *loop) retry(ctx context.Context) {
	if l.retryAt.IsZero() || time.Now().Before(l.retryAt) || l.fetch != nil || !l.downSince.IsZero() {
		return
	}
	last, seen := l.track.Last()
	if l.waiting { // what it holds may still be right
		l.unproven = true
		l.ask(ctx, last, 0, false)
		return
	}
	l.ask(ctx, 0, 0, seen)
}

// settle tells the state, if it changed, and sets the timer to the next time that matters.
func (l *loop) settle() {
	state, why := l.judge()
	text := ""
	if why != nil {
		text = why.Error()
	}
	if state != l.state || text != l.why {
		l.state, l.why = state, text
		l.o.Logger.Debug("state", "source", l.src.ID(), "state", state.String(), "why", text)
		l.sink.State(state, why)
	}
	l.plan()
	var next time.Time
	switch {
	case state == events.StateConnecting && l.unheard():
		next = l.silentSince.Add(l.o.StaleAfter)
	case state == events.StateConnecting:
		next = l.downSince.Add(l.o.StaleAfter)
	case l.downSince.IsZero():
		next = l.retryAt
	}
	if u := l.waitsUntil(); !u.IsZero() && time.Now().Before(u) && (next.IsZero() || u.Before(next)) {
		next = u
	}
	if !next.IsZero() {
		l.timer.Reset(max(time.Until(next), 0))
	}
}

// plan makes a replay of everything due, when the history is incomplete and one may still complete it.
func (l *loop) plan() {
	if !l.partial || l.tried || l.fetch != nil || !l.retryAt.IsZero() || !l.replays() || l.o.KeepOnGap {
		return
	}
	l.retryAt = time.Now() // or after what cools down
	for _, cool := range []time.Time{l.coolGap, l.coolReset} {
		if cool.After(l.retryAt) {
			l.retryAt = cool
		}
	}
}

// unheard says that nothing shows whose connection it is that the source has: it was dialled by a peer that has not
// spoken, where one has before, and no replay has answered since.
func (l *loop) unheard() bool { return !l.silentSince.IsZero() && l.downSince.IsZero() }

// judge derives the state.
func (l *loop) judge() (events.State, error) {
	_, seen := l.track.Last()
	switch {
	case !l.downSince.IsZero() && time.Since(l.downSince) >= l.o.StaleAfter:
		return events.StateStale, l.lastErr
	case !l.downSince.IsZero():
		return events.StateConnecting, l.lastErr
	case l.fetch != nil:
		return events.StateReplaying, nil
	case l.doubt, l.unheard() && time.Since(l.silentSince) >= l.o.StaleAfter:
		return events.StateStale, l.lastErr
	case l.waiting && !time.Now().Before(l.waitsUntil()):
		return events.StateStale, errSilent
	case l.waiting:
		return events.StateUnknown, nil
	case l.unheard():
		return events.StateConnecting, l.lastErr
	case l.lossy:
		return events.StateGap, l.lastErr
	case !seen && !l.empty:
		return events.StateUnknown, nil
	default:
		return events.StateLive, nil
	}
}
