package scorerpc

import (
	"errors"
	"fmt"

	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/render"
	"github.com/kvscout/kvscout/scorer"
	"github.com/kvscout/kvscout/scorer/turn"
)

// renderReasons says what a failed render means to the caller of Score.
var renderReasons = [render.ReasonCount]indexrpc.Reason{
	render.ReasonPath:             indexrpc.ReasonBadPath,
	render.ReasonHeader:           indexrpc.ReasonBadHeader,
	render.ReasonBodyTooLarge:     indexrpc.ReasonBodyTooLarge,
	render.ReasonBadRequest:       indexrpc.ReasonBadBody,
	render.ReasonUnknownModel:     indexrpc.ReasonUnknownModel,
	render.ReasonScaleOutDisabled: indexrpc.ReasonRendererUnusable,
	render.ReasonNoRoute:          indexrpc.ReasonRendererUnusable,
	render.ReasonUnauthorized:     indexrpc.ReasonRendererUnusable,
	render.ReasonOverloaded:       indexrpc.ReasonOverloaded,
	render.ReasonDown:             indexrpc.ReasonRendererDown,
	render.ReasonTimeout:          indexrpc.ReasonDeadline,
	render.ReasonContract:         indexrpc.ReasonRendererUnusable,
	render.ReasonTooLarge:         indexrpc.ReasonPromptTooLong,
	render.ReasonUntrusted:        indexrpc.ReasonRenderNotTrusted,
	render.ReasonNotExact:         indexrpc.ReasonRenderNotExact,
	render.ReasonUnusable:         indexrpc.ReasonRendererUnusable,
	render.ReasonNoRenderer:       indexrpc.ReasonNoRenderer,
}

// classify gives any error of this package its reason.
func classify(err error) *indexrpc.Error {
	var known *indexrpc.Error
	var rendering *render.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &rendering) && rendering.Reason < render.ReasonCount:
		return classifyRender(rendering)
	case errors.Is(err, turn.ErrCrowded):
		return indexrpc.Overloaded("%w", err)
	case errors.Is(err, scorer.ErrWeight):
		return &indexrpc.Error{Reason: indexrpc.ReasonBadTierWeight, Err: err}
	default:
		return indexrpc.Classify(err)
	}
}

func classifyRender(e *render.Error) *indexrpc.Error {
	out := &indexrpc.Error{Reason: renderReasons[e.Reason], Err: e, RetryAfter: e.RetryAfter}
	if e.Message != "" {
		// It may quote the prompt: it goes to the caller, who sent the prompt, and nowhere else.
		out.Err = fmt.Errorf("%w: %s", e, e.Message)
	}
	if out.Reason == indexrpc.ReasonOverloaded && out.RetryAfter == 0 {
		out.RetryAfter = indexrpc.Overloaded("").RetryAfter
	}
	return out
}
