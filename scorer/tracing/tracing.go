package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const (
	// StopTime bounds how long Close sends what waits.
	StopTime = 3 * time.Second
	// DefaultRatio is the share of traces that are sampled of those that begin here: callers that trace decide themselves,
	// and a scorer has many calls.
	DefaultRatio = 0.01
)

// ErrOptions is a configuration that cannot be used.
var ErrOptions = errors.New("bad tracing options")

// Options configures a Provider.
type Options struct {
	// Endpoint is the collector's, as "http://host:4318" or "https://host:4317"; http is without TLS. Empty takes the
	// variables OTEL_EXPORTER_OTLP_TRACES_ENDPOINT and OTEL_EXPORTER_OTLP_ENDPOINT, and without them nothing is traced.
	Endpoint string
	// Protocol is ProtocolHTTP or ProtocolGRPC; empty takes the variables OTEL_EXPORTER_OTLP_TRACES_PROTOCOL and
	// OTEL_EXPORTER_OTLP_PROTOCOL, and without them ProtocolHTTP.
	Protocol string
	// Ratio of traces that begin here and are sampled, 0 to 1. Negative leaves it to OTEL_TRACES_SAMPLER, or DefaultRatio.
	Ratio float64
	// Version is that of the service.
	Version string
	Logger  *slog.Logger
}

// Provider makes spans and exports them. A nil one does neither. Make it with New.
type Provider struct {
	sdk    *sdktrace.TracerProvider
	counts *counts
}

// New returns a provider, or nil if nothing is to be traced. It connects to nothing yet. It errs with ErrOptions.
func New(ctx context.Context, o Options) (*Provider, error) {
	endpoint := firstOf(o.Endpoint, os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
	if endpoint == "" || os.Getenv("OTEL_SDK_DISABLED") == "true" {
		return nil, nil
	}
	if o.Ratio > 1 {
		return nil, fmt.Errorf("%w: ratio %v is over 1", ErrOptions, o.Ratio)
	}
	exporter, err := newExporter(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Provider{counts: &counts{next: exporter, log: o.Logger}}
	opts := []sdktrace.TracerProviderOption{
		sdktrace.WithResource(describe(ctx, o.Version)),
		sdktrace.WithSpanProcessor(p.counts),
		sdktrace.WithBatcher(p.counts.exporter()),
		sdktrace.WithRawSpanLimits(sdktrace.SpanLimits{
			AttributeValueLengthLimit: 256, AttributeCountLimit: 32, EventCountLimit: 8, LinkCountLimit: 8,
			AttributePerEventCountLimit: 8, AttributePerLinkCountLimit: 8,
		}),
	}
	if sampler := o.sampler(); sampler != nil {
		opts = append(opts, sdktrace.WithSampler(sampler))
	}
	p.sdk = sdktrace.NewTracerProvider(opts...)
	o.Logger.Info("traces are exported", "endpoint", hostOf(endpoint), "sampler", o.samplerName())
	return p, nil
}

// sampler is nil if the variables of the specification say it.
func (o Options) sampler() sdktrace.Sampler {
	switch {
	case o.Ratio >= 0:
		return sdktrace.ParentBased(sdktrace.TraceIDRatioBased(o.Ratio))
	case os.Getenv("OTEL_TRACES_SAMPLER") != "":
		return nil
	default:
		return sdktrace.ParentBased(sdktrace.TraceIDRatioBased(DefaultRatio))
	}
}

func (o Options) samplerName() string {
	if s := o.sampler(); s != nil {
		return s.Description()
	}
	return os.Getenv("OTEL_TRACES_SAMPLER")
}

// describe is what spans are of: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES go first.
func describe(ctx context.Context, version string) *resource.Resource {
	own := resource.NewSchemaless(attribute.String("service.name", "kvscout"), attribute.String("service.version", version))
	said, err := resource.New(ctx, resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return own // a variable that cannot be read costs what it says
	}
	merged, err := resource.Merge(own, said)
	if err != nil {
		return own
	}
	return merged
}

// Tracer is nil if nothing is traced.
func (p *Provider) Tracer() trace.Tracer {
	if p == nil {
		return nil
	}
	return p.sdk.Tracer("github.com/kvscout/kvscout")
}

// Close sends what waits and ends the exporter, within StopTime.
func (p *Provider) Close(ctx context.Context) error {
	if p == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), StopTime)
	defer cancel()
	if err := p.sdk.Shutdown(ctx); err != nil {
		return fmt.Errorf("tracing: %w", err)
	}
	return nil
}

// Inject writes the trace of ctx into the headers of a request that is made for it; nothing if there is none. It replaces
// what the headers say of a trace.
func Inject(ctx context.Context, h http.Header) {
	if trace.SpanContextFromContext(ctx).IsValid() {
		delete(h, "Tracestate")
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h))
	}
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
