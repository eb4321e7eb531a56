package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"connectrpc.com/connect"

	"github.com/kvscout/kvscout/indexer/indexrpc"
)

// callLog logs each call: at debug if it went well, at info if it failed.
type callLog struct {
	log *slog.Logger
}

var _ connect.Interceptor = (*callLog)(nil)

// WrapUnary implements connect.Interceptor.
func (c *callLog) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		start := time.Now()
		resp, err := next(ctx, req)
		c.ended(ctx, req.Spec().Procedure, start, err)
		return resp, err
	}
}

// WrapStreamingClient implements connect.Interceptor; it changes nothing.
func (c *callLog) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler implements connect.Interceptor.
func (c *callLog) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		start := time.Now()
		err := next(ctx, conn)
		c.ended(ctx, conn.Spec().Procedure, start, err)
		return err
	}
}

// ended logs one call. Error texts are left out: they may quote what the caller sent.
func (c *callLog) ended(ctx context.Context, method string, start time.Time, err error) {
	level, code, reason := slog.LevelDebug, "ok", ""
	if err != nil {
		level, code = slog.LevelInfo, connect.CodeOf(err).String()
		var failed *indexrpc.Error
		if errors.As(err, &failed) {
			reason = failed.Reason.String()
		}
	}
	if !c.log.Enabled(ctx, level) {
		return
	}
	c.log.LogAttrs(ctx, level, "call", slog.String("method", method), slog.String("code", code),
		slog.String("reason", reason), slog.Duration("duration", time.Since(start)))
}

// recovered makes a panic an error. What was thrown may hold request data, so its type is logged, not its text, except
// for the runtime's own errors.
func (s *Server) recovered(_ context.Context, spec connect.Spec, _ http.Header, thrown any) error {
	cause := fmt.Sprintf("%T", thrown)
	if err, ok := thrown.(interface {
		error
		RuntimeError()
	}); ok {
		cause = err.Error()
	}
	s.log.Error("panic in a handler", "method", spec.Procedure, "cause", cause, "stack", string(debug.Stack()))
	return indexrpc.Failf(indexrpc.ReasonInternal, "internal error").Connect()
}
