package render

import "errors"

// Reason says why there is no Result. Its names are the fixed label set of counters.
type Reason uint8

const (
	// ReasonPath: this path is never rendered. The caller's fault.
	ReasonPath Reason = iota
	// ReasonHeader: a header to forward is no legal header, or there is too much of them. The caller's fault.
	ReasonHeader
	// ReasonBodyTooLarge: the body is over Options.MaxBody, or over the renderer's own limit (413).
	ReasonBodyTooLarge
	// ReasonBadRequest: the renderer refused the body (400, 422), as the engine would. The caller's fault.
	ReasonBadRequest
	// ReasonUnknownModel: the renderer does not serve the body's model (404 that names a model). A renderer knows base
	// names only: an adapter's name ends here too.
	ReasonUnknownModel
	// ReasonScaleOutDisabled: an engine that is up but was started without --enable-scale-out (403).
	ReasonScaleOutDisabled
	// ReasonNoRoute: the server has no such route (404, 405, 501): another program, a wrong base path, an old version.
	ReasonNoRoute
	// ReasonUnauthorized: the renderer, or something before it, wants other credentials (401, other 403).
	ReasonUnauthorized
	// ReasonOverloaded: no free slot here, or the renderer sheds load (429, 503 with Retry-After). Worth another try.
	ReasonOverloaded
	// ReasonDown: no connection, a broken one, or a 5xx.
	ReasonDown
	// ReasonTimeout: the deadline passed first.
	ReasonTimeout
	// ReasonContract: an answer that is not what the protocol says.
	ReasonContract
	// ReasonTooLarge: an answer over Options.MaxResponse, MaxTokens, MaxPrompts or a fixed limit.
	ReasonTooLarge
	// ReasonUntrusted: the renderer gave ids and says that the engine may run others (trtllm-render's tokens_trusted).
	ReasonUntrusted
	// ReasonNotExact: the request cannot be rendered exactly in process; the detail names what can. The renderer is well.
	ReasonNotExact
	// ReasonUnusable: the model's files cannot be used: missing, damaged, or of a kind that cannot be rendered in process.
	ReasonUnusable
	// ReasonNoRenderer: no renderer is configured for the model.
	ReasonNoRenderer
	// ReasonCount is the number of reasons.
	ReasonCount
)

var reasonNames = [ReasonCount]string{
	"path", "header", "body_too_large", "bad_request", "unknown_model", "scale_out_disabled", "no_route",
	"unauthorized", "overloaded", "down", "timeout", "contract", "too_large", "untrusted", "not_exact", "unusable",
	"no_renderer",
}

func (r Reason) String() string {
	if r < ReasonCount {
		return reasonNames[r]
	}
	return "unknown"
}

// What an *Error matches with errors.Is, one per Reason.
var (
	ErrPath             = errors.New("path cannot be rendered")
	ErrHeader           = errors.New("header cannot be forwarded")
	ErrBodyTooLarge     = errors.New("request body is too large")
	ErrBadRequest       = errors.New("renderer refused the request")
	ErrUnknownModel     = errors.New("renderer does not serve the model")
	ErrScaleOutDisabled = errors.New("engine runs without --enable-scale-out")
	ErrNoRoute          = errors.New("server has no render route")
	ErrUnauthorized     = errors.New("renderer refused the credentials")
	ErrOverloaded       = errors.New("renderer is overloaded")
	ErrDown             = errors.New("renderer is down")
	ErrTimeout          = errors.New("renderer took too long")
	ErrContract         = errors.New("renderer answered in an unknown form")
	ErrTooLarge         = errors.New("rendered prompt is too large")
	ErrUntrusted        = errors.New("renderer does not vouch for its tokens")
	ErrNotExact         = errors.New("request cannot be rendered exactly in process")
	ErrUnusable         = errors.New("model files cannot be used")
	ErrNoRenderer       = errors.New("no renderer is configured for the model")
)

var sentinels = [ReasonCount]error{
	ErrPath, ErrHeader, ErrBodyTooLarge, ErrBadRequest, ErrUnknownModel, ErrScaleOutDisabled, ErrNoRoute,
	ErrUnauthorized, ErrOverloaded, ErrDown, ErrTimeout, ErrContract, ErrTooLarge, ErrUntrusted,
	ErrNotExact, ErrUnusable, ErrNoRenderer,
}
