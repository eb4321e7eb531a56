package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/HdrHistogram/hdrhistogram-go"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// MinIngest bounds the rate of Beside from below: a server would ask engines that it hardly hears whether they live.
const MinIngest = 1000

// Service is what Beside needs of a server.
type Service interface {
	Index
	GetStats(context.Context, *connect.Request[kvscoutv1.GetStatsRequest]) (*connect.Response[kvscoutv1.GetStatsResponse], error)
	Score(context.Context, *connect.Request[kvscoutv1.ScoreRequest]) (*connect.Response[kvscoutv1.ScoreResponse], error)
}

// Ingested is what became of what engines published.
type Ingested struct {
	// Blocks is how many the server says it stored and removed a second.
	Blocks float64 `json:"ingest_blocks_per_s"`
	// LagP50 and LagP99 are milliseconds from the writing of a batch to the end of the first Score that shows it, of LagProbes.
	LagP50    float64 `json:"visible_lag_p50_ms"`
	LagP99    float64 `json:"visible_lag_p99_ms"`
	LagProbes int64   `json:"visible_lag_probes"`
}

// ingest is engines that serve the workload's model and keep a server busy with events over ZMQ. They hold nothing of the
// workload's prompts.
type ingest struct {
	w       *Workload
	api     Service
	engines []*engine
	probes  chan probe
	lags    *hdrhistogram.Histogram // of prober, in nanoseconds
}

// probe is a batch that was written, to be looked for.
type probe struct {
	engine *engine
	prompt int
	at     time.Time
}

// probeEvery is the time between two probes at least.
const probeEvery = 10 * time.Millisecond

// Beside calls do while engines that hold nothing of the prompts publish to a server, which must be on this machine, rate blocks
// a second stored and removed together. It returns what became of them, and takes the engines away again, also after an error.
// It errs if the server did not apply all that was published.
func (w *Workload) Beside(ctx context.Context, api Service, rate float64, do func() error) (got Ingested, err error) {
	if rate < MinIngest {
		return got, fmt.Errorf("%w: %v blocks a second, at least %d", ErrWorkload, rate, MinIngest)
	}
	g := &ingest{w: w, api: api, probes: make(chan probe, 100), lags: hdrhistogram.New(leastLatency, mostLatency, digits)}
	defer func() { // also when ctx has ended
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, g.remove(ctx))
	}()
	for i := range ingestEngines {
		if err := g.add(ctx, i); err != nil {
			return got, err
		}
	}
	publishing, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var fault error
	wg.Go(func() { fault = g.publish(publishing, rate) }) // both ended by stop, waited for below
	wg.Go(func() { g.look(publishing) })
	before, err := g.applied(ctx)
	if err == nil {
		err = do()
	}
	after, failed := g.applied(ctx)
	stop()
	wg.Wait()
	got = Ingested{
		Blocks: 2 * stepBlocks * float64(after.batches-before.batches) / max(after.at.Sub(before.at).Seconds(), 1e-9),
		LagP50: microseconds(g.lags.ValueAtQuantile(50)) / 1000, LagP99: microseconds(g.lags.ValueAtQuantile(99)) / 1000,
		LagProbes: g.lags.TotalCount(),
	}
	return got, errors.Join(err, failed, fault)
}

// add starts an engine and registers it at the server. It counts as a Writer of the workload from then on.
func (g *ingest) add(ctx context.Context, number int) error {
	e, err := newEngine(fmt.Sprintf("%s-writer-%d", g.w.ID, number), number)
	if err != nil {
		return err
	}
	g.engines = append(g.engines, e)
	spec := &kvscoutv1.WorkerSpec{
		WorkerId: e.worker, Engine: "vllm", Model: g.w.Model, BlockSize: BlockSize, EventEndpoint: e.endpoint(),
	}
	if _, err := g.api.RegisterWorker(ctx, connect.NewRequest(&kvscoutv1.RegisterWorkerRequest{Worker: spec})); err != nil {
		return err
	}
	g.w.Writers = len(g.engines)
	return errors.Join(e.accept(time.Now().Add(callTimeout)), e.fill(number))
}

// publish lets the engines step in turn, at times that come by chance, until ctx ends.
func (g *ingest) publish(ctx context.Context, rate float64) error {
	defer ownThread()() // for pause
	p := newPacer(rate/(2*stepBlocks), false)
	var probed time.Time
	for n := 0; ctx.Err() == nil; n++ {
		for due := p.draw(); ctx.Err() == nil; {
			wait := time.Until(due)
			if wait <= 0 {
				break
			}
			pause(wait)
		}
		e, at := g.engines[n%len(g.engines)], time.Now()
		prompt, err := e.publish()
		if err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		if at.Sub(probed) >= probeEvery {
			probed = at
			select {
			case g.probes <- probe{e, prompt, at}:
			default: // one a second ago is not seen yet
			}
		}
	}
	return nil
}

// look asks for what was written until it is seen, until ctx ends.
func (g *ingest) look(ctx context.Context) {
	for {
		select {
		case p := <-g.probes:
			for !g.sees(ctx, p) {
				if ctx.Err() != nil {
					return
				}
			}
			_ = g.lags.RecordValue(min(int64(time.Since(p.at)), mostLatency)) // within its bounds
		case <-ctx.Done():
			return
		}
	}
}

// sees asks once. What is not seen before it is removed again was too late by any measure.
func (g *ingest) sees(ctx context.Context, p probe) bool {
	packed := make([]byte, 0, 4*stepBlocks*BlockSize)
	for _, t := range p.engine.prompts[p.prompt] {
		packed = binary.LittleEndian.AppendUint32(packed, t)
	}
	req := &kvscoutv1.ScoreRequest{
		Model: g.w.Model, Tokens: &kvscoutv1.Tokens{Packed: packed}, Candidates: []string{p.engine.worker},
	}
	res, err := g.api.Score(ctx, connect.NewRequest(req))
	if err != nil || len(res.Msg.GetWorkers()) != 1 {
		return sleep(ctx, time.Millisecond) && false
	}
	return res.Msg.GetWorkers()[0].GetHeldTokens() == stepBlocks*BlockSize
}

// progress is what the server has applied of the engines.
type progress struct {
	at      time.Time
	batches uint64
}

// applied asks the server. It errs if something was lost or not understood.
func (g *ingest) applied(ctx context.Context) (progress, error) {
	res, err := g.api.GetStats(ctx, connect.NewRequest(&kvscoutv1.GetStatsRequest{}))
	if err != nil {
		return progress{}, err
	}
	p := progress{at: time.Now()}
	for _, s := range res.Msg.GetStats().GetSources() {
		for _, e := range g.engines {
			if s.GetWorkerId() != e.worker {
				continue
			}
			p.batches += s.GetBatches()
			if len(s.GetRejected()) > 0 || s.GetGaps() > 0 || s.GetLostBatches() > 0 || s.GetConnections() > 1 {
				return p, fmt.Errorf("not all of %s was applied: rejected %v, %d batches lost in %d gaps, %d connections",
					e.worker, s.GetRejected(), s.GetLostBatches(), s.GetGaps(), s.GetConnections())
			}
		}
	}
	return p, nil
}

// remove takes the engines from the server and ends them.
func (g *ingest) remove(ctx context.Context) error {
	g.w.Writers = 0
	var faults []error
	for _, e := range g.engines {
		req := &kvscoutv1.DeregisterWorkerRequest{WorkerId: e.worker}
		_, err := g.api.DeregisterWorker(ctx, connect.NewRequest(req))
		faults = append(faults, err, e.close())
	}
	return errors.Join(faults...)
}
