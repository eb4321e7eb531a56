package calls

import (
	"strings"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// faults are the codes that are the server's fault, not the caller's.
var faults = map[string]bool{
	connect.CodeUnknown.String(): true, connect.CodeDeadlineExceeded.String(): true, connect.CodeInternal.String(): true,
	connect.CodeUnavailable.String(): true, connect.CodeDataLoss.String(): true,
}

// endSpan ends the span of a call. No error text is in it: that may quote what the caller sent.
func endSpan(span trace.Span, d *Done, reason string) {
	if span.IsRecording() {
		service, method, _ := strings.Cut(d.Method, "/")
		span.SetAttributes(attribute.String("rpc.system", "connect_rpc"), attribute.String("rpc.service", service),
			attribute.String("rpc.method", method), attribute.String("kvscout.code", d.Code))
		if reason != "" {
			span.SetAttributes(attribute.String("kvscout.reason", reason))
		}
		if faults[d.Code] {
			span.SetStatus(codes.Error, d.Code)
		}
	}
	span.End()
}
