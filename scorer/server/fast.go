package server

import (
	"context"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/scorer/codec"
)

// handleScores takes the calls that routers wait for, in memory that is used again: a request is its handler's until it
// returns. The other methods of the service are reached as generated.
func handleScores(mux *http.ServeMux, service kvscoutv1connect.ScoreServiceHandler, opts []connect.HandlerOption) {
	methods := kvscoutv1.File_kvscout_v1_score_proto.Services().ByName("ScoreService").Methods()
	with := func(name string, level connect.IdempotencyLevel) connect.HandlerOption {
		return connect.WithHandlerOptions(append(opts[:len(opts):len(opts)],
			connect.WithSchema(methods.ByName(protoreflect.Name(name))), connect.WithIdempotency(level))...)
	}
	m := scoreMethods{service}
	mux.Handle(kvscoutv1connect.ScoreServiceScoreProcedure, connect.NewUnaryHandler(
		kvscoutv1connect.ScoreServiceScoreProcedure,
		func(ctx context.Context, req *connect.Request[codec.ScoreRequest]) (*connect.Response[codec.ScoreResponse], error) {
			defer req.Msg.Release()
			out, err := m.score(ctx, req.Msg)
			if err != nil {
				return nil, err
			}
			return connect.NewResponse(out), nil
		}, with("Score", connect.IdempotencyNoSideEffects)))
	mux.Handle(kvscoutv1connect.ScoreServiceScoreBatchProcedure, connect.NewUnaryHandler(
		kvscoutv1connect.ScoreServiceScoreBatchProcedure,
		func(ctx context.Context, req *connect.Request[codec.ScoreBatchRequest]) (*connect.Response[kvscoutv1.ScoreBatchResponse], error) {
			defer req.Msg.Release()
			return service.ScoreBatch(ctx, connect.NewRequest(&req.Msg.ScoreBatchRequest))
		}, with("ScoreBatch", connect.IdempotencyNoSideEffects)))
	if s, ok := service.(streamReleaser); ok {
		mux.Handle(kvscoutv1connect.ScoreServiceScoreStreamProcedure, connect.NewBidiStreamHandler(
			kvscoutv1connect.ScoreServiceScoreStreamProcedure, s.ScoreStreamReleased, with("ScoreStream", connect.IdempotencyUnknown)))
	}
}

// streamReleaser is a service that reads streams in memory that is used again.
type streamReleaser interface {
	ScoreStreamReleased(context.Context, *connect.BidiStream[codec.ScoreStreamRequest, kvscoutv1.ScoreStreamResponse]) error
}

// scoreMethods are the methods that routers wait for.
type scoreMethods struct {
	service kvscoutv1connect.ScoreServiceHandler
}

// score answers a request, which the caller releases afterwards. The answer is released when it is written.
func (m scoreMethods) score(ctx context.Context, req *codec.ScoreRequest) (*codec.ScoreResponse, error) {
	releaser, ok := m.service.(interface {
		ScoreReleased(context.Context, *kvscoutv1.ScoreRequest) (*codec.ScoreResponse, error)
	})
	if ok {
		return releaser.ScoreReleased(ctx, &req.ScoreRequest)
	}
	out, err := m.service.Score(ctx, connect.NewRequest(&req.ScoreRequest))
	if err != nil {
		return nil, err
	}
	return &codec.ScoreResponse{ScoreResponse: out.Msg}, nil
}
