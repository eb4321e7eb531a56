package scorerpc

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/trace"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/indexer/ingest"
	"github.com/kvscout/kvscout/render"
	"github.com/kvscout/kvscout/scorer"
	"github.com/kvscout/kvscout/scorer/accuracy"
	"github.com/kvscout/kvscout/scorer/codec"
	"github.com/kvscout/kvscout/scorer/latency"
	"github.com/kvscout/kvscout/scorer/routed"
	"github.com/kvscout/kvscout/scorer/turn"
)

// Defaults of Options.
const (
	DefaultMaxPromptTokens = 1 << 20
	DefaultMaxCandidates   = 4096
	DefaultMaxCalls        = 4096
	DefaultMaxStreams      = 1024
)

// Options configures a Service. Zero means the default of that name.
type Options struct {
	// MaxPromptTokens bounds a prompt, however it comes.
	MaxPromptTokens int
	// MaxCandidates bounds the candidates of a request.
	MaxCandidates int
	// MaxCalls bounds the requests under way, those that wait for the renderer or for their turn included.
	MaxCalls int
	// Turns bounds the requests that are rated at once, and how long others wait; nil does not. Those that wait for the
	// renderer have no turn.
	Turns *turn.Queue
	// MaxStreams bounds the streams that are open at once.
	MaxStreams int
	// Weights is what a token is worth by tier; all zero is scorer.DefaultWeights.
	Weights scorer.Weights
	// Renderer renders http_request; nil refuses it with NO_RENDERER.
	Renderer render.Renderer
	// TenantHeader names the header by which the gateway tells the tenant, which is the cache salt; empty for none.
	TenantHeader string
	// StripFields are top-level members of bodies that only gateways know; the renderer does not see them.
	StripFields []string
	// TrustCallerTokens takes token ids that a body carries for its prompt. Else such bodies are CALLER_TOKENS.
	TrustCallerTokens bool
	// FlagFingerprints answers about workers that render otherwise than the renderer, as estimates; else a request that
	// would rate one is FINGERPRINT_MISMATCH.
	FlagFingerprints bool
	// RendererName is RenderInfo.renderer; empty takes the name that the renderer gives itself.
	RendererName string
	// Ready says whether the index has what it starts with; until then calls get NOT_READY. Nil is always.
	Ready  func() bool
	Logger *slog.Logger
	// Tracer makes a span of each step of a call that is traced; nil makes none.
	Tracer trace.Tracer
	// Rendered is told how long each render took, by model and outcome; LookedUp of each lookup. Nil: nobody is told.
	Rendered func(model, outcome string, took time.Duration)
	LookedUp func(took time.Duration)
}

func (o Options) withDefaults() Options {
	if o.MaxPromptTokens <= 0 {
		o.MaxPromptTokens = DefaultMaxPromptTokens
	}
	if o.MaxCandidates <= 0 {
		o.MaxCandidates = DefaultMaxCandidates
	}
	if o.MaxCalls <= 0 {
		o.MaxCalls = DefaultMaxCalls
	}
	if o.MaxStreams <= 0 {
		o.MaxStreams = DefaultMaxStreams
	}
	if o.Weights == (scorer.Weights{}) {
		o.Weights = scorer.DefaultWeights()
	}
	if o.Ready == nil {
		o.Ready = func() bool { return true }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Service implements ScoreService and RenderService. It is safe for concurrent use.
type Service struct {
	index *indexer.Index
	fleet *ingest.Fleet
	opts  Options
	calls *indexrpc.Gate
	desks sync.Pool // of *desk

	streams  *indexrpc.Gate
	memory   *memory
	credits  *routed.Book
	accuracy *accuracy.Book

	requests atomic.Uint64
	errors   [indexrpc.ReasonCount]atomic.Uint64
	answered latency.Histogram // of the requests that ended without an error
}

var (
	_ kvscoutv1connect.ScoreServiceHandler  = (*Service)(nil)
	_ kvscoutv1connect.RenderServiceHandler = (*Service)(nil)
)

// New returns a service over an index and the fleet that feeds it.
func New(index *indexer.Index, fleet *ingest.Fleet, opts Options) *Service {
	opts = opts.withDefaults()
	s := &Service{
		index: index, fleet: fleet, opts: opts, calls: indexrpc.NewGate(opts.MaxCalls),
		streams:  indexrpc.NewGate(opts.MaxStreams),
		memory:   newMemory(maxKept, maxKeptTokens),
		credits:  routed.New(index, routed.Options{}),
		accuracy: accuracy.NewBook(),
	}
	s.desks.New = func() any { return &desk{reader: index.NewReader()} }
	return s
}

// Run ends what ReportRouted credited in time, until ctx ends. Without it credits stay.
func (s *Service) Run(ctx context.Context) { s.credits.Run(ctx) }

// Stats counts the calls answered so far and their errors by reason; it fits indexrpc.Options.ScoreStats.
func (s *Service) Stats() *kvscoutv1.ScoreStats {
	c := s.credits.Stats()
	out := &kvscoutv1.ScoreStats{
		Requests: s.requests.Load(), Remembered: uint64(s.memory.size()), Routed: c.All, RoutedWaiting: c.Waiting,
		RoutedConfirmed: c.Confirmed, RoutedExpired: c.Expired, RoutedDropped: c.Dropped,
		Latency: latencyOf(s.answered.Counts()), InFlight: indexrpc.Count(s.calls.Inside()), MaxInFlight: indexrpc.Count(s.opts.MaxCalls),
		Waiting: indexrpc.Count(s.opts.Turns.Waiting()),
	}
	for r := range s.errors {
		n := s.errors[r].Load()
		if n == 0 {
			continue
		}
		if out.Errors == nil {
			out.Errors = make(map[string]uint64)
		}
		out.Errors[indexrpc.Reason(r).String()] = n
	}
	return out
}

// Score rates every candidate.
func (s *Service) Score(ctx context.Context, req *connect.Request[kvscoutv1.ScoreRequest]) (*connect.Response[kvscoutv1.ScoreResponse], error) {
	out, failed := s.counted(ctx, req.Msg, new(sheet))
	if failed != nil {
		return nil, failed.Connect()
	}
	return connect.NewResponse(out), nil
}

// ScoreReleased is Score with an answer in memory that is used again once the answer is released. It errs with a
// *connect.Error.
func (s *Service) ScoreReleased(ctx context.Context, req *kvscoutv1.ScoreRequest) (*codec.ScoreResponse, error) {
	sh := sheets.Get().(*sheet)
	out, failed := s.counted(ctx, req, sh)
	if failed != nil {
		sh.Release()
		return nil, failed.Connect()
	}
	return &codec.ScoreResponse{ScoreResponse: out, Memory: sh}, nil
}

// counted is score with its outcome counted.
func (s *Service) counted(ctx context.Context, req *kvscoutv1.ScoreRequest, sh *sheet) (*kvscoutv1.ScoreResponse, *indexrpc.Error) {
	begin := time.Now()
	out, err := s.score(ctx, req, sh)
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	s.requests.Add(1)
	s.answered.Since(begin)
	return out, nil
}

// failed counts a call that ended in an error, by its reason.
func (s *Service) failed(ctx context.Context, err error) *indexrpc.Error {
	e := classify(err)
	s.errors[e.Reason].Add(1)
	s.requests.Add(1)
	if e.Reason == indexrpc.ReasonInternal {
		s.opts.Logger.ErrorContext(ctx, "call failed without a reason", "error_type", fmt.Sprintf("%T", err)) // its text may quote the request
	}
	return e
}

func (s *Service) score(ctx context.Context, req *kvscoutv1.ScoreRequest, sh *sheet) (*kvscoutv1.ScoreResponse, error) {
	if !s.opts.Ready() {
		return nil, indexrpc.Failf(indexrpc.ReasonNotReady, "the index is not ready")
	}
	if !s.calls.Enter() {
		return nil, indexrpc.Overloaded("more than %d calls of Score", s.opts.MaxCalls)
	}
	defer s.calls.Leave()
	want, err := s.readSelection(req)
	if err != nil {
		return nil, err
	}
	p, err := s.prompt(ctx, req)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.opts.Turns.Enter(ctx); err != nil {
		return nil, err
	}
	defer s.opts.Turns.Leave()
	return s.answer(ctx, req, want, p, sh)
}

// answer rates whom the request wants rated, for a prompt that was read. The answer lies in sh.
func (s *Service) answer(ctx context.Context, req *kvscoutv1.ScoreRequest, want selection, p prompt, sh *sheet) (out *kvscoutv1.ScoreResponse, err error) {
	// Read first: the answer is at least as new as its version says.
	version := s.index.Version()
	d := s.desks.Get().(*desk)
	defer s.leave(d)
	d.query = p.query
	// Before the index: what is confirmed in between counts twice nowhere, since predictions only extend a match.
	credits, err := s.credits.Predicted(ctx, &d.query)
	if err != nil {
		return nil, err
	}
	_, looking := s.step(ctx, stepLookup, s.opts.LookedUp != nil)
	matches, err := d.reader.Lookup(ctx, &d.query)
	s.lookedUp(&looking, err, len(matches))
	if err != nil {
		return nil, err
	}
	ctx, scoring := s.step(ctx, stepScore, false)
	defer func() { scoring.end(err, len(out.GetWorkers()), "workers") }()
	if p.skipsCache {
		want.weights = scorer.Weights{}
	}
	chosen := s.choose(d, matches, &p, want)
	if err := s.checkFingerprints(&chosen, p.render.GetFingerprint()); err != nil {
		return nil, err
	}
	a := answer{chosen: chosen, prompt: p, now: time.Now(), credits: credits, accuracy: s.accuracy}
	d.ranked = scorer.RankPredicted(d.ranked, a.chosen.matches, a.predicted(), p.tokens, want.weights)
	ranked := d.ranked
	out = &sh.answer
	out.PromptTokens, out.Render, out.IndexVersion = indexrpc.Count(p.tokens), p.render, version
	if req.GetRemember() {
		out.ScoreId = s.memory.keep(&d.query, p.tokens, a.judged(ranked))
	}
	listed := ranked
	if n := int(req.GetMaxWorkers()); n > 0 && n < len(ranked) {
		listed = ranked[:n]
		out.WorkersOmitted = indexrpc.Count(len(ranked) - n)
	}
	if req.GetExplain() {
		if a.explained, err = s.explain(ctx, &d.query, listed); err != nil {
			return nil, err
		}
	}
	out.Workers = a.workers(listed, sh)
	out.BestOutside = a.outside()
	out.Warnings = a.warnings()
	if req.GetReturnTokens() {
		if out.Tokens = packed(p.query.Tokens); out.Tokens != nil {
			out.Features = p.features
		}
	}
	return out, nil
}
