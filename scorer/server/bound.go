package server

import (
	"context"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/grpchealth"

	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
)

// streaming says whether a path is that of a method which goes on as long as its caller likes.
func streaming(path string) bool {
	return path == kvscoutv1connect.IndexServiceStreamStatsProcedure ||
		path == "/"+grpchealth.HealthV1ServiceName+"/Watch" ||
		strings.HasPrefix(path, "/grpc.reflection.")
}

// bound limits how long a call may last: a unary one by its timeout, a stream by the server's shutdown.
func (s *Server) bound(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var until time.Time // zero: none
		ctx := r.Context()
		if streaming(r.URL.Path) {
			var cancel context.CancelCauseFunc
			ctx, cancel = context.WithCancelCause(ctx)
			defer cancel(nil)
			stop := context.AfterFunc(s.streams, func() { cancel(context.Cause(s.streams)) })
			defer stop()
		} else {
			until = time.Now().Add(s.opts.CallTimeout)
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, until)
			defer cancel()
		}
		// A kept connection keeps its last deadline, so one is set for streams too. They fail only where the connection
		// under a writer has no deadlines, as in tests with recorders.
		rc := http.NewResponseController(w)
		_ = rc.SetReadDeadline(until)
		_ = rc.SetWriteDeadline(until)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
