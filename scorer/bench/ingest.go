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

// Engines of an ingest: each has a full cache, and each step stores stepBlocks new blocks and removes as many.
const (
	ingestEngines = 4
	cacheBlocks   = 8192
	stepBlocks    = 32
)

// ingest is simulated vLLM engines that serve the workload's model and keep a server busy with events over ZMQ. They hold
// nothing of the workload's prompts.
type ingest struct {
	w       *Workload
	engines []*simulate.Engine
	steps   atomic.Uint64
}

// Beside calls do while engines that hold nothing of the prompts publish to a server, which must be on this machine, rate blocks
// a second stored and removed together. It returns how many they were, and takes the engines away again, also after an error.
func (w *Workload) Beside(ctx context.Context, api Index, rate float64, do func() error) (blocksPerSecond float64, err error) {
	g, err := w.newIngest(ctx, api)
	if err != nil {
		return 0, err
	}
	defer func() { // also when ctx has ended
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, g.remove(ctx, api), g.close())
	}()
	publishing, stop := context.WithCancel(ctx)
	defer stop()
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- g.run(publishing, rate, func() { close(ready) }) }() // ended by stop, waited for on done
	<-ready
	began, before := time.Now(), g.blocks()
	err = do()
	blocksPerSecond = float64(g.blocks()-before) / time.Since(began).Seconds()
	stop()
	return blocksPerSecond, errors.Join(err, <-done)
}

// newIngest starts the engines and registers them at a server, which must be on this machine. They count as Writers of the
// workload from then on.
func (w *Workload) newIngest(ctx context.Context, api Index) (*ingest, error) {
	g := &ingest{w: w}
	for i := range ingestEngines {
		e, err := simulate.New(simulate.Config{
			Worker: fmt.Sprintf("%s-writer-%d", w.ID, i), Model: w.Model, BlockSize: BlockSize, Blocks: cacheBlocks,
			Replay: "tcp://127.0.0.1:0", Seed: uint64(i), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		if err != nil {
			return nil, errors.Join(err, g.close())
		}
		g.engines = append(g.engines, e)
		src := e.Source()
		spec := &kvscoutv1.WorkerSpec{
			WorkerId: src.Worker, Engine: string(src.Engine), EngineVersion: src.Version, Model: src.Model,
			BlockSize: BlockSize, EventEndpoint: src.Events, ReplayEndpoint: src.Replay,
		}
		if _, err := api.RegisterWorker(ctx, connect.NewRequest(&kvscoutv1.RegisterWorkerRequest{Worker: spec})); err != nil {
			return nil, errors.Join(err, g.close())
		}
	}
	w.Writers = len(g.engines)
	return g, g.connected(ctx)
}

// connected waits until each engine has a subscriber.
func (g *ingest) connected(ctx context.Context) error {
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

// run fills the caches and then stores and removes at rate blocks a second together, until ctx ends. ready is called once the
// caches are full.
func (g *ingest) run(ctx context.Context, rate float64, ready func()) error {
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
func (g *ingest) drive(ctx context.Context, e *simulate.Engine, rng *rand.Rand, rate float64, full func()) error {
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

// blocks is how many blocks were stored and removed since the caches were full.
func (g *ingest) blocks() uint64 { return 2 * stepBlocks * g.steps.Load() }

// remove takes the engines from the server.
func (g *ingest) remove(ctx context.Context, api Index) error {
	g.w.Writers = 0
	for _, e := range g.engines {
		req := &kvscoutv1.DeregisterWorkerRequest{WorkerId: e.Source().Worker}
		if _, err := api.DeregisterWorker(ctx, connect.NewRequest(req)); err != nil {
			return err
		}
	}
	return nil
}

// close ends the engines.
func (g *ingest) close() error {
	var faults []error
	for _, e := range g.engines {
		faults = append(faults, e.Close())
	}
	return errors.Join(faults...)
}
