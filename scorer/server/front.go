package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
)

// front answers on one listener with three transports: that of net/http, which speaks every protocol, and two that are faster: that
// of grpc-go for connections of gRPC clients, and ours for plain calls by HTTP/1.1. All call the same handlers.
type front struct {
	http   *http.Server
	grpc   *grpcServer
	plain  *plainServer
	tls    *tls.Config                      // nil in clear text
	failed func(remote net.Addr, err error) // is told of connections whose TLS could not be opened

	mu       sync.Mutex // guards splitter
	splitter *splitter  // nil before Serve
}

func (s *Server) newFront() *front {
	f := &front{http: s.httpServer(), grpc: s.newGRPC()}
	f.plain = s.newPlain(f.toHTTP)
	if g := s.opts.Guard; g != nil {
		f.tls, f.failed = g.TLS(), g.HandshakeFailed
	}
	return f
}

// Serve answers until Shutdown or Close, or until the listener fails, and returns as http.Server.Serve does.
func (f *front) Serve(l net.Listener) error {
	split := newSplitter(l, f.tls, f.failed, f.plain.take)
	f.mu.Lock()
	f.splitter = split
	f.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() { _ = split.run() })                     // its error is that of the branches
	wg.Go(func() { _ = f.grpc.server.Serve(split.grpc) }) // likewise; ended by Stop or a listener that fails
	err := f.http.Serve(split.rest)
	split.close()
	_ = split.grpc.Close()
	wg.Wait()
	return err
}

// toHTTP leaves a connection to net/http.
func (f *front) toHTTP(c net.Conn) bool {
	f.mu.Lock()
	split := f.splitter
	f.mu.Unlock()
	return split.rest.take(c)
}

// Shutdown ends Serve and waits for calls in flight. It errs with ctx's error if they outlast it.
func (f *front) Shutdown(ctx context.Context) error {
	f.stopAccepting()
	stopped := make(chan struct{})
	go func() { // ends when calls have ended, or by Stop in Close
		defer close(stopped)
		f.grpc.gracefulStop()
	}()
	err := errors.Join(f.plain.server.Shutdown(ctx), f.http.Shutdown(ctx))
	select {
	case <-stopped:
	case <-ctx.Done():
		err = ctx.Err()
		f.grpc.stop()
		<-stopped
	}
	return err
}

// Close ends Serve and cuts what is under way.
func (f *front) Close() error {
	f.stopAccepting()
	f.grpc.stop()
	f.plain.server.Close()
	return f.http.Close()
}

func (f *front) stopAccepting() {
	f.mu.Lock()
	split := f.splitter
	f.mu.Unlock()
	if split != nil {
		split.close()
	}
}
