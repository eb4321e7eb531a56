package admin

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"
)

// MaxRequests is how many requests are answered at once.
const MaxRequests = 16

const (
	// maxBody bounds what a request may send: the addresses that a profiler asks names of.
	maxBody = 1 << 20
	// maxProfile bounds how long a profile may take, as its "seconds" say.
	maxProfile = time.Minute
	// stopGrace is how long a shutdown waits for answers under way.
	stopGrace = time.Second
)

// Options configures a Server.
type Options struct {
	// Metrics answers /metrics; nil leaves it out.
	Metrics http.Handler
	// Version is the program's, for /version.
	Version string
	Logger  *slog.Logger
}

// Status is how ready the service is, and what keeps it from being so.
type Status struct {
	// Ready: calls may be sent. False while it starts and while it shuts down.
	Ready bool `json:"ready"`
	// State is the word of the statistics: starting, ready, degraded or draining.
	State string `json:"state"`
	// Waiting are the sources that are waited for, Degraded those that are not live, Flagged those whose predictions are
	// wrong too often; each as worker/rank.
	Waiting  []string `json:"waiting,omitempty"`
	Degraded []string `json:"degraded,omitempty"`
	Flagged  []string `json:"flagged,omitempty"`
}

// Server answers operators. Make it with New.
type Server struct {
	opts  Options
	pages http.Handler
	ready atomic.Pointer[func() Status]
	slots chan struct{} // taken by requests that are answered
}

// New returns a server that serves once Serve is called.
func New(opts Options) *Server {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{opts: opts, slots: make(chan struct{}, MaxRequests)}
	s.pages = s.mux()
	return s
}

// SetReady gives what /readyz answers from now on. It is called for each request, from several goroutines.
func (s *Server) SetReady(status func() Status) { s.ready.Store(&status) }

// Handler is everything the server serves, without the bounds of time that Serve sets.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			s.pages.ServeHTTP(w, r)
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, fmt.Sprintf("more than %d requests at once", MaxRequests), http.StatusServiceUnavailable)
		}
	})
}

// Serve answers on l, which it closes, until ctx ends. It returns nil after that, or what made listening fail.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	handler := s.Handler()
	if Loopback(l.Addr()) && l.Addr().Network() == "tcp" {
		handler = namedLocally(handler)
	}
	hs := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second, // net/http/pprof moves it for profiles, up to maxProfile
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(s.opts.Logger.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- hs.Serve(l) }() // ended by Shutdown or Close below, waited for on failed
	select {
	case err := <-failed:
		_ = hs.Close() // the listener is broken already: that is the error to report
		return fmt.Errorf("admin: serve %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	if hs.Shutdown(grace) != nil {
		_ = hs.Close() // cuts a profile under way; it reports no more than Shutdown did
	}
	<-failed // always http.ErrServerClosed now
	return nil
}

// Loopback says whether an address is reached from this machine only: a Unix socket, or an IP of loopback.
func Loopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
}

// namedLocally refuses requests whose host is a name other than localhost (invariant 4).
func namedLocally(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !localHost(r.Host) {
			http.Error(w, "the host of a request is to be an address or localhost", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func localHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	if n := len(host); n > 2 && host[0] == '[' && host[n-1] == ']' {
		host = host[1 : n-1]
	}
	_, err = netip.ParseAddr(host)
	return err == nil || host == "localhost"
}
