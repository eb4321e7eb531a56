package server

import (
	"context"
	"fmt"
	"sync"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/propagation"

	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/scorer/access"
	"github.com/kvscout/kvscout/scorer/calls"
	"github.com/kvscout/kvscout/scorer/codec"
)

// unary is a method that routers wait for: a message in, in the parts in which it came, and one out, appended. It errs with a
// *connect.Error, and keeps nothing of what came in.
type unary func(ctx context.Context, in [][]byte, out []byte) ([]byte, error)

// answerSize is room for the usual answer.
const answerSize = 16 << 10

// form is how messages are encoded.
type form interface {
	Unmarshal(data []byte, message any) error
	MarshalAppend(dst []byte, message any) ([]byte, error)
}

// unary has the methods by name, for messages of a form.
func (m scoreMethods) unary(f form) map[string]unary {
	return map[string]unary{
		kvscoutv1connect.ScoreServiceScoreProcedure: func(ctx context.Context, in [][]byte, out []byte) ([]byte, error) {
			return m.scoreMessage(ctx, f, in, out)
		},
		kvscoutv1connect.ScoreServiceScoreBatchProcedure: func(ctx context.Context, in [][]byte, out []byte) ([]byte, error) {
			return m.scoreBatchMessage(ctx, f, in, out)
		},
	}
}

// admit asks the guard, if there is one, about a call, and notes its refusal.
func (s *Server) admit(c *calls.Call, asked access.Call) (access.Admission, *indexrpc.Error) {
	if s.opts.Guard == nil {
		return access.Admission{}, nil
	}
	admitted, refused := s.opts.Guard.Admit(asked)
	if refused != nil {
		c.Unhandled(refused.Reason.Code())
	}
	return admitted, refused
}

// carried carries the trace that a caller says it has; nil if it says none.
func carried(parent, state string) propagation.TextMapCarrier {
	if parent == "" {
		return nil
	}
	return propagation.MapCarrier{"traceparent": parent, "tracestate": state}
}

// guarded makes a panic an error.
func (s *Server) guarded(ctx context.Context, method string, serve unary, in [][]byte, room []byte) (out []byte, err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			err = s.recovered(ctx, connect.Spec{Procedure: method}, nil, thrown)
		}
	}()
	return serve(ctx, in, room)
}

// requests are those of Score, of which a handler keeps none.
var requests = sync.Pool{New: func() any { return new(codec.ScoreRequest) }}

// scoreMessage is Score.
func (m scoreMethods) scoreMessage(ctx context.Context, f form, in [][]byte, out []byte) ([]byte, error) {
	req := requests.Get().(*codec.ScoreRequest)
	defer func() {
		req.Release()
		*req = codec.ScoreRequest{}
		requests.Put(req)
	}()
	if err := readScore(f, in, req); err != nil {
		return nil, invalid(err)
	}
	answer, err := m.score(ctx, req)
	if err != nil {
		return nil, err
	}
	return encode(f, out, answer)
}

// readScore reads a request, whose prompt is copied once.
func readScore(f form, in [][]byte, req *codec.ScoreRequest) error {
	if parts, ok := f.(interface {
		UnmarshalParts([][]byte, *codec.ScoreRequest) error
	}); ok && len(in) > 0 {
		return parts.UnmarshalParts(in, req)
	}
	return whole(in, func(data []byte) error { return f.Unmarshal(data, req) })
}

// scoreBatchMessage is ScoreBatch.
func (m scoreMethods) scoreBatchMessage(ctx context.Context, f form, in [][]byte, out []byte) ([]byte, error) {
	req := new(codec.ScoreBatchRequest)
	defer req.Release()
	if err := whole(in, func(data []byte) error { return f.Unmarshal(data, req) }); err != nil {
		return nil, invalid(err)
	}
	answer, err := m.service.ScoreBatch(ctx, connect.NewRequest(&req.ScoreBatchRequest))
	if err != nil {
		return nil, err
	}
	return encode(f, out, answer.Msg)
}

// whole reads the parts as one, which are valid until read returns.
func whole(in [][]byte, read func([]byte) error) error {
	switch len(in) {
	case 0:
		return read(nil)
	case 1:
		return read(in[0])
	}
	size := 0
	for _, part := range in {
		size += len(part)
	}
	joined := buffers.Get(size)
	defer buffers.Put(joined)
	data := (*joined)[:0]
	for _, part := range in {
		data = append(data, part...)
	}
	return read(data)
}

// invalid is the error of a message that cannot be read.
func invalid(err error) error {
	return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("unmarshal message: %w", err))
}

func encode(f form, out []byte, message any) ([]byte, error) {
	out, err := f.MarshalAppend(out, message)
	if err != nil {
		return nil, connect.NewError(connect.CodeInternal, fmt.Errorf("marshal message: %w", err))
	}
	return out, nil
}
