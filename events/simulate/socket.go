package simulate

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxPeers is how many connections one socket serves.
const maxPeers = 256

// counters count over all lives of an engine.
type counters struct {
	published, replays, badRequests, cutOff, badPeers, refused atomic.Uint64
}

// socket is a bound ZMQ socket: it accepts peers and hands their messages to handle.
type socket struct {
	kind    string   // PUB or ROUTER
	accepts []string // peers' socket types
	handle  func(*peer, [][]byte) error
	log     *slog.Logger
	count   *counters

	listener net.Listener
	stop     chan struct{}  // closed by close
	running  sync.WaitGroup // the accept loop and every connection

	mu     sync.Mutex // guards the fields below
	peers  map[*peer]struct{}
	conns  map[net.Conn]struct{} // every open connection, those that still shake hands included
	closed bool
}

// bind opens the endpoint, which must be tcp://host:port or ipc://path, and starts to serve.
func (s *socket) bind(endpoint string) error {
	network, address, err := bindAddress(endpoint)
	if err != nil {
		return err
	}
	s.listener, err = net.Listen(network, address)
	if err != nil {
		return fmt.Errorf("bind %s: %w", endpoint, err)
	}
	s.stop = make(chan struct{})
	s.peers, s.conns = make(map[*peer]struct{}), make(map[net.Conn]struct{})
	s.running.Go(s.accept) // ends when close closes the listener; close waits
	return nil
}

// bindAddress reads an endpoint as something to listen on: unlike events.ParseEndpoint it takes port 0 of any host.
func bindAddress(endpoint string) (network, address string, err error) {
	scheme, rest, _ := strings.Cut(endpoint, "://")
	switch {
	case scheme == "ipc" && rest != "":
		return "unix", rest, nil
	case scheme == "tcp":
		host, port, err := net.SplitHostPort(rest)
		if err != nil {
			return "", "", fmt.Errorf("%w: endpoint %q: %v", ErrConfig, endpoint, err)
		}
		if host == "*" {
			host = ""
		}
		return "tcp", net.JoinHostPort(host, port), nil
	}
	return "", "", fmt.Errorf("%w: endpoint %q is not tcp://host:port or ipc://path", ErrConfig, endpoint)
}

// bound is the bound address, to be bound again.
func (s *socket) bound() string {
	switch a := s.listener.Addr().(type) {
	case *net.TCPAddr:
		if a.IP.IsUnspecified() {
			return fmt.Sprintf("tcp://*:%d", a.Port)
		}
		return "tcp://" + a.String()
	default:
		return "ipc://" + a.String()
	}
}

// endpoint is the bound address as a client on this machine would dial it.
func (s *socket) endpoint() string { return strings.Replace(s.bound(), "*", "127.0.0.1", 1) }

func (s *socket) accept() {
	for {
		conn, err := s.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // out of file descriptors, or the like: try again soon
			s.log.Warn("simulate: accept", "socket", s.kind, "error", err)
			select {
			case <-s.stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			continue
		}
		if !s.admit(conn) {
			s.count.refused.Add(1)
			_ = conn.Close()
			continue
		}
		s.running.Go(func() { s.serve(conn) }) // ends when the connection does; close ends all and waits
	}
}

func (s *socket) admit(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.conns) >= maxPeers {
		return false
	}
	s.conns[conn] = struct{}{}
	return true
}

// serve runs one connection from handshake to end.
func (s *socket) serve(conn net.Conn) {
	defer s.drop(conn, nil)
	in := bufio.NewReader(conn)
	if err := handshake(conn, in, s.kind, s.accepts); err != nil {
		s.fault(conn, fmt.Errorf("handshake: %w", err), true)
		return
	}
	p := newPeer(conn, in)
	if !s.add(p) {
		return
	}
	s.running.Go(p.write) // ends when the connection or the peer closes; close waits
	err := p.read(s.handle)
	s.drop(conn, p)
	p.close()
	s.fault(conn, err, errors.Is(err, errZMTP)) // a connection that was reset is nobody's fault
}

func (s *socket) add(p *peer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.peers[p] = struct{}{}
	return true
}

func (s *socket) drop(conn net.Conn, p *peer) {
	s.mu.Lock()
	delete(s.conns, conn)
	delete(s.peers, p)
	s.mu.Unlock()
	if p == nil {
		_ = conn.Close()
	}
}

// fault counts and logs a connection that ended because of what the peer did, or did not do in time.
func (s *socket) fault(conn net.Conn, err error, bad bool) {
	if !bad || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return // it closed, or we did
	}
	s.count.badPeers.Add(1)
	s.log.Warn("simulate: peer dropped", "socket", s.kind, "peer", conn.RemoteAddr().String(), "error", err)
}

// each calls f with every peer.
func (s *socket) each(f func(*peer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.peers {
		f(p)
	}
}

// close stops accepting, flushes and ends every connection, and returns when no goroutine of the socket is left.
func (s *socket) close() error {
	s.mu.Lock()
	s.closed = true
	peers := make([]*peer, 0, len(s.peers))
	for p := range s.peers {
		peers = append(peers, p)
	}
	established := make(map[net.Conn]bool)
	for _, p := range peers {
		established[p.conn] = true
	}
	for conn := range s.conns {
		if !established[conn] {
			_ = conn.Close() // it still shakes hands: nothing to flush
		}
	}
	s.mu.Unlock()
	close(s.stop)
	err := s.listener.Close()
	var flush sync.WaitGroup
	for _, p := range peers {
		flush.Go(p.close) // ends within flushTime
	}
	flush.Wait()
	s.running.Wait()
	return err
}
