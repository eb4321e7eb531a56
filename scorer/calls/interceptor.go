package calls

import (
	"context"

	"connectrpc.com/connect"
)

// Interceptor notes how handlers end their calls. It is to be the outermost one, so that it sees what the others make of an
// error. Without Handler it does nothing.
func (r *Recorder) Interceptor() connect.Interceptor { return note{} }

type note struct{}

// WrapUnary implements connect.Interceptor.
func (note) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		resp, err := next(ctx, req)
		noted(ctx, err)
		return resp, err
	}
}

// WrapStreamingClient implements connect.Interceptor; it changes nothing.
func (note) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler implements connect.Interceptor.
func (note) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		err := next(ctx, conn)
		noted(ctx, err)
		return err
	}
}

func noted(ctx context.Context, err error) {
	if c := of(ctx); c != nil {
		c.handled, c.err = true, err
	}
}
