package stream

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/zmq"
)

// Defaults of Options.
const (
	DefaultReplayTotal    = 30 * time.Second
	DefaultReplayCooldown = 30 * time.Second
	DefaultStaleAfter     = 30 * time.Second
	DefaultQueueMessages  = 16384
	DefaultQueueBytes     = 64 << 20
	// DefaultReplays is how many replays run at once in a process that states nothing else.
	DefaultReplays = 16
)

// ErrTopicTaken is a second stream of the same topic on the same bound endpoint.
var ErrTopicTaken = errors.New("topic is taken")

// Options of a Stream. Zero means the default of that name (in package zmq for Idle and ReplayIdle).
type Options struct {
	// Idle is how long a connection may be quiet before it is probed.
	Idle time.Duration
	// ReplayIdle is how long a replay may be quiet before it is asked again or given up.
	ReplayIdle time.Duration
	// ReplayTotal bounds one recovery, all its questions together.
	ReplayTotal time.Duration
	// ReplayCooldown is the pause after a recovery that failed or came too late.
	ReplayCooldown time.Duration
	// QueueMessages and QueueBytes bound the live messages held during a replay. QueueBytes also bounds, each on its
	// own, those not yet looked at and those replayed but not yet applied.
	QueueMessages, QueueBytes int
	// StaleAfter is how long a lost connection is called connecting before it is called stale.
	StaleAfter time.Duration
	// KeepOnGap says that the sink keeps its state at a Gap. The stream then never replays from the beginning what the
	// sink may still hold.
	KeepOnGap bool
	// BackoffMin and BackoffMax bound the pause between attempts to connect.
	BackoffMin, BackoffMax time.Duration
	// Peers are the networks from which engines may dial a bound endpoint; none means all.
	Peers []netip.Prefix
	// Control, if set, may refuse an address that is to be dialled, of either endpoint; see package zmq.
	Control zmq.Control
	// Replays limits the replays that run at once: one token each. Nil shares one of DefaultReplays in the process.
	Replays chan struct{}
	// Listeners finds the listener of an endpoint that is to be bound. Nil shares one registry in the process.
	Listeners *Listeners
	// Logger may be nil.
	Logger *slog.Logger
}

// Shared by all streams that state nothing else: these limits are the process's.
var (
	processReplays   = make(chan struct{}, DefaultReplays)
	processListeners = NewListeners()
)

func (o Options) withDefaults() Options {
	setDuration(&o.Idle, zmq.DefaultIdle)
	setDuration(&o.ReplayIdle, zmq.DefaultIdleTimeout)
	setDuration(&o.ReplayTotal, DefaultReplayTotal)
	setDuration(&o.ReplayCooldown, DefaultReplayCooldown)
	setDuration(&o.StaleAfter, DefaultStaleAfter)
	if o.QueueMessages == 0 {
		o.QueueMessages = DefaultQueueMessages
	}
	if o.QueueBytes == 0 {
		o.QueueBytes = DefaultQueueBytes
	}
	if o.Replays == nil {
		o.Replays = processReplays
	}
	if o.Listeners == nil {
		o.Listeners = processListeners
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func setDuration(d *time.Duration, otherwise time.Duration) {
	if *d == 0 {
		*d = otherwise
	}
}

// Validate reports everything wrong with o, joined, each fault wrapping zmq.ErrOptions.
func (o Options) Validate() error {
	var faults []error
	for name, v := range map[string]int64{
		"idle": int64(o.Idle), "replay idle": int64(o.ReplayIdle), "replay total": int64(o.ReplayTotal),
		"replay cooldown": int64(o.ReplayCooldown), "stale after": int64(o.StaleAfter),
		"queue messages": int64(o.QueueMessages), "queue bytes": int64(o.QueueBytes),
	} {
		if v < 0 {
			faults = append(faults, fmt.Errorf("%w: %s is negative", zmq.ErrOptions, name))
		}
	}
	if o.Replays != nil && cap(o.Replays) == 0 {
		faults = append(faults, fmt.Errorf("%w: replays needs a channel with room", zmq.ErrOptions))
	}
	return errors.Join(faults...)
}

// live are the options for the connection to src's publisher.
func (o Options) live(e events.Endpoint, topics ...string) zmq.Options {
	return zmq.Options{
		Endpoint: e, Topics: topics, Idle: o.Idle, BackoffMin: o.BackoffMin, BackoffMax: o.BackoffMax, Peers: o.Peers,
		Control: o.Control, Logger: o.Logger,
	}
}
