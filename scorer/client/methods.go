package client

import (
	"context"

	"connectrpc.com/connect"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// Score rates the candidates of a request.
func (c *Client) Score(ctx context.Context, req *kvscoutv1.ScoreRequest) (*kvscoutv1.ScoreResponse, error) {
	return call(ctx, c, reads, req, (*server).Score)
}

// ScoreBatch rates the candidates of several requests; each result has an error of its own.
func (c *Client) ScoreBatch(ctx context.Context, req *kvscoutv1.ScoreBatchRequest) (*kvscoutv1.ScoreBatchResponse, error) {
	return call(ctx, c, reads, req, (*server).ScoreBatch)
}

// ReportRouted says that a request was sent to a worker. The score id must be of the server that calls go to: after a
// change of servers it is UNKNOWN_SCORE.
func (c *Client) ReportRouted(ctx context.Context, req *kvscoutv1.ReportRoutedRequest) (*kvscoutv1.ReportRoutedResponse, error) {
	return call(ctx, c, changes, req, (*server).ReportRouted)
}

// ReportOutcome says what the engine made of a request, as ReportRouted does by score id.
func (c *Client) ReportOutcome(ctx context.Context, req *kvscoutv1.ReportOutcomeRequest) (*kvscoutv1.ReportOutcomeResponse, error) {
	return call(ctx, c, changes, req, (*server).ReportOutcome)
}

// Render turns a body into tokens.
func (c *Client) Render(ctx context.Context, req *kvscoutv1.RenderRequest) (*kvscoutv1.RenderResponse, error) {
	return call(ctx, c, reads, req, (*server).Render)
}

// RegisterWorker starts listening to a worker.
func (c *Client) RegisterWorker(ctx context.Context, req *kvscoutv1.RegisterWorkerRequest) (*kvscoutv1.RegisterWorkerResponse, error) {
	return call(ctx, c, changes, req, (*server).RegisterWorker)
}

// DeregisterWorker stops listening to a worker and forgets what it holds.
func (c *Client) DeregisterWorker(ctx context.Context, req *kvscoutv1.DeregisterWorkerRequest) (*kvscoutv1.DeregisterWorkerResponse, error) {
	return call(ctx, c, changes, req, (*server).DeregisterWorker)
}

// ResetWorker forgets what a worker holds whose cache was emptied.
func (c *Client) ResetWorker(ctx context.Context, req *kvscoutv1.ResetWorkerRequest) (*kvscoutv1.ResetWorkerResponse, error) {
	return call(ctx, c, changes, req, (*server).ResetWorker)
}

// ListWorkers lists workers and the state of their sources.
func (c *Client) ListWorkers(ctx context.Context, req *kvscoutv1.ListWorkersRequest) (*kvscoutv1.ListWorkersResponse, error) {
	return call(ctx, c, reads, req, (*server).ListWorkers)
}

// GetStats returns every counter once.
func (c *Client) GetStats(ctx context.Context, req *kvscoutv1.GetStatsRequest) (*kvscoutv1.GetStatsResponse, error) {
	return call(ctx, c, reads, req, (*server).GetStats)
}

// Inspect shows who holds a prompt, or the state of a worker.
func (c *Client) Inspect(ctx context.Context, req *kvscoutv1.InspectRequest) (*kvscoutv1.InspectResponse, error) {
	return call(ctx, c, reads, req, (*server).Inspect)
}

// Publish applies raw batches of one rank. After an error ask where to go on by a call without batches: next_sequence.
func (c *Client) Publish(ctx context.Context, req *kvscoutv1.PublishRequest) (*kvscoutv1.PublishResponse, error) {
	return call(ctx, c, changes, req, (*server).Publish)
}

// Clear forgets what a worker, or every worker in a namespace, holds.
func (c *Client) Clear(ctx context.Context, req *kvscoutv1.ClearRequest) (*kvscoutv1.ClearResponse, error) {
	return call(ctx, c, changes, req, (*server).Clear)
}

// ScoreStream opens a stream of requests and answers on the server that calls go to. It is the caller's to close; no try
// of it is repeated.
func (c *Client) ScoreStream(ctx context.Context) *connect.BidiStreamForClient[kvscoutv1.ScoreStreamRequest, kvscoutv1.ScoreStreamResponse] {
	s, _ := c.at()
	return s.duplex.ScoreStream(ctx)
}

// StreamStats sends the counters at once and then at each interval. The stream is the caller's to close.
func (c *Client) StreamStats(ctx context.Context, req *kvscoutv1.StreamStatsRequest) (*connect.ServerStreamForClient[kvscoutv1.StreamStatsResponse], error) {
	s, _ := c.at()
	return s.StreamStats(ctx, connect.NewRequest(req))
}

// Dump sends what every source holds. The stream is the caller's to close.
func (c *Client) Dump(ctx context.Context, req *kvscoutv1.DumpRequest) (*connect.ServerStreamForClient[kvscoutv1.DumpResponse], error) {
	s, _ := c.at()
	return s.Dump(ctx, connect.NewRequest(req))
}
