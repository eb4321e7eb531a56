package indexrpc

import (
	"context"

	"connectrpc.com/connect"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer/ingest"
)

// Publish applies raw batches of a registered worker.
func (s *Service) Publish(_ context.Context, req *connect.Request[kvscoutv1.PublishRequest]) (*connect.Response[kvscoutv1.PublishResponse], error) {
	return answer(s.publish(req.Msg))
}

func (s *Service) publish(req *kvscoutv1.PublishRequest) (*kvscoutv1.PublishResponse, error) {
	switch id := req.GetWorkerId(); {
	case id == "":
		return nil, badWorkerf("worker_id is missing")
	case len(id) > maxText:
		return nil, Failf(ReasonUnknownWorker, "%w: an id of %d bytes", ingest.ErrUnknownWorker, len(id))
	}
	batches := req.GetBatches()
	if len(batches) > s.opts.MaxBatches {
		return nil, Failf(ReasonTooManyBatches, "%d batches, limit %d", len(batches), s.opts.MaxBatches)
	}
	messages := make([]events.Message, len(batches))
	for i, b := range batches {
		if n := len(b.GetPayload()) + len(b.GetEpoch()); n > s.opts.MaxBatchBytes {
			return nil, Failf(ReasonBatchTooLarge, "batch %d has %d bytes, limit %d", i, n, s.opts.MaxBatchBytes)
		}
		messages[i] = events.Message{Topic: []byte(b.GetTopic()), Seq: b.GetSequence(), Epoch: b.GetEpoch(), Payload: b.GetPayload()}
	}
	// Pushes of one source wait for one another, so those who wait are bounded too.
	if !s.publishes.Enter() {
		return nil, Overloaded("more than %d calls of Publish", s.opts.MaxPublishes)
	}
	defer s.publishes.Leave()
	done, err := s.fleet.Publish(req.GetWorkerId(), int(req.GetRank()), messages)
	if err != nil {
		return nil, err
	}
	return publishedOf(done), nil
}

func publishedOf(p ingest.Published) *kvscoutv1.PublishResponse {
	out := &kvscoutv1.PublishResponse{
		Applied:    Count(p.Applied),
		Duplicates: Count(p.Duplicates),
		Resets:     Count(p.Resets),
	}
	for r, n := range p.Rejected {
		if out.Rejected == nil {
			out.Rejected = make(map[string]uint32, len(p.Rejected))
		}
		out.Rejected[r.String()] = Count(n)
	}
	for _, gap := range p.Gaps {
		out.Gaps = append(out.Gaps, &kvscoutv1.SequenceRange{First: gap[0], Last: gap[1]})
	}
	if p.HasNext {
		out.NextSequence = &p.Next
	}
	return out
}
