package scorerpc

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/indexer/ingest"
)

func serviceWith(t testing.TB, opts Options) *Service {
	index := indexer.New(indexer.Options{})
	fleet := ingest.New(index, ingest.Options{})
	t.Cleanup(fleet.Close)
	return New(index, fleet, opts)
}

// Steps of calls that are not traced cost no allocation, be it that nothing is or that this call is not sampled.
func TestStep_AllocatesNothingUntraced(t *testing.T) {
	provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	unsampled, _ := provider.Tracer("t").Start(t.Context(), "call")
	for name, c := range map[string]struct {
		ctx    context.Context
		tracer trace.Tracer
	}{"off": {t.Context(), nil}, "unsampled": {unsampled, provider.Tracer("t")}} {
		s := serviceWith(t, Options{Tracer: c.tracer, LookedUp: func(time.Duration) {}})
		if n := testing.AllocsPerRun(100, func() {
			ctx, looking := s.step(c.ctx, stepLookup, true)
			s.lookedUp(&looking, nil, 1)
			_, scoring := s.step(ctx, stepScore, false)
			scoring.end(nil, 1, "workers")
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// A step that fails tells its reason and not its text, which may quote the request.
func TestStep_Error(t *testing.T) {
	got := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(got)).Tracer("t")
	s := serviceWith(t, Options{Tracer: tracer})
	ctx, call := tracer.Start(t.Context(), "call")
	_, keying := s.step(ctx, stepKey, false)
	keying.end(indexrpc.Failf(indexrpc.ReasonNegativeToken, "token %d", -31337), 0, "prompt_tokens")
	_, rendering := s.step(ctx, stepRender, false)
	rendering.end(errors.New("31337"), 0, "prompts")
	call.End()
	for i, reason := range []string{"NEGATIVE_TOKEN", "INTERNAL"} {
		span := got.Ended()[i]
		if span.Status().Code != codes.Error || span.Status().Description != reason || len(span.Events()) != 0 ||
			len(span.Attributes()) != 1 || span.Attributes()[0] != attribute.String("kvscout.reason", reason) {
			t.Errorf("%s: %+v, %v, %v", span.Name(), span.Status(), span.Attributes(), span.Events())
		}
	}
}
