package server

import (
	"context"
	"net/http"
	"strings"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
)

// streaming says whether a path is that of a method which goes on as long as its caller likes.
func streaming(path string) bool {
	return path == kvscoutv1connect.IndexServiceStreamStatsProcedure ||
		path == kvscoutv1connect.IndexServiceDumpProcedure ||
		path == healthpb.Health_Watch_FullMethodName ||
		strings.HasPrefix(path, "/grpc.reflection.")
}

// talking says whether a path is that of a method whose caller goes on sending: when the server shuts down no more is
// read of it, and what was read is answered.
func talking(path string) bool { return path == kvscoutv1connect.ScoreServiceScoreStreamProcedure }

// bound limits how long a call may last: a unary one by its timeout, a stream by the server's shutdown.
func (s *Server) bound(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var until time.Time // zero: none
		ctx, rc := r.Context(), http.NewResponseController(w)
		switch {
		case talking(r.URL.Path):
			_ = rc.SetReadDeadline(until)
			told := make(chan struct{})
			stop := context.AfterFunc(s.streams, func() {
				defer close(told)
				_ = rc.SetReadDeadline(time.Unix(1, 0))
			})
			defer func() {
				if !stop() {
					<-told // nobody may hold the writer once its handler has returned
				}
			}()
		case streaming(r.URL.Path):
			var cancel context.CancelCauseFunc
			ctx, cancel = context.WithCancelCause(ctx)
			defer cancel(nil)
			stop := context.AfterFunc(s.streams, func() { cancel(context.Cause(s.streams)) })
			defer stop()
		default:
			until = time.Now().Add(s.opts.CallTimeout)
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, until)
			defer cancel()
		}
		// A kept connection keeps its last deadline, so one is set for streams too. They fail only where the connection
		// under a writer has no deadlines, as in tests with recorders.
		if !talking(r.URL.Path) {
			_ = rc.SetReadDeadline(until)
		}
		_ = rc.SetWriteDeadline(until)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
