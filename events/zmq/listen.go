package zmq

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/go-zeromq/zmq4"
)

// Listen binds o.Endpoint and receives from every publisher that dials it, until ctx ends. A port that is taken is
// tried again. It returns ctx's error after all its goroutines have ended, or one wrapping ErrOptions at once. h is
// called from one goroutine per connection, and from the calling one with connection 0.
func Listen(ctx context.Context, o Options, h Handler) error {
	if err := o.Validate(); err != nil {
		return err
	}
	s := &server{o: o.withDefaults(), h: h, slots: make(chan struct{}, o.withDefaults().MaxConns)}
	defer s.conns.Wait()
	pause := backoff{min: s.o.BackoffMin, max: s.o.BackoffMax}
	for ctx.Err() == nil {
		began := time.Now()
		err := s.accept(ctx)
		if ctx.Err() != nil {
			break
		}
		if time.Since(began) > settled {
			pause.reset()
		}
		h.Disconnected(0, err)
		s.o.Logger.WarnContext(ctx, "zmq listener failed", "address", o.Endpoint.Address, "error", err)
		pause.wait(ctx)
	}
	return ctx.Err()
}

// server is the bound side of Listen.
type server struct {
	o Options
	h Handler
	// slots holds one token per open connection.
	slots chan struct{}
	conns sync.WaitGroup

	mu   sync.Mutex // guards last
	last uint64     // number of the newest connection
}

// accept takes connections until the listener fails or ctx ends.
func (s *server) accept(ctx context.Context) error {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, s.o.Endpoint.Network, s.o.Endpoint.Address)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConnect, err)
	}
	defer ln.Close()
	stop := context.AfterFunc(ctx, func() { ln.Close() }) // ends Accept; stopped when accept returns
	defer stop()
	for {
		c, err := ln.Accept()
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		if !s.allowed(c.RemoteAddr()) {
			c.Close()
			s.h.Disconnected(0, fmt.Errorf("%w: %s", ErrPeer, c.RemoteAddr()))
			continue
		}
		select {
		case s.slots <- struct{}{}:
			// Ends when ctx closes its connection; Listen waits for it.
			s.conns.Go(func() {
				defer func() { <-s.slots }()
				s.serve(ctx, c)
			})
		default:
			c.Close()
			s.h.Disconnected(0, fmt.Errorf("%w: %d are open", ErrFull, s.o.MaxConns))
		}
	}
}

// allowed says whether a peer may connect. Only the network tells peers apart; a socket in the file system has its rights.
func (s *server) allowed(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || len(s.o.Peers) == 0 {
		return true
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	return slices.ContainsFunc(s.o.Peers, func(p netip.Prefix) bool { return p.Contains(ip) })
}

func (s *server) serve(ctx context.Context, c net.Conn) {
	remote := remoteOf(c)
	l, err := open(ctx, c, zmq4.Sub, true, s.o.limits())
	if err != nil {
		s.h.Disconnected(0, err)
	} else {
		_, err = l.deliver(ctx, s.number(), s.o.Topics, s.h)
	}
	s.o.Logger.DebugContext(ctx, "zmq connection ended", "remote", remote, "error", err)
}

// number names a connection that has finished its handshake.
func (s *server) number() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	return s.last
}
