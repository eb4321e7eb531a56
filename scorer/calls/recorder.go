package calls

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/kvscout/kvscout/indexer/indexrpc"
)

// MethodOther stands for every path that is no method.
const MethodOther = "other"

// codeOK is the code of calls that went well, as connect has no name for it.
const codeOK = "ok"

// Options configures a Recorder. The zero value gives request ids and nothing else.
type Options struct {
	// Methods are the procedures that are told apart, as "/package.Service/Method".
	Methods []string
	// Observe gets every call when it has ended; nil tells nobody.
	Observe func(Done)
	// Tracer makes a span of each call; nil makes none.
	Tracer trace.Tracer
	// Logger gets a line a call: at debug if it went well or never came to a handler, else at info. Nil logs nothing.
	Logger *slog.Logger
}

// Done is a call that has ended.
type Done struct {
	// Method is "package.Service/Method", or MethodOther.
	Method string
	// Code is connect's name of the code, or "ok".
	Code     string
	Duration time.Duration
	// Trace is the trace that the call belongs to; not valid without one.
	Trace trace.SpanContext
}

// Recorder follows calls. Make it with New.
type Recorder struct {
	opts    Options
	log     *slog.Logger
	methods map[string]string // by path
}

// New returns a recorder. It keeps a copy of the list of methods.
func New(opts Options) *Recorder {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Recorder{opts: opts, log: opts.Logger, methods: make(map[string]string)}
	for _, m := range opts.Methods {
		r.methods[m] = strings.TrimPrefix(m, "/")
	}
	return r
}

// call is one call under way. It is the context of its request, so that it costs one allocation.
type call struct {
	context.Context // of the request, with the trace if there is one

	writer    writer // of a call that is an HTTP request
	begin     time.Time
	method    string
	requestID string
	ids       [1]string // requestID as a header's values
	span      trace.Span

	// Set by the interceptor, before the handler of the whole returns.
	handled bool
	err     error
}

// path is the method as it is called.
func (c *call) path() string {
	if c.method == MethodOther {
		return MethodOther
	}
	return "/" + c.method
}

type callKey struct{}

// Value implements context.Context.
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// of is the call that a context belongs to; nil outside of calls.
func of(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// RequestID is the id of the call that ctx belongs to, empty outside of calls.
func RequestID(ctx context.Context) string {
	if c := of(ctx); c != nil {
		return c.requestID
	}
	return ""
}

// Handler follows every request to next.
func (r *Recorder) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var carrier propagation.TextMapCarrier
		if len(req.Header["Traceparent"]) == 1 {
			carrier = propagation.HeaderCarrier(req.Header)
		}
		c := new(call)
		r.begin(req.Context(), c, req.URL.Path, req.Header[headerRequestID], carrier)
		c.writer.ResponseWriter = w
		w.Header()[headerRequestID] = c.ids[:]
		defer func() { // a panic of what lies between this and a handler passes on
			code := codeOK
			if !c.handled {
				code = c.writer.code()
			}
			r.ended(c, code)
		}()
		next.ServeHTTP(&c.writer, req.WithContext(c))
	})
}

// begin begins a call in ctx. ids are the caller's request ids; carrier has the caller's trace, nil if it says none.
func (r *Recorder) begin(ctx context.Context, c *call, path string, ids []string, carrier propagation.TextMapCarrier) {
	c.Context, c.begin, c.method = ctx, time.Now(), r.methods[path]
	if c.method == "" {
		c.method = MethodOther
	}
	c.requestID = requestID(ids)
	c.ids[0] = c.requestID
	if carrier != nil {
		c.Context = propagation.TraceContext{}.Extract(c.Context, carrier)
	}
	if r.opts.Tracer != nil && c.method != MethodOther {
		c.Context, c.span = r.opts.Tracer.Start(c.Context, c.method, trace.WithSpanKind(trace.SpanKindServer),
			trace.WithTimestamp(c.begin))
	}
}

// ended tells of a call. unhandled is its code if no handler gave one.
func (r *Recorder) ended(c *call, unhandled string) {
	d := Done{Method: c.method, Code: codeOK, Trace: trace.SpanContextFromContext(c.Context)}
	reason, level := "", slog.LevelDebug
	switch {
	case c.err != nil:
		d.Code, level = connect.CodeOf(c.err).String(), slog.LevelInfo
		var failed *indexrpc.Error
		if errors.As(c.err, &failed) {
			reason = failed.Reason.String()
		}
	case !c.handled:
		d.Code = unhandled
	}
	d.Duration = time.Since(c.begin)
	if c.span != nil {
		endSpan(c.span, &d, reason)
	}
	if r.opts.Observe != nil {
		r.opts.Observe(d)
	}
	if r.log.Enabled(c, level) {
		r.log.LogAttrs(c, level, "call", append([]slog.Attr{slog.String("method", c.path()), slog.String("code", d.Code),
			slog.String("reason", reason), slog.Duration("duration", d.Duration)}, c.names()...)...)
	}
}
