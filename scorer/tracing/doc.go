// Package tracing exports OpenTelemetry traces by OTLP.
//
// In: an endpoint, or the OTEL_ variables of the specification. Out: a tracer for calls and their steps, and counts of what
// became of their spans.
//
// Invariants:
//
//  1. Nothing is traced unless an endpoint is configured; New then returns nil, whose methods do nothing.
//  2. Whether a trace is sampled is its caller's decision; one that begins here is sampled by ratio.
//  3. No call waits for the exporter. Spans wait in a queue of bounded length; each that is lost is counted.
//  4. A shutdown sends what waits, for at most StopTime.
//
// Concurrency: the SDK's batch processor has one goroutine, which Close ends and waits for.
//
// It is not a place for attributes: whoever makes a span answers for what is in it.
package tracing
