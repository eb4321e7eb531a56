package calls

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// LogHandler returns a handler that adds to each line written in the context of a call its request_id and, if it belongs to
// a trace, trace_id.
func LogHandler(next slog.Handler) slog.Handler { return logHandler{next} }

type logHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h logHandler) Handle(ctx context.Context, line slog.Record) error {
	if c := of(ctx); c != nil && !named(line) {
		line = line.Clone()
		line.AddAttrs(c.names()...)
	}
	return h.Handler.Handle(ctx, line)
}

// names are the attributes by which lines of a call are found.
func (c *call) names() []slog.Attr {
	out := []slog.Attr{slog.String(keyRequestID, c.requestID)}
	if sc := trace.SpanContextFromContext(c.Context); sc.HasTraceID() {
		out = append(out, slog.String("trace_id", sc.TraceID().String()))
	}
	return out
}

const keyRequestID = "request_id"

// named says whether a line has the names of its call already.
func named(line slog.Record) bool {
	found := false
	line.Attrs(func(a slog.Attr) bool {
		found = a.Key == keyRequestID
		return !found
	})
	return found
}

// WithAttrs implements slog.Handler.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h logHandler) WithGroup(name string) slog.Handler {
	return logHandler{h.Handler.WithGroup(name)}
}
