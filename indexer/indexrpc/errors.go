package indexrpc

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kvscout/kvscout/indexer/ingest"
)

// Domain is the domain of every ErrorInfo.
const Domain = "kvscout"

// Error is a failed call before it takes the form of a protocol.
type Error struct {
	Reason Reason
	// Err is what the caller reads. It holds no salt and no token id.
	Err error
	// RetryAfter is how long the caller should wait before another try; 0 says nothing about it.
	RetryAfter time.Duration
}

// Failf makes an Error; %w works as in fmt.Errorf.
func Failf(r Reason, format string, args ...any) *Error {
	return &Error{Reason: r, Err: fmt.Errorf(format, args...)}
}

// Overloaded is the error of a call over a bound that others will soon leave room under.
func Overloaded(format string, args ...any) *Error {
	e := Failf(ReasonOverloaded, format, args...)
	e.RetryAfter = overloadPause
	return e
}

// overloadPause is how long a refused caller should wait: several times a Score, far below a person's patience.
const overloadPause = 100 * time.Millisecond

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// sentinels are the errors of other packages that mean something to callers.
var sentinels = []struct {
	err    error
	reason Reason
}{
	{context.Canceled, ReasonCanceled},
	{context.DeadlineExceeded, ReasonDeadline},
	{ingest.ErrUnknownModel, ReasonUnknownModel},
	{ingest.ErrModelRequired, ReasonModelRequired},
	{ingest.ErrWorker, ReasonBadWorker},
	{ingest.ErrTooMany, ReasonTooManyWorkers},
	{ingest.ErrTaken, ReasonSourceTaken},
	{ingest.ErrUnknownWorker, ReasonUnknownWorker},
	{ingest.ErrUnknownRank, ReasonUnknownRank},
	{ingest.ErrHasEndpoint, ReasonHasEndpoint},
	{ingest.ErrClosed, ReasonNotReady},
}

var errInternal = errors.New("internal error")

// Classify gives any error its reason. What it does not know is ReasonInternal, and its text stays here.
func Classify(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return &Error{Reason: s.reason, Err: err}
		}
	}
	return &Error{Reason: ReasonInternal, Err: errInternal}
}

// Connect is the error as connect sends it: code, text, ErrorInfo, and RetryInfo if waiting helps.
func (e *Error) Connect() *connect.Error {
	out := connect.NewError(e.Reason.Code(), e)
	addDetail(out, &errdetails.ErrorInfo{Reason: e.Reason.String(), Domain: Domain})
	if e.RetryAfter > 0 {
		addDetail(out, &errdetails.RetryInfo{RetryDelay: durationpb.New(e.RetryAfter)})
		// The same for callers that read no details, in the whole seconds that HTTP has.
		out.Meta().Set("Retry-After", strconv.FormatInt(int64((e.RetryAfter+time.Second-1)/time.Second), 10))
	}
	return out
}

func addDetail(to *connect.Error, m proto.Message) {
	// It fails for messages that cannot be marshalled, which these two always can.
	if d, err := connect.NewErrorDetail(m); err == nil {
		to.AddDetail(d)
	}
}

// answer turns what a handler computed into what connect wants.
func answer[T any](msg *T, err error) (*connect.Response[T], error) {
	if err != nil {
		return nil, Classify(err).Connect()
	}
	return connect.NewResponse(msg), nil
}
