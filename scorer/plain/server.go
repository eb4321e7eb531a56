package plain

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/mem"
)

// Options configures a Server. All must be set.
type Options struct {
	// Paths and Kinds, content types, are those of the calls that are answered here.
	Paths, Kinds []string
	// MaxBody bounds a body, in bytes; a longer one is not plain.
	MaxBody int
	// HeadTime, CallTime and IdleTime are what invariant 2 says.
	HeadTime, CallTime, IdleTime time.Duration
	// Buffers has the memory for requests and answers.
	Buffers mem.BufferPool
	// Answer answers a call by Send, once. One that it does not answer ends its connection.
	Answer func(*Call)
	// Else takes a connection, of which unread was read and used by nobody. It is false if nobody takes any more.
	Else func(c net.Conn, unread []byte) bool
}

// Server answers the connections that it is given. Make it with New.
type Server struct {
	opts  Options
	forms forms
	wg    sync.WaitGroup // of the goroutines of conns

	warm     atomic.Int64 // bytes that connections keep between requests, beyond what an idle one does
	draining atomic.Bool  // no request begins any more; set with mu held

	mu    sync.Mutex // guards conns
	conns map[*conn]struct{}
}

// New returns a server.
func New(opts Options) *Server {
	return &Server{opts: opts, forms: newForms(&opts), conns: make(map[*conn]struct{})}
}

// Take answers a connection, of which unread was read before. It is false, and c nobody's, after Shutdown or Close.
func (s *Server) Take(c net.Conn, unread []byte) bool {
	taken := &conn{Conn: c, server: s, remote: c.RemoteAddr().String()}
	taken.unread(unread)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining.Load() {
		taken.drop()
		return false
	}
	s.conns[taken] = struct{}{}
	s.wg.Go(func() { // ended by the connection's end, Shutdown or Close; Shutdown waits for it
		defer s.forget(taken)
		taken.serve()
	})
	return true
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// Shutdown ends the connections that have no request, the others after their request, and waits for them. It errs with ctx's
// error if they outlast it.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.draining.Store(true)
	for c := range s.conns {
		c.wake()
	}
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() { // ends with the connections, or by Close
		defer close(ended)
		s.wg.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close cuts every connection. Calls under way see it by their context.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining.Store(true)
	for c := range s.conns {
		_ = c.Conn.Close() // there is nobody to be told
	}
}
