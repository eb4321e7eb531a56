package indexrpc

import (
	"context"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/discover"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/ingest"
)

// Defaults of Options.
const (
	DefaultMaxBatches    = 4096
	DefaultMaxBatchBytes = 8 << 20
	DefaultMaxStreams    = 64
	DefaultMaxPublishes  = 256
	DefaultMaxTokens     = 1 << 20
)

// Options configures a Service. Zero means the default of that name.
type Options struct {
	// MaxBatches bounds the batches of one Publish, MaxBatchBytes the payload of each.
	MaxBatches, MaxBatchBytes int
	// MaxStreams bounds the StreamStats that run at once, MaxPublishes the Publish calls.
	MaxStreams, MaxPublishes int
	// MaxTokens bounds the prompt of an Inspect.
	MaxTokens int
	// ScoreStats gives Stats.score; nil leaves it out.
	ScoreStats func() *kvscoutv1.ScoreStats
	// RendererStats gives Stats.renderers; nil leaves them out.
	RendererStats func() []*kvscoutv1.RendererStats
	// Snapshot gives Stats.snapshot; nil leaves it out.
	Snapshot func() ingest.KeeperStats
	// LogStats gives Stats.log; nil leaves it out.
	LogStats func() *kvscoutv1.LogStats
	// Accuracy gives SourceStats.accuracy, nil for a source without outcomes; a nil function leaves it out.
	Accuracy func(worker string, rank int) *kvscoutv1.Accuracy
	// Waiting lists the sources that readiness waits for; nil waits for none.
	Waiting func(now time.Time) []events.Source
	// Describe asks a worker at its URL for what it does not state, as discover.Asker does; nil asks none.
	Describe func(context.Context, discover.Worker) (discover.Worker, error)
	// AccessStats gives Stats.access; nil leaves it out.
	AccessStats func() *kvscoutv1.AccessStats
	// Start is when the process started, for Stats.uptime; zero is now.
	Start time.Time
}

func (o Options) withDefaults() Options {
	for _, f := range []struct {
		field *int
		def   int
	}{
		{&o.MaxBatches, DefaultMaxBatches}, {&o.MaxBatchBytes, DefaultMaxBatchBytes},
		{&o.MaxStreams, DefaultMaxStreams}, {&o.MaxPublishes, DefaultMaxPublishes}, {&o.MaxTokens, DefaultMaxTokens},
	} {
		if *f.field <= 0 {
			*f.field = f.def
		}
	}
	if o.Start.IsZero() {
		o.Start = time.Now()
	}
	return o
}

// Service implements IndexService. It is safe for concurrent use.
type Service struct {
	index     *indexer.Index
	fleet     *ingest.Fleet
	opts      Options
	streams   *Gate
	publishes *Gate
	draining  atomic.Bool
}

var _ kvscoutv1connect.IndexServiceHandler = (*Service)(nil)

// New returns a service over an index and the fleet that feeds it.
func New(index *indexer.Index, fleet *ingest.Fleet, opts Options) *Service {
	opts = opts.withDefaults()
	return &Service{index: index, fleet: fleet, opts: opts, streams: NewGate(opts.MaxStreams), publishes: NewGate(opts.MaxPublishes)}
}

// RegisterWorker starts listening to a worker.
func (s *Service) RegisterWorker(ctx context.Context, req *connect.Request[kvscoutv1.RegisterWorkerRequest]) (*connect.Response[kvscoutv1.RegisterWorkerResponse], error) {
	return answer(s.register(ctx, req.Msg.GetWorker()))
}

func (s *Service) register(ctx context.Context, spec *kvscoutv1.WorkerSpec) (*kvscoutv1.RegisterWorkerResponse, error) {
	w, err := readWorker(spec)
	if err != nil {
		return nil, err
	}
	var replaced bool
	if asks(spec) {
		replaced, err = s.registerAsked(ctx, w)
	} else {
		replaced, err = s.fleet.Register(w)
	}
	if err != nil {
		return nil, err
	}
	out := &kvscoutv1.RegisterWorkerResponse{Replaced: replaced}
	// Absent only if another call has deregistered it since.
	if w, ok := s.fleet.Worker(w.ID); ok {
		out.Worker = workerOf(w, s.ledgers()[w.ID], time.Now())
	}
	return out, nil
}

// DeregisterWorker stops listening to a worker or one rank of it.
func (s *Service) DeregisterWorker(_ context.Context, req *connect.Request[kvscoutv1.DeregisterWorkerRequest]) (*connect.Response[kvscoutv1.DeregisterWorkerResponse], error) {
	if req.Msg.GetWorkerId() == "" {
		return nil, Failf(ReasonBadWorker, "worker_id is missing").Connect()
	}
	known := s.fleet.Deregister(req.Msg.GetWorkerId(), rankOf(req.Msg.Rank))
	return connect.NewResponse(&kvscoutv1.DeregisterWorkerResponse{Known: known}), nil
}

// ResetWorker drops what a worker or one rank of it is known to hold.
func (s *Service) ResetWorker(_ context.Context, req *connect.Request[kvscoutv1.ResetWorkerRequest]) (*connect.Response[kvscoutv1.ResetWorkerResponse], error) {
	if req.Msg.GetWorkerId() == "" {
		return nil, Failf(ReasonBadWorker, "worker_id is missing").Connect()
	}
	known := s.fleet.Reset(req.Msg.GetWorkerId(), rankOf(req.Msg.Rank))
	return connect.NewResponse(&kvscoutv1.ResetWorkerResponse{Known: known}), nil
}

func rankOf(rank *uint32) *int {
	if rank == nil {
		return nil
	}
	r := int(*rank)
	return &r
}

// ListWorkers lists workers and the state of their sources.
func (s *Service) ListWorkers(_ context.Context, req *connect.Request[kvscoutv1.ListWorkersRequest]) (*connect.Response[kvscoutv1.ListWorkersResponse], error) {
	return answer(s.list(req.Msg))
}

func (s *Service) list(req *kvscoutv1.ListWorkersRequest) (*kvscoutv1.ListWorkersResponse, error) {
	role, err := RoleFrom(req.GetRole())
	if err != nil {
		return nil, err
	}
	now, ledgers := time.Now(), s.ledgers()
	out := new(kvscoutv1.ListWorkersResponse)
	for _, w := range s.fleet.Workers() {
		if w.Role.Serves(role) && named(w, req.GetModel()) {
			out.Workers = append(out.Workers, workerOf(w, ledgers[w.ID], now))
		}
	}
	return out, nil
}

// ledgers are the open books by worker, each list by rank. A stream whose batches name further ranks has a book for
// each of those too.
func (s *Service) ledgers() map[string][]*indexer.Ledger {
	out := make(map[string][]*indexer.Ledger)
	for _, l := range s.index.Ledgers() {
		id := l.Source().Worker
		out[id] = append(out[id], l)
	}
	return out
}

// ofRank is the source of w with this rank, false without one.
func ofRank(w ingest.Worker, rank int) (events.Source, bool) {
	for _, src := range w.Sources {
		if src.Rank == rank {
			return src, true
		}
	}
	return events.Source{}, false
}
