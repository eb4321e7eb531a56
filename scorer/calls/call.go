package calls

import (
	"context"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/propagation"
)

// Call is a call under way that came by no HTTP request. It is the context in which it is to be handled, and must be ended
// once.
type Call struct {
	call
	recorder *Recorder
	code     string
}

// Begin begins a call of path, "/package.Service/Method". ids are the request ids that its caller gave; trace has the
// caller's trace, nil for none.
func (r *Recorder) Begin(ctx context.Context, path string, ids []string, trace propagation.TextMapCarrier) *Call {
	c := &Call{recorder: r, code: codeOK}
	r.begin(ctx, &c.call, path, ids, trace)
	return c
}

// RequestIDs has the call's id, which every answer must have, as the values of a header. Nobody may change them.
func (c *Call) RequestIDs() []string { return c.ids[:] }

// Handled says how the call's handler ended, which in HTTP the interceptor sees.
func (c *Call) Handled(err error) { c.handled, c.err = true, err }

// Unhandled says what is answered to a call that never came to its handler, or got no further.
func (c *Call) Unhandled(code connect.Code) { c.code = code.String() }

// End tells of the call.
func (c *Call) End() { c.recorder.ended(&c.call, c.code) }
