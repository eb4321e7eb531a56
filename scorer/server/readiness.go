package server

import (
	"sync"

	"connectrpc.com/grpchealth"

	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/indexer/indexrpc"
)

// setHealth sets the health of every service, and of the whole.
func (s *Server) setHealth(status grpchealth.Status) {
	for _, name := range append([]string{""}, s.opts.services()...) {
		s.health.SetStatus(name, status)
	}
}

// serveWhenReady says that IndexService serves, so that workers can be registered, and of everything else once it is
// ready. The function it returns ends the waiting.
func (s *Server) serveWhenReady() (stop func()) {
	if s.opts.Ready == nil {
		s.setHealth(grpchealth.StatusServing)
		return func() {}
	}
	s.health.SetStatus(kvscoutv1connect.IndexServiceName, grpchealth.StatusServing)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // ended by done, waited for by stop
		if s.opts.Ready(done) {
			s.setHealth(grpchealth.StatusServing)
			s.log.Info("ready")
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}

// stopStreams turns health to NOT_SERVING and ends every stream.
func (s *Server) stopStreams() {
	s.setHealth(grpchealth.StatusNotServing)
	if s.opts.Drain != nil {
		s.opts.Drain()
	}
	s.drain(indexrpc.Failf(indexrpc.ReasonNotReady, "the server is shutting down"))
}
