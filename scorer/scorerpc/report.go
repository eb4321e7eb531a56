package scorerpc

import (
	"context"
	"errors"
	"slices"
	"time"

	"connectrpc.com/connect"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/indexer/ingest"
	"github.com/kvscout/kvscout/scorer/accuracy"
	"github.com/kvscout/kvscout/scorer/routed"
)

const (
	defaultTTL = 10 * time.Second
	maxTTL     = 5 * time.Minute
)

// reported turns what a report came to into what connect wants.
func reported[T any](ctx context.Context, s *Service, out *T, err error) (*connect.Response[T], error) {
	if err != nil {
		return nil, s.failed(ctx, err).Connect()
	}
	s.requests.Add(1)
	return connect.NewResponse(out), nil
}

// ReportRouted credits a worker with a prompt that was sent to it.
func (s *Service) ReportRouted(ctx context.Context, req *connect.Request[kvscoutv1.ReportRoutedRequest]) (*connect.Response[kvscoutv1.ReportRoutedResponse], error) {
	out, err := s.route(req.Msg)
	return reported(ctx, s, out, err)
}

func (s *Service) route(req *kvscoutv1.ReportRoutedRequest) (*kvscoutv1.ReportRoutedResponse, error) {
	ttl := defaultTTL
	if d := req.GetTtl(); d.AsDuration() != 0 {
		ttl = d.AsDuration()
	}
	if err := req.GetTtl().CheckValid(); req.Ttl != nil && err != nil || ttl < 0 || ttl > maxTTL {
		return nil, indexrpc.Failf(indexrpc.ReasonBadTTL, "ttl %v, want 0 to %v", ttl, maxTTL)
	}
	l, err := s.source(req.GetWorkerId(), req.GetRank())
	if err != nil {
		return nil, err
	}
	q, err := s.routedPrompt(req)
	if err != nil {
		return nil, err
	}
	tokens, err := s.credits.Credit(l, q, time.Now().Add(ttl))
	switch {
	case errors.Is(err, routed.ErrNotCreditable):
		return nil, indexrpc.Failf(indexrpc.ReasonNotCreditable, "worker %.100s: %w", req.GetWorkerId(), err)
	case errors.Is(err, routed.ErrFull):
		return nil, indexrpc.Overloaded("%w", err)
	case err != nil:
		return nil, err
	}
	return &kvscoutv1.ReportRoutedResponse{CreditedTokens: indexrpc.Count(tokens)}, nil
}

// routedPrompt is the prompt that was sent, from the answer or from the report itself.
func (s *Service) routedPrompt(req *kvscoutv1.ReportRoutedRequest) (indexer.Query, error) {
	switch {
	case req.GetScoreId() != "" && req.GetPrompt() != nil:
		return indexer.Query{}, indexrpc.Failf(indexrpc.ReasonTwoPrompts, "both score_id and prompt are set")
	case req.GetScoreId() != "":
		k, err := s.memory.find(req.GetScoreId())
		if err != nil {
			return indexer.Query{}, err
		}
		return k.query, nil
	case req.GetPrompt() == nil:
		return indexer.Query{}, indexrpc.Failf(indexrpc.ReasonNoPrompt, "neither score_id nor prompt is set")
	}
	q, err := indexrpc.ReadPrompt(req.GetPrompt(), s.opts.MaxPromptTokens)
	if err != nil {
		return indexer.Query{}, err
	}
	q.Tokens = slices.Clone(q.Tokens) // a credit keeps them, and the message is its caller's
	return q, indexrpc.Resolve(s.fleet, req.GetPrompt().GetModel(), &q)
}

// source is the ledger of a rank that a report names. It errs with an *indexrpc.Error.
func (s *Service) source(worker string, rank uint32) (*indexer.Ledger, error) {
	if worker == "" {
		return nil, indexrpc.Failf(indexrpc.ReasonBadWorker, "worker_id is missing")
	}
	if l, ok := s.index.Find(worker, int(rank)); ok {
		return l, nil
	}
	if _, ok := s.fleet.Worker(worker); ok {
		return nil, indexrpc.Failf(indexrpc.ReasonUnknownRank, "%w: %.100s has no rank %d", ingest.ErrUnknownRank, worker, rank)
	}
	return nil, indexrpc.Failf(indexrpc.ReasonUnknownWorker, "%w: %.100q", ingest.ErrUnknownWorker, worker)
}

// ReportOutcome compares an engine's own word with what Score had said.
func (s *Service) ReportOutcome(ctx context.Context, req *connect.Request[kvscoutv1.ReportOutcomeRequest]) (*connect.Response[kvscoutv1.ReportOutcomeResponse], error) {
	out, err := s.outcome(ctx, req.Msg)
	return reported(ctx, s, out, err)
}

func (s *Service) outcome(ctx context.Context, req *kvscoutv1.ReportOutcomeRequest) (*kvscoutv1.ReportOutcomeResponse, error) {
	switch {
	case req.GetScoreId() == "":
		return nil, indexrpc.Failf(indexrpc.ReasonNoScoreID, "score_id is missing")
	case req.GetPromptTokens() == 0 || req.GetCachedTokens() > req.GetPromptTokens():
		return nil, indexrpc.Failf(indexrpc.ReasonBadOutcome, "%d cached of %d prompt tokens", req.GetCachedTokens(), req.GetPromptTokens())
	}
	l, err := s.source(req.GetWorkerId(), req.GetRank())
	if err != nil {
		return nil, err
	}
	k, err := s.memory.find(req.GetScoreId())
	if err != nil {
		return nil, err
	}
	j, err := k.said(l.Source())
	if err != nil {
		return nil, err
	}
	o, err := s.weigh(ctx, l, k, j, req)
	if err != nil {
		return nil, err
	}
	if !k.claim(j.source) {
		return nil, indexrpc.Failf(indexrpc.ReasonAlreadyReported, "the outcome of this score and worker was reported before")
	}
	report := s.accuracy.Add(l, o)
	return &kvscoutv1.ReportOutcomeResponse{PredictedTokens: indexrpc.Count(j.reusable), Accuracy: accuracyOf(report)}, nil
}

// said is what the answer said of a source. It errs with an *indexrpc.Error.
func (k *kept) said(src events.Source) (judged, error) {
	for _, j := range k.judged {
		if j.source == keyOf(src) {
			return j, nil
		}
	}
	return judged{}, indexrpc.Failf(indexrpc.ReasonUnknownWorker, "%w: the score did not rate %.100q", ingest.ErrUnknownWorker, src.ID())
}

// sizeRejects are the reasons for which stores are refused when blocks are not of the size that they are said to be.
var sizeRejects = []events.Reason{
	events.ReasonBlockSizeMismatch, events.ReasonBadBlockSize, events.ReasonNotDense, events.ReasonPartialBlock,
}

// weigh puts the prediction beside the outcome, with what the index can tell of the difference.
func (s *Service) weigh(ctx context.Context, l *indexer.Ledger, k *kept, j judged, req *kvscoutv1.ReportOutcomeRequest) (accuracy.Outcome, error) {
	o := accuracy.Outcome{
		Predicted: j.reusable, Actual: int(req.GetCachedTokens()), PredictedPrompt: k.tokens, Prompt: int(req.GetPromptTokens()),
		Bound: j.bound, BlockSize: j.blockSize,
	}
	if o.Predicted >= o.Actual {
		return o, nil
	}
	for _, r := range sizeRejects {
		o.Refused = o.Refused || l.Rejected(r) > 0
	}
	if k.query.Keys != nil {
		return o, nil // keys are of one namespace
	}
	var err error
	o.Elsewhere, err = s.index.Elsewhere(ctx, l, k.query, o.Actual)
	return o, err
}

// accuracyOf is a report as a message: the enums run alike.
func accuracyOf(r accuracy.Report) *kvscoutv1.Accuracy {
	out := &kvscoutv1.Accuracy{
		Outcomes: r.Outcomes, Equal: r.Equal, Over: r.Over, Under: r.Under, OverTokens: r.OverTokens, UnderTokens: r.UnderTokens,
		Wrong: r.Wrong, Flagged: r.Flagged, Cause: kvscoutv1.AccuracyCause(r.Cause),
	}
	if r.HasRecent {
		out.Recent = &r.Recent
	}
	return out
}

// Accuracy is what outcomes showed of a source; nil if none was reported. It fits indexrpc.Options.Accuracy.
func (s *Service) Accuracy(worker string, rank int) *kvscoutv1.Accuracy {
	if r, ok := s.accuracy.Report(worker, rank); ok {
		return accuracyOf(r)
	}
	return nil
}
