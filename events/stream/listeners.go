package stream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/zmq"
)

// errClaimed ends a connection for the streams whose it is not.
var errClaimed = errors.New("connection belongs to another source")

// Listeners lets streams share listeners: one per port, open while a stream uses it.
type Listeners struct {
	mu   sync.Mutex // guards open, and users of each listener
	open map[string]*listener
	// mismatched counts messages whose topic is no stream's.
	mismatched atomic.Uint64
	// refused counts connections that were not let in.
	refused atomic.Uint64
}

// NewListeners returns an empty registry.
func NewListeners() *Listeners { return &Listeners{open: make(map[string]*listener)} }

// Mismatched is how many messages had a topic that belongs to no stream (events.ReasonTopicMismatch). Those on an
// endpoint with a single stream are counted by its sink instead.
func (ls *Listeners) Mismatched() uint64 { return ls.mismatched.Load() }

// Refused is how many connections were refused: too many were open, they came from where none is allowed, or they did not
// finish the handshake.
func (ls *Listeners) Refused() uint64 { return ls.refused.Load() }

// receive fills in with the messages of src that arrive at e, until ctx ends. The first stream at a port sets the
// options of its connections. It errs with ErrTopicTaken.
func (ls *Listeners) receive(ctx context.Context, e events.Endpoint, src events.Source, o Options, in *inbox) error {
	l := ls.enter(e, o)
	defer ls.leave(l)
	if err := l.add(src, in); err != nil {
		return err
	}
	defer l.remove(in)
	<-ctx.Done()
	return ctx.Err()
}

// enter returns the listener of e's port, started if it is the first use.
func (ls *Listeners) enter(e events.Endpoint, o Options) *listener {
	_, port, _ := net.SplitHostPort(e.Address) // ParseEndpoint made it, so it splits
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.open[port]
	if l == nil {
		// It outlives the stream that opens it if others join, so its context is its own.
		ctx, cancel := context.WithCancel(context.Background())
		l = &listener{ls: ls, port: port, cancel: cancel, done: make(chan struct{}), conns: make(map[uint64]*claim)}
		ls.open[port] = l
		// Ended and waited for by the last stream to leave. Topics come and go with streams, so it takes all.
		go func() {
			defer close(l.done)
			if err := zmq.Listen(ctx, o.live(e), l); ctx.Err() == nil {
				o.Logger.Error("listener ended", "address", e.Address, "error", err)
			}
		}()
	}
	l.users++
	return l
}

// leave closes the listener after its last use, and waits for it.
func (ls *Listeners) leave(l *listener) {
	ls.mu.Lock()
	l.users--
	last := l.users == 0
	if last {
		delete(ls.open, l.port)
	}
	ls.mu.Unlock()
	if last {
		l.cancel()
		<-l.done
	}
}

// listener shares the connections of one port among streams.
type listener struct {
	ls     *Listeners
	port   string
	users  int // guarded by ls.mu
	cancel context.CancelFunc
	done   chan struct{}

	// mu guards streams and conns. News of connections are put while it is held, so that every stream gets them in
	// one order; messages are not.
	mu      sync.RWMutex
	streams []member
	conns   map[uint64]*claim
}

type member struct {
	id, topic string
	in        *inbox
}

// claim says which streams a connection has sent messages for. Until it is settled it may be anyone's.
type claim struct {
	remote string
	by     []*inbox
	// foreign: it has sent a message that is no stream's.
	foreign bool
}

func (c *claim) settled() bool { return c.foreign || len(c.by) > 0 }

func (c *claim) includes(in *inbox) bool { return slices.Contains(c.by, in) }

func (l *listener) add(src events.Source, in *inbox) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.streams {
		if m.topic == src.Topic {
			return fmt.Errorf("%w: %q at port %s by %s", ErrTopicTaken, src.Topic, l.port, m.id)
		}
	}
	l.streams = append(l.streams, member{src.ID(), src.Topic, in})
	for id, c := range l.conns {
		if !c.settled() {
			in.Connected(id, c.remote)
		}
	}
	return nil
}

func (l *listener) remove(in *inbox) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.streams = slices.DeleteFunc(l.streams, func(m member) bool { return m.in == in })
	for _, c := range l.conns {
		c.by = slices.DeleteFunc(c.by, func(b *inbox) bool { return b == in })
	}
}

// Connected implements zmq.Handler.
func (l *listener) Connected(conn uint64, remote string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[conn] = &claim{remote: remote}
	for _, m := range l.streams {
		m.in.Connected(conn, remote)
	}
}

// Disconnected implements zmq.Handler.
func (l *listener) Disconnected(conn uint64, err error) {
	if conn == 0 && (errors.Is(err, zmq.ErrFull) || errors.Is(err, zmq.ErrPeer)) {
		l.ls.refused.Add(1)
		return // it says nothing of any stream
	}
	if errors.Is(err, zmq.ErrHandshake) {
		l.ls.refused.Add(1) // whose it was to be nobody knows: each stream is told
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.conns[conn]
	delete(l.conns, conn)
	for _, m := range l.streams {
		if c == nil || !c.settled() || c.includes(m.in) {
			m.in.Disconnected(conn, err)
		}
	}
}

// Message implements zmq.Handler.
func (l *listener) Message(conn uint64, frames [][]byte) {
	in, known := l.route(conn, string(frames[0]))
	if !known {
		l.claim(conn, in)
	}
	if in == nil {
		if in = l.only(); in == nil {
			l.ls.mismatched.Add(1)
			return
		}
	}
	in.Message(conn, frames)
}

// only is the single stream of the port, which counts the messages that are nobody's; nil if there are several.
func (l *listener) only() *inbox {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if len(l.streams) != 1 {
		return nil
	}
	return l.streams[0].in
}

// route finds the stream with the longest topic that begins the message's, nil if there is none. known means that
// nothing new is learned about conn by that.
func (l *listener) route(conn uint64, topic string) (in *inbox, known bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	longest := -1
	for _, m := range l.streams {
		if len(m.topic) > longest && strings.HasPrefix(topic, m.topic) {
			longest, in = len(m.topic), m.in
		}
	}
	c := l.conns[conn]
	if c == nil {
		return in, true
	}
	if in == nil {
		return nil, c.settled()
	}
	return in, c.includes(in)
}

// claim makes conn in's, or nobody's if in is nil. Until then every stream took it for its own.
func (l *listener) claim(conn uint64, in *inbox) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.conns[conn]
	settled := c.settled()
	switch {
	case in == nil:
		c.foreign = true
	case !slices.ContainsFunc(l.streams, func(m member) bool { return m.in == in }):
		return // it has just left
	default:
		c.by = append(c.by, in)
		if settled {
			in.Connected(conn, c.remote)
		}
	}
	if settled {
		return
	}
	for _, m := range l.streams {
		if m.in != in {
			m.in.Disconnected(conn, errClaimed)
		}
	}
}
