package tracing

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/time/rate"
)

// tellEvery is the least time between two log lines about spans that could not be exported.
const tellEvery = time.Minute

// Stats counts sampled spans. Those that Ended and were neither exported nor failed wait, or were lost because too many did.
type Stats struct {
	Ended, Exported, Failed uint64
}

// Stats is what became of the spans so far.
func (p *Provider) Stats() Stats {
	if p == nil {
		return Stats{}
	}
	return Stats{Ended: p.counts.ended.Load(), Exported: p.counts.exported.Load(), Failed: p.counts.failed.Load()}
}

// counts is a processor that counts what ends, and around the exporter what it does.
type counts struct {
	next                    sdktrace.SpanExporter
	log                     *slog.Logger
	ended, exported, failed atomic.Uint64
	told                    rate.Sometimes
}

var _ sdktrace.SpanProcessor = (*counts)(nil)

// OnStart implements sdktrace.SpanProcessor.
func (c *counts) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor.
func (c *counts) OnEnd(s sdktrace.ReadOnlySpan) {
	if s.SpanContext().IsSampled() {
		c.ended.Add(1)
	}
}

// Shutdown implements sdktrace.SpanProcessor.
func (c *counts) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdktrace.SpanProcessor.
func (c *counts) ForceFlush(context.Context) error { return nil }

func (c *counts) exporter() sdktrace.SpanExporter {
	c.told.Interval = tellEvery
	return counted{c}
}

// counted is the exporter. A failure is counted and logged here, and so is none for the SDK's global handler.
type counted struct{ *counts }

// ExportSpans implements sdktrace.SpanExporter.
func (c counted) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := c.next.ExportSpans(ctx, spans); err != nil {
		c.failed.Add(uint64(len(spans)))
		c.told.Do(func() { c.log.Warn("spans could not be exported", "spans", len(spans), "error", err) })
		return nil
	}
	c.exported.Add(uint64(len(spans)))
	return nil
}

// Shutdown implements sdktrace.SpanExporter.
func (c counted) Shutdown(ctx context.Context) error { return c.next.Shutdown(ctx) }
