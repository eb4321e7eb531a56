package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/kvscout/kvscout/events/simulate"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// Engines of an Ingest: each has a full cache, and each step stores stepBlocks new blocks and removes as many.
const (
	ingestEngines = 4
	cacheBlocks   = 8192
	stepBlocks    = 32
)

// Ingest is simulated vLLM engines that serve the workload's model and keep a server busy with events over ZMQ. They hold
// nothing of the workload's prompts.
type Ingest struct {
	w       *Workload
	engines []*simulate.Engine
	steps   atomic.Uint64
}

// NewIngest starts the engines and registers them at a server, which must be on this machine. They count as Writers of the
// workload from then on.
func (w *Workload) NewIngest(ctx context.Context, api Index) (*Ingest, error) {
	g := &Ingest{w: w}
	for i := range ingestEngines {
		e, err := simulate.New(simulate.Config{
			Worker: fmt.Sprintf("%s-writer-%d", w.ID, i), Model: w.Model, BlockSize: BlockSize, Blocks: cacheBlocks,
			Replay: "tcp://127.0.0.1:0", Seed: uint64(i), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
		g.engines = append(g.engines, e)
		src := e.Source()
		spec := &kvscoutv1.WorkerSpec{
			WorkerId: src.Worker, Engine: string(src.Engine), EngineVersion: src.Version, Model: src.Model,
			BlockSize: BlockSize, EventEndpoint: src.Events, ReplayEndpoint: src.Replay,
		}
		if _, err := api.RegisterWorker(ctx, connect.NewRequest(&kvscoutv1.RegisterWorkerRequest{Worker: spec})); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	w.Writers = len(g.engines)
	return g, g.connected(ctx)
}

// connected waits until each engine has a subscriber.
func (g *Ingest) connected(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for _, e := range g.engines {
		for e.Stats().Subscribers == 0 {
			if !sleep(ctx, 5*time.Millisecond) {
				return fmt.Errorf("the server did not connect to %s", e.Source().Worker)
			}
		}
	}
	return nil
}

// Run fills the caches and then stores and removes at rate blocks a second together, until ctx ends. ready is called once the
// caches are full.
func (g *Ingest) Run(ctx context.Context, rate float64, ready func()) error {
	var full, wg sync.WaitGroup
	full.Add(len(g.engines))
	faults := make([]error, len(g.engines))
	perEngine := rate / float64(len(g.engines)) / (2 * stepBlocks)
	for i, e := range g.engines {
		wg.Go(func() { // ended by ctx, waited for below
			faults[i] = g.drive(ctx, e, rand.New(rand.NewPCG(uint64(i), 1)), perEngine, full.Done)
		})
	}
	full.Wait()
	ready()
	wg.Wait()
	return errors.Join(faults...)
}

// drive runs requests that nobody has asked before, so that each stores all its blocks.
func (g *Ingest) drive(ctx context.Context, e *simulate.Engine, rng *rand.Rand, rate float64, full func()) error {
	step := func() error {
		_, err := e.Serve(simulate.Request{Tokens: randomTokens(rng, stepBlocks*BlockSize)})
		return err
	}
	for range cacheBlocks / stepBlocks {
		if err := step(); err != nil {
			full()
			return err
		}
	}
	full()
	mean := time.Duration(float64(time.Second) / rate)
	for due := time.Now(); sleep(ctx, time.Until(due)); due = due.Add(mean) {
		if err := step(); err != nil {
			return err
		}
		g.steps.Add(1)
	}
	return nil
}

// Blocks is how many blocks were stored and removed since the caches were full.
func (g *Ingest) Blocks() uint64 { return 2 * stepBlocks * g.steps.Load() }

// Remove takes the engines from the server.
func (g *Ingest) Remove(ctx context.Context, api Index) error {
	g.w.Writers = 0
	for _, e := range g.engines {
		req := &kvscoutv1.DeregisterWorkerRequest{WorkerId: e.Source().Worker}
		if _, err := api.DeregisterWorker(ctx, connect.NewRequest(req)); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the engines.
func (g *Ingest) Close() error {
	var faults []error
	for _, e := range g.engines {
		faults = append(faults, e.Close())
	}
	return errors.Join(faults...)
}
