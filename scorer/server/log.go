package server

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"

	"connectrpc.com/connect"

	"github.com/kvscout/kvscout/indexer/indexrpc"
)

// recovered makes a panic an error. What was thrown may hold request data, so its type is logged, not its text, except
// for the runtime's own errors.
func (s *Server) recovered(ctx context.Context, spec connect.Spec, _ http.Header, thrown any) error {
	cause := fmt.Sprintf("%T", thrown)
	if err, ok := thrown.(interface {
		error
		RuntimeError()
	}); ok {
		cause = err.Error()
	}
	s.log.ErrorContext(ctx, "panic in a handler", "method", spec.Procedure, "cause", cause, "stack", string(debug.Stack()))
	return indexrpc.Failf(indexrpc.ReasonInternal, "internal error").Connect()
}
