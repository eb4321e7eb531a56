package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip" // requests may be compressed
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/kvscout/kvscout/scorer/codec"
)

// streamWorkers are goroutines that answer one call after the other, and so keep the stack that one needs. Calls over these have
// goroutines of their own.
const streamWorkers = 32

// grpcServer is grpc-go's transport. The methods that routers wait for have handlers of their own behind it. Any other call
// becomes an HTTP request as gRPC has it for the handler that serves everything, and the answer its messages and status: so
// protocols cannot differ in what they do.
type grpcServer struct {
	server  *grpc.Server
	handler http.Handler
	owner   *Server
	unary   map[string]unary // by method: those that need no detour
	pumps   sync.WaitGroup   // of goroutines that read for a stream
}

func (s *Server) newGRPC() *grpcServer {
	g := &grpcServer{handler: s.handler, owner: s, unary: scoreMethods{s.opts.Score}.unary(codec.Proto{})}
	g.server = grpc.NewServer(
		grpc.UnknownServiceHandler(g.call),
		grpc.ForceServerCodecV2(frameCodec{}),
		experimental.BufferPool(buffers),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.Creds(opened{}),
		grpc.InTapHandle(g.limit),
		grpc.WaitForHandlers(true),
		grpc.MaxRecvMsgSize(s.opts.ReadMaxBytes),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(http.DefaultMaxHeaderBytes),
		grpc.InitialWindowSize(streamWindow),
		grpc.InitialConnWindowSize(connWindow),
		grpc.ConnectionTimeout(sniffTime),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTime}),
		// Clients that ask often whether we are there are no attackers.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	)
	return g
}

func (g *grpcServer) gracefulStop() {
	g.server.GracefulStop()
	g.pumps.Wait()
}

func (g *grpcServer) stop() {
	g.server.Stop()
	g.pumps.Wait()
}

// limit bounds how long a unary call may take to arrive and to be read, as deadlines of connections do elsewhere.
func (g *grpcServer) limit(ctx context.Context, info *tap.Info) (context.Context, error) {
	if talking(info.FullMethodName) || streaming(info.FullMethodName) {
		return ctx, nil
	}
	until := time.Now().Add(g.owner.opts.CallTimeout)
	if sooner, ok := ctx.Deadline(); ok && sooner.Before(until) {
		return &arrival{ctx, func() {}, info.Header}, nil
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	return &arrival{ctx, cancel, info.Header}, nil // ended by call; else ctx ends with its parent
}

// call answers one call.
func (g *grpcServer) call(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	a, ok := stream.Context().Value(arrivalKey{}).(*arrival)
	if !ok {
		return g.detour(stream, method)
	}
	defer a.cancel()
	if serve, ok := g.unary[method]; ok {
		return g.answer(stream, a, method, serve)
	}
	return g.detour(stream, method)
}

// detour answers a call by the HTTP handlers.
func (g *grpcServer) detour(stream grpc.ServerStream, method string) (err error) {
	body := &frames{stream: stream}
	if talking(method) {
		body.pump(&g.pumps)
	}
	w := &grpcWriter{stream: stream, body: body, header: make(http.Header)}
	defer body.free()
	defer func() {
		if thrown := recover(); thrown != nil { // handlers catch their own: this is what lies around them
			g.owner.log.Error("panic in a call", "method", method, "panic_type", fmt.Sprintf("%T", thrown))
			err = status.Error(codes.Internal, "internal error")
		}
	}()
	g.handler.ServeHTTP(w, request(stream.Context(), method, body))
	return w.end()
}

// request is a call as the HTTP request by which it would come to net/http.
func request(ctx context.Context, method string, body *frames) *http.Request {
	r := &http.Request{
		Method: http.MethodPost, URL: &url.URL{Path: method}, RequestURI: method, Proto: "HTTP/2.0", ProtoMajor: 2,
		Body: body, ContentLength: -1,
	}
	md, _ := metadata.FromIncomingContext(ctx)
	r.Header = make(http.Header, len(md))
	for name, values := range md {
		switch name {
		case ":authority":
			r.Host = values[0]
		case "grpc-encoding", "grpc-accept-encoding": // grpc-go has inflated the message, and deflates none
		default:
			setHeader(r.Header, name, values)
		}
	}
	r.RemoteAddr, r.TLS = from(ctx)
	return r.WithContext(ctx)
}

// from is who calls: the address, and the state of TLS, nil in clear text.
func from(ctx context.Context) (remote string, state *tls.ConnectionState) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return "", nil
	}
	if p.Addr != nil {
		remote = p.Addr.String()
	}
	if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
		state = &info.State
	}
	return remote, state
}
