package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/kvscout/kvscout/scorer/tracing"
)

// traceOptions are the settings of traces.
type traceOptions struct {
	endpoint, protocol string
	ratio              float64
	given              bool // ratio
}

func (o *traceOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.endpoint, "otlp-endpoint", "", "`URL` of an OpenTelemetry collector that gets traces, as http://HOST:4318; the OTEL_EXPORTER_OTLP_ variables count too (default: none, nothing is traced)")
	f.StringVar(&o.protocol, "otlp-protocol", "", "how traces are sent: http/protobuf or grpc (default: OTEL_EXPORTER_OTLP_PROTOCOL, or http/protobuf)")
	f.Float64Var(&o.ratio, "trace-ratio", tracing.DefaultRatio, "share of traces, 0 to 1, of calls whose caller does not trace; one that does decides itself")
}

func (o *traceOptions) resolve(flags *pflag.FlagSet) error {
	o.given = flags.Changed("trace-ratio")
	var faults []error
	if !(o.ratio >= 0 && o.ratio <= 1) {
		faults = append(faults, fmt.Errorf("trace-ratio %v is not 0 to 1", o.ratio))
	}
	switch o.protocol {
	case "", tracing.ProtocolHTTP, tracing.ProtocolGRPC:
	default:
		faults = append(faults, fmt.Errorf("otlp-protocol %q is not %s or %s", o.protocol, tracing.ProtocolHTTP, tracing.ProtocolGRPC))
	}
	return errors.Join(faults...)
}

// open returns nil if nothing is to be traced.
func (o *traceOptions) open(ctx context.Context, log *slog.Logger) (*tracing.Provider, error) {
	opts := tracing.Options{Endpoint: o.endpoint, Protocol: o.protocol, Ratio: -1, Version: version(), Logger: log}
	if o.given {
		opts.Ratio = o.ratio
	}
	p, err := tracing.New(ctx, opts)
	if err != nil {
		return nil, usageError{fmt.Errorf("otlp-endpoint: %w", err)}
	}
	return p, nil
}
