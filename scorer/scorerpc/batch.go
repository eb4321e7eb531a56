package scorerpc

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer/indexrpc"
)

const (
	// maxBatch bounds the requests of a ScoreBatch.
	maxBatch = 256
	// atOnce is how many requests of one batch run at once: renderers are waited for side by side.
	atOnce = 8
)

// errPanic is a fault of ours. What panicked is in the log only.
var errPanic = errors.New("panic")

// ScoreBatch rates the candidates of several requests.
func (s *Service) ScoreBatch(ctx context.Context, req *connect.Request[kvscoutv1.ScoreBatchRequest]) (*connect.Response[kvscoutv1.ScoreBatchResponse], error) {
	list := req.Msg.GetRequests()
	switch {
	case len(list) == 0:
		return nil, s.failed(ctx, indexrpc.Failf(indexrpc.ReasonNoRequests, "the batch has no request")).Connect()
	case len(list) > maxBatch:
		return nil, s.failed(ctx, indexrpc.Failf(indexrpc.ReasonTooManyRequests, "%d requests, limit %d", len(list), maxBatch)).Connect()
	}
	results := make([]*kvscoutv1.ScoreResult, len(list))
	work := make(chan int, len(list))
	for i := range list {
		work <- i
	}
	close(work)
	var wg sync.WaitGroup
	for range min(atOnce, len(list)) {
		wg.Go(func() { // ended by the end of work, waited for below
			for i := range work {
				results[i] = s.result(ctx, list[i], new(sheet))
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, s.failed(ctx, err).Connect()
	}
	return connect.NewResponse(&kvscoutv1.ScoreBatchResponse{Results: results}), nil
}

// result is what became of one request of many. Its answer lies in sh. A panic costs that request.
func (s *Service) result(ctx context.Context, req *kvscoutv1.ScoreRequest, sh *sheet) (out *kvscoutv1.ScoreResult) {
	if req == nil {
		req = new(kvscoutv1.ScoreRequest)
	}
	out = &kvscoutv1.ScoreResult{Id: req.GetId()}
	defer func() {
		if p := recover(); p != nil {
			// Its text may quote the request.
			s.opts.Logger.ErrorContext(ctx, "score panicked", "panic_type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			out.Response, out.Error = nil, errorOf(s.failed(ctx, errPanic))
		}
	}()
	res, failed := s.counted(ctx, req, sh)
	if failed != nil {
		out.Error = errorOf(failed)
	} else {
		out.Response = res
	}
	return out
}

func errorOf(e *indexrpc.Error) *kvscoutv1.ScoreError {
	out := &kvscoutv1.ScoreError{Code: uint32(e.Reason.Code()), Reason: e.Reason.String(), Message: e.Error()}
	if e.RetryAfter > 0 {
		out.RetryAfter = durationpb.New(e.RetryAfter)
	}
	return out
}
