package zmq

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"syscall"
	"time"

	"github.com/kvscout/kvscout/events"
)

// Defaults of Options and ReplayOptions.
const (
	DefaultMaxFrame   = 16 << 20
	DefaultMaxFrames  = 16
	DefaultMaxMessage = 32 << 20
	DefaultIdle       = 5 * time.Second
	DefaultHandshake  = 3 * time.Second
	DefaultBackoffMin = 20 * time.Millisecond
	// DefaultBackoffMax keeps a publisher that comes back unheard for less than 2 s.
	DefaultBackoffMax = 1500 * time.Millisecond
	DefaultMaxConns   = 256
	// DefaultMessageTime is enough for the largest message at 10 Mbit/s.
	DefaultMessageTime = 30 * time.Second
	DefaultIdleTimeout = 2 * time.Second
	// DefaultMaxBatches is a hundred times what engines buffer.
	DefaultMaxBatches = 1 << 20
)

var (
	// ErrOptions is a setting that cannot be used.
	ErrOptions = errors.New("bad zmq options")
	// ErrFrameTooLarge is a frame or command that claims more bytes than allowed.
	ErrFrameTooLarge = errors.New("frame too large")
	// ErrMessageTooLarge is a message of more frames or more bytes than allowed.
	ErrMessageTooLarge = errors.New("message too large")
	// ErrConnect is a connection that could not be made, or a peer that did not finish the handshake.
	ErrConnect = errors.New("cannot connect")
	// ErrHandshake is the second of the two: it was not a publisher's, or not done in time. It wraps ErrConnect.
	ErrHandshake = fmt.Errorf("%w: no handshake", ErrConnect)
	// ErrProtocol is a peer that breaks the framing of ZMTP.
	ErrProtocol = errors.New("protocol violated")
	// ErrSilent is a peer that answered no heartbeat, or a replay that stopped before its end.
	ErrSilent = errors.New("peer is silent")
	// ErrFull is a connection refused because too many are open, or closed because unfinished messages fill the budget.
	ErrFull = errors.New("too many connections")
	// ErrPeer is a connection from where none is allowed.
	ErrPeer = errors.New("peer is not allowed")
	// ErrTooManyBatches is a replay that does not end.
	ErrTooManyBatches = errors.New("too many replayed batches")
)

// Control is the type of net.Dialer's Control.
type Control = func(network, address string, c syscall.RawConn) error

// Options say where and how to receive. Zero means the default of that name.
type Options struct {
	// Endpoint is dialled by Dial and bound by Listen.
	Endpoint events.Endpoint
	// Topics are the prefixes subscribed to; none means everything.
	Topics []string
	// MaxFrame is in bytes; MaxFrames counts the frames of one message; MaxMessage is in bytes over all of them.
	MaxFrame, MaxFrames, MaxMessage int
	// Idle is how long a connection may be quiet before it is probed; after two unanswered probes it is given up.
	Idle time.Duration
	// Handshake bounds connecting and, apart from that, the exchange of greetings.
	Handshake time.Duration
	// BackoffMin and BackoffMax bound the pause between two attempts to connect (or to bind).
	BackoffMin, BackoffMax time.Duration
	// MaxConns is how many connections Listen keeps open at once.
	MaxConns int
	// Peers are the networks from which Listen takes TCP connections; none means all.
	Peers []netip.Prefix
	// Control, if set, may refuse a TCP address before it is dialled, as that of net.Dialer: names are resolved by then.
	Control Control
	// MessageTime bounds the time from a message's first byte to its last.
	MessageTime time.Duration
	// Budget bounds unfinished messages over all connections; nil shares one of DefaultBudget in the process.
	Budget *Budget
	// Logger may be nil.
	Logger *slog.Logger
}

// Handler takes what connections deliver. The calls for one connection come in order from one goroutine. Listen calls
// for different connections at the same time.
type Handler interface {
	// Connected tells that connection conn can receive: greeted and subscribed. Numbers rise from 1, so a newer
	// connection has the higher one.
	Connected(conn uint64, remote string)
	// Message hands over a message of at least one frame. The frames are the callee's to keep.
	Message(conn uint64, frames [][]byte)
	// Disconnected ends a connection; err says why. With conn 0 it tells of an attempt that never got as far as
	// Connected.
	Disconnected(conn uint64, err error)
}

// Validate reports everything wrong with o, joined, each fault wrapping ErrOptions.
func (o Options) Validate() error {
	var faults []error
	if o.Endpoint.Address == "" {
		faults = append(faults, fmt.Errorf("%w: endpoint is missing", ErrOptions))
	}
	faults = append(faults, o.limits().validate())
	for name, d := range map[string]time.Duration{
		"idle": o.Idle, "handshake": o.Handshake, "backoff min": o.BackoffMin, "backoff max": o.BackoffMax,
		"message time": o.MessageTime,
	} {
		if d < 0 {
			faults = append(faults, fmt.Errorf("%w: %s %v is negative", ErrOptions, name, d))
		}
	}
	if o.MaxConns < 0 {
		faults = append(faults, fmt.Errorf("%w: max connections %d is negative", ErrOptions, o.MaxConns))
	}
	if c := o.withDefaults(); c.BackoffMin > c.BackoffMax {
		faults = append(faults, fmt.Errorf("%w: backoff min %v is over max %v", ErrOptions, c.BackoffMin, c.BackoffMax))
	}
	return errors.Join(faults...)
}

// withDefaults fills in what is zero.
func (o Options) withDefaults() Options {
	o.Idle = orDuration(o.Idle, DefaultIdle)
	o.Handshake = orDuration(o.Handshake, DefaultHandshake)
	o.BackoffMin = orDuration(o.BackoffMin, DefaultBackoffMin)
	o.BackoffMax = orDuration(o.BackoffMax, max(DefaultBackoffMax, o.BackoffMin))
	o.MaxConns = orInt(o.MaxConns, DefaultMaxConns)
	if len(o.Topics) == 0 {
		o.Topics = []string{""}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// limits are what one connection is held to.
func (o Options) limits() limits {
	return limits{
		frame: o.MaxFrame, frames: o.MaxFrames, message: o.MaxMessage,
		idle: o.Idle, handshake: o.Handshake, probes: maxProbes, whole: o.MessageTime, budget: o.Budget, control: o.Control,
	}.withDefaults()
}

// maxProbes is how many heartbeats may stay unanswered.
const maxProbes = 2

// limits bound one connection: bytes per frame, frames and bytes per message, times, unanswered probes; budget all of them;
// and control where they lead.
type limits struct {
	frame, frames, message int
	idle, handshake, whole time.Duration
	probes                 int
	budget                 *Budget
	control                Control
}

func (l limits) withDefaults() limits {
	l.frame = orInt(l.frame, DefaultMaxFrame)
	l.frames = orInt(l.frames, DefaultMaxFrames)
	l.message = orInt(l.message, max(DefaultMaxMessage, l.frame))
	l.idle = orDuration(l.idle, DefaultIdle)
	l.handshake = orDuration(l.handshake, DefaultHandshake)
	l.whole = orDuration(l.whole, DefaultMessageTime)
	if l.budget == nil {
		l.budget = processBudget
	}
	return l
}

func (l limits) validate() error {
	if l.frame < 0 || l.frames < 0 || l.message < 0 {
		return fmt.Errorf("%w: limits of %d bytes a frame, %d frames, %d bytes a message", ErrOptions,
			l.frame, l.frames, l.message)
	}
	return nil
}

func orInt(v, otherwise int) int {
	if v == 0 {
		return otherwise
	}
	return v
}

func orDuration(v, otherwise time.Duration) time.Duration {
	if v == 0 {
		return otherwise
	}
	return v
}
