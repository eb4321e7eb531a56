package server

import (
	"context"
	"errors"
	"io"
	"strings"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/propagation"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/kvscout/kvscout/scorer/access"
)

// answer answers a call of a method as the HTTP handlers around it would: the same guard, limits, request ids, records and errors.
func (g *grpcServer) answer(stream grpc.ServerStream, a *arrival, method string, serve unary) error {
	c := g.owner.recorder.Begin(a, method, a.header["x-request-id"], traceOf(a.header))
	defer c.End()
	// It fails for calls that have ended, which the next step sees.
	_ = stream.SetHeader(metadata.MD{"x-request-id": c.RequestIDs()})
	admitted, refused := g.owner.admit(c, a.call(method))
	if refused != nil {
		if refused.Reason.Code() == connect.CodeUnauthenticated {
			_ = stream.SetHeader(metadata.MD{"www-authenticate": {"Bearer"}})
		}
		return failed(stream, refused.Connect())
	}
	defer admitted.End()
	in, err := only(stream)
	if err != nil {
		c.Unhandled(connect.Code(status.Code(err)))
		return err
	}
	room := buffers.Get(answerSize)
	parts := make([][]byte, 0, 8)
	for _, b := range in {
		parts = append(parts, b.ReadOnlyData())
	}
	out, err := g.owner.guarded(c, method, serve, parts, (*room)[:0])
	in.Free()
	c.Handled(err)
	if err != nil {
		buffers.Put(room)
		return failed(stream, err)
	}
	*room = out
	return stream.SendMsg(&frame{mem.BufferSlice{mem.NewBuffer(room, buffers)}})
}

// only reads the one message that there must be. It errs with a status.
func only(stream grpc.ServerStream) (mem.BufferSlice, error) {
	var in, more frame
	if err := stream.RecvMsg(&in); err != nil {
		if errors.Is(err, io.EOF) {
			err = status.Error(codes.Unimplemented, "unary request has zero messages")
		}
		return nil, err
	}
	err := stream.RecvMsg(&more)
	if errors.Is(err, io.EOF) {
		return in.data, nil
	}
	if err == nil {
		more.data.Free()
		err = status.Error(codes.Unimplemented, "unary request has multiple messages")
	}
	in.data.Free()
	return nil, err
}

// failed is the status of an error, whose metadata goes into the trailer.
func failed(stream grpc.ServerStream, err error) error {
	var e *connect.Error
	if !errors.As(err, &e) {
		return status.FromContextError(err).Err()
	}
	if md := fromHeader(e.Meta(), ""); len(md) > 0 {
		stream.SetTrailer(md)
	}
	out := &spb.Status{Code: int32(e.Code()), Message: e.Message()}
	for _, d := range e.Details() {
		out.Details = append(out.Details, &anypb.Any{TypeUrl: "type.googleapis.com/" + d.Type(), Value: d.Bytes()})
	}
	return status.ErrorProto(out)
}

// arrival is the context of a unary call from its headers on, with its own end.
type arrival struct {
	context.Context
	cancel context.CancelFunc
	header metadata.MD // in small letters, not to be changed
}

type arrivalKey struct{}

// Value implements context.Context.
func (a *arrival) Value(key any) any {
	if key == (arrivalKey{}) {
		return a
	}
	return a.Context.Value(key)
}

// call is what the guard is told of the call.
func (a *arrival) call(method string) access.Call {
	remote, state := from(a)
	return access.Call{Procedure: method, Authorization: a.header["authorization"], TLS: state, Remote: remote}
}

// traceOf carries the trace that a caller says it has, if it says one.
func traceOf(md metadata.MD) propagation.TextMapCarrier {
	if len(md["traceparent"]) != 1 {
		return nil
	}
	return carried(md["traceparent"][0], strings.Join(md["tracestate"], ","))
}
