package scorerpc

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// The steps of a request, which are spans of a traced call and children of the call's own. Blocks are hashed as the index is
// walked, so that their keys are part of stepLookup; stepKey is what comes before: tokens, model, namespace.
const (
	stepRender = "render"
	stepKey    = "key"
	stepLookup = "lookup"
	stepScore  = "score"
)

// step is one under way.
type step struct {
	begin time.Time
	span  trace.Span // nil where nothing is traced
}

// step begins one. The context is its span's, if the call is traced; else it is ctx, nothing is allocated, and the clock is
// read only if the step is timed.
func (s *Service) step(ctx context.Context, name string, timed bool) (context.Context, step) {
	traced := s.opts.Tracer != nil && trace.SpanFromContext(ctx).IsRecording()
	if !traced && !timed {
		return ctx, step{}
	}
	st := step{begin: time.Now()}
	if traced {
		ctx, st.span = s.opts.Tracer.Start(ctx, name, trace.WithTimestamp(st.begin))
	}
	return ctx, st
}

// end ends a step and returns how long it took, 0 if nobody wants to know. n of what is what it brought. Of an error only its
// reason is told: its text may quote the request.
func (st *step) end(err error, n int, what string) time.Duration {
	if st.begin.IsZero() {
		return 0
	}
	took := time.Since(st.begin)
	if st.span == nil {
		return took
	}
	if err != nil {
		reason := classify(err).Reason.String()
		st.span.SetAttributes(attribute.String("kvscout.reason", reason))
		st.span.SetStatus(codes.Error, reason)
	} else {
		st.span.SetAttributes(attribute.Int("kvscout."+what, n))
	}
	st.span.End(trace.WithTimestamp(st.begin.Add(took)))
	return took
}

// say adds to the span of a step, if there is one.
func (st *step) say(name, value string) {
	if st.span != nil {
		st.span.SetAttributes(attribute.String("kvscout."+name, value))
	}
}

// Outcomes of renders, for Options.Rendered.
const (
	RenderedFresh  = "rendered"
	RenderedCached = "cached"
	RenderedFailed = "failed"
)

// lookedUp tells of a lookup that ended.
func (s *Service) lookedUp(st *step, err error, found int) {
	took := st.end(err, found, "sources")
	if s.opts.LookedUp != nil {
		s.opts.LookedUp(took)
	}
}
