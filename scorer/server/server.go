package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"go.opentelemetry.io/otel/trace"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/scorer/access"
	"github.com/kvscout/kvscout/scorer/calls"
	"github.com/kvscout/kvscout/scorer/codec"
)

// Defaults of Options.
const (
	// DefaultReadMaxBytes fits a prompt of a million tokens: 4 MiB packed, 5.6 MiB of base64, some 8 MiB of JSON ids.
	DefaultReadMaxBytes = 16 << 20
	DefaultGrace        = 10 * time.Second
	DefaultCallTimeout  = time.Minute
)

// compressMinBytes is the size from which compressing an answer is worth its time; the usual answer is far below.
const compressMinBytes = 64 << 10

// What a connection may have open, and how long. Smaller windows make prompts wait for their own acknowledgement.
const (
	maxStreams   = 1000
	connWindow   = 16 << 20
	streamWindow = 4 << 20
	idleTime     = 2 * time.Minute
	headTime     = 5 * time.Second // for the headers of a request
)

// ErrGrace is a shutdown that cut calls off because they outlasted Options.Grace.
var ErrGrace = errors.New("calls outlasted the grace period")

// Options configures a Server. Score and Index must be set; zero means the default of that name for the rest.
type Options struct {
	// Score must not keep a request of Score or ScoreBatch, nor put its bytes into an answer.
	Score kvscoutv1connect.ScoreServiceHandler
	Index kvscoutv1connect.IndexServiceHandler
	// Render is the RenderService; nil leaves it out.
	Render kvscoutv1connect.RenderServiceHandler
	// RenderReady is whether bodies can be rendered, which is the health of RenderService while the server serves. It is
	// asked each time. Nil is always.
	RenderReady func() bool
	// ReadMaxBytes bounds one message, decompressed.
	ReadMaxBytes int
	// CallTimeout bounds one unary call, from its headers to its last byte.
	CallTimeout time.Duration
	// Ready returns true once the index has what it starts with, or false when stop is closed before; until then health
	// says NOT_SERVING of ScoreService and of the whole. Nil is ready at once.
	Ready func(stop <-chan struct{}) bool
	// Drain, when set, is told that the server is shutting down.
	Drain func()
	// Observe gets every call when it has ended; nil tells nobody.
	Observe func(calls.Done)
	// Tracer makes a span of each call; nil makes none.
	Tracer trace.Tracer
	// Guard decides who may call, has the keys of TLS, and counts connections. Nil: everybody may do everything.
	Guard *access.Guard
	// Origins are those of web pages whose scripts may call; "*" is any. Empty: none.
	Origins []string
	// Grace is how long a shutdown waits for calls in flight.
	Grace  time.Duration
	Logger *slog.Logger
}

// Server serves both services. Make it with New.
type Server struct {
	opts    Options
	log     *slog.Logger
	health  *health
	handler http.Handler
	// recorder is outermost: it follows what the others refuse, too.
	recorder *calls.Recorder
	// streams is done when streams must end, with a cause for their callers.
	streams context.Context
	drain   context.CancelCauseFunc
}

// services are the names that health and reflection know.
func (o Options) services() []string {
	names := []string{kvscoutv1connect.ScoreServiceName, kvscoutv1connect.IndexServiceName}
	if o.Render != nil {
		names = append(names, kvscoutv1connect.RenderServiceName)
	}
	return names
}

// New returns a server that serves once Serve is called.
func New(opts Options) *Server {
	if opts.ReadMaxBytes <= 0 {
		opts.ReadMaxBytes = DefaultReadMaxBytes
	}
	if opts.CallTimeout <= 0 {
		opts.CallTimeout = DefaultCallTimeout
	}
	if opts.Grace <= 0 {
		opts.Grace = DefaultGrace
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{opts: opts, log: opts.Logger, health: newHealth(opts)}
	s.streams, s.drain = context.WithCancelCause(context.Background())
	s.setHealth(grpchealth.StatusNotServing)
	s.recorder = calls.New(calls.Options{Methods: methods(), Observe: opts.Observe, Tracer: opts.Tracer, Logger: s.log})
	s.handler = s.bound(s.mux())
	if opts.Guard != nil {
		s.handler = opts.Guard.Handler(s.handler)
	}
	s.handler = access.CrossOrigin(opts.Origins, s.recorder.Handler(s.handler))
	return s
}

// Handler is everything the server serves, for callers with an HTTP server of their own. Health is NOT_SERVING until
// Serve runs.
func (s *Server) Handler() http.Handler { return s.handler }

func (s *Server) mux() *http.ServeMux {
	opts := []connect.HandlerOption{
		connect.WithReadMaxBytes(s.opts.ReadMaxBytes),
		connect.WithCompressMinBytes(compressMinBytes),
		withGzip(s.opts.ReadMaxBytes),
		connect.WithCodec(codec.Proto{}),
		connect.WithCodec(codec.JSON{As: "json"}),
		connect.WithCodec(codec.JSON{As: "json; charset=utf-8"}),
		// The first is outermost: it sees the error that a panic becomes.
		connect.WithInterceptors(s.recorder.Interceptor()),
		connect.WithRecover(s.recovered),
	}
	if s.opts.Guard != nil {
		opts = append(opts, connect.WithInterceptors(s.opts.Guard.Pace()))
	}
	mux := http.NewServeMux()
	mux.Handle(kvscoutv1connect.NewScoreServiceHandler(s.opts.Score, opts...))
	handleScores(mux, s.opts.Score, opts)
	mux.Handle(kvscoutv1connect.NewIndexServiceHandler(s.opts.Index, opts...))
	if s.opts.Render != nil {
		mux.Handle(kvscoutv1connect.NewRenderServiceHandler(s.opts.Render, opts...))
	}
	mux.Handle(grpchealth.NewHandler(s.health, opts...))
	mux.Handle(healthpb.Health_List_FullMethodName, connect.NewUnaryHandler(healthpb.Health_List_FullMethodName, s.health.list(s.opts.services()), opts...))
	reflector := grpcreflect.NewStaticReflector(append([]string{grpchealth.HealthV1ServiceName}, s.opts.services()...)...)
	mux.Handle(grpcreflect.NewHandlerV1(reflector, opts...))
	mux.Handle(grpcreflect.NewHandlerV1Alpha(reflector, opts...))
	return mux
}

// Serve answers on l, which it closes, until ctx ends, and then lets calls in flight finish within the grace period.
// It returns nil after that, ErrGrace if calls had to be cut off, or what made listening fail.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	hs := s.newFront()
	if s.opts.Guard != nil {
		l = s.opts.Guard.Listener(l)
	}
	failed := make(chan error, 1)
	// Ended by Shutdown or Close below, or by a listener that fails; Serve waits for it on failed.
	go func() { failed <- hs.Serve(l) }()
	stopWaiting := s.serveWhenReady()
	s.log.Info("serving", "address", l.Addr().String())
	select {
	case err := <-failed:
		stopWaiting()
		s.stopStreams()
		_ = hs.Close() // the listener is broken already: that is the error to report
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	stopWaiting()
	s.stopStreams()
	graceCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Grace)
	defer cancel()
	err := hs.Shutdown(graceCtx)
	if err != nil {
		_ = hs.Close() // cuts what is left; it reports no more than Shutdown did
		err = fmt.Errorf("%w of %v", ErrGrace, s.opts.Grace)
	}
	<-failed // always http.ErrServerClosed now
	s.log.Info("stopped", "address", l.Addr().String())
	return err
}

func (s *Server) httpServer() *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true) // TLS is open before net/http gets a connection
	hs := &http.Server{
		Handler:           told(s.handler),
		ConnContext:       withConn,
		Protocols:         protocols,
		ReadHeaderTimeout: headTime,
		IdleTimeout:       idleTime,
		// No ReadTimeout and WriteTimeout: they would end streams. Unary calls have deadlines of their own.
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          maxStreams,
			MaxReceiveBufferPerConnection: connWindow,
			MaxReceiveBufferPerStream:     streamWindow,
		},
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	if g := s.opts.Guard; g != nil {
		hs.ErrorLog = g.ErrorLog()
	}
	return hs
}
