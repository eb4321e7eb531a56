package tracing

import (
	"context"
	"fmt"
	"net/url"
	"os"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
)

// The protocols, named as the specification does.
const (
	ProtocolHTTP = "http/protobuf"
	ProtocolGRPC = "grpc"
)

// tracesPath is where collectors take traces by HTTP.
const tracesPath = "/v1/traces"

// newExporter makes the exporter of the protocol. What the options leave out it takes from the OTEL_ variables itself:
// endpoint, headers, timeout, compression, certificates.
func newExporter(ctx context.Context, o Options) (*otlptrace.Exporter, error) {
	protocol := firstOf(o.Protocol, os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), ProtocolHTTP)
	if o.Endpoint != "" {
		u, err := url.Parse(o.Endpoint)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
			return nil, fmt.Errorf("%w: the endpoint is not like http://host:4318", ErrOptions) // it may hold a password
		}
		if protocol == ProtocolHTTP && (u.Path == "" || u.Path == "/") {
			o.Endpoint = u.Scheme + "://" + u.Host + tracesPath
		}
	}
	var client otlptrace.Client
	switch protocol {
	case ProtocolGRPC:
		var opts []otlptracegrpc.Option
		if o.Endpoint != "" {
			opts = append(opts, otlptracegrpc.WithEndpointURL(o.Endpoint))
		}
		client = otlptracegrpc.NewClient(opts...)
	case ProtocolHTTP:
		var opts []otlptracehttp.Option
		if o.Endpoint != "" {
			opts = append(opts, otlptracehttp.WithEndpointURL(o.Endpoint))
		}
		client = otlptracehttp.NewClient(opts...)
	default:
		return nil, fmt.Errorf("%w: protocol %q is neither %s nor %s", ErrOptions, protocol, ProtocolHTTP, ProtocolGRPC)
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return exporter, nil
}

// hostOf is an endpoint without what may be secret in it.
func hostOf(endpoint string) string {
	if u, err := url.Parse(endpoint); err == nil && u.Host != "" {
		return u.Host
	}
	return "(set)"
}
