package bench

import (
	"bytes"
	"context"
	"fmt"

	"connectrpc.com/connect"
	"github.com/vmihailenco/msgpack/v5"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// Index is the part of IndexService that filling a server needs.
type Index interface {
	RegisterWorker(context.Context, *connect.Request[kvscoutv1.RegisterWorkerRequest]) (*connect.Response[kvscoutv1.RegisterWorkerResponse], error)
	DeregisterWorker(context.Context, *connect.Request[kvscoutv1.DeregisterWorkerRequest]) (*connect.Response[kvscoutv1.DeregisterWorkerResponse], error)
	Publish(context.Context, *connect.Request[kvscoutv1.PublishRequest]) (*connect.Response[kvscoutv1.PublishResponse], error)
}

// storeBlocks is how many blocks one batch stores.
const storeBlocks = 128

// Fill registers the workers and publishes what they hold, as vLLM would. Empty takes them away again, also after an error.
func (w *Workload) Fill(ctx context.Context, api Index, progress func(done, total int)) error {
	for i := range w.Workers {
		spec := &kvscoutv1.WorkerSpec{WorkerId: w.Worker(i), Engine: "vllm", Model: w.Model, BlockSize: BlockSize}
		if _, err := api.RegisterWorker(ctx, connect.NewRequest(&kvscoutv1.RegisterWorkerRequest{Worker: spec})); err != nil {
			return fmt.Errorf("register %s: %w", spec.GetWorkerId(), err)
		}
		if err := w.fill(ctx, api, i); err != nil {
			return fmt.Errorf("publish for %s: %w", spec.GetWorkerId(), err)
		}
		if progress != nil {
			progress(i+1, w.Workers)
		}
	}
	return nil
}

// Empty deregisters the workers.
func (w *Workload) Empty(ctx context.Context, api Index) error {
	for i := range w.Workers {
		req := &kvscoutv1.DeregisterWorkerRequest{WorkerId: w.Worker(i)}
		if _, err := api.DeregisterWorker(ctx, connect.NewRequest(req)); err != nil {
			return fmt.Errorf("deregister %s: %w", req.GetWorkerId(), err)
		}
	}
	return nil
}

// fill publishes what one worker holds.
func (w *Workload) fill(ctx context.Context, api Index, worker int) error {
	req := &kvscoutv1.PublishRequest{WorkerId: w.Worker(worker)}
	size, next := 0, uint64(0)
	flush := func() error {
		if len(req.Batches) == 0 {
			return nil
		}
		res, err := api.Publish(ctx, connect.NewRequest(req))
		if err == nil && (int(res.Msg.GetApplied()) != len(req.Batches) || len(res.Msg.GetRejected()) > 0) {
			err = fmt.Errorf("%d of %d batches applied, rejected %v", res.Msg.GetApplied(), len(req.Batches), res.Msg.GetRejected())
		}
		req.Batches, size = nil, 0
		return err
	}
	for _, run := range w.runs(worker) {
		for from := run.from; from < run.to; from += storeBlocks {
			payload, err := w.store(run.prompt, from, min(run.to, from+storeBlocks))
			if err != nil {
				return err
			}
			req.Batches = append(req.Batches, &kvscoutv1.RawBatch{Sequence: next, Payload: payload})
			next++
			if size += len(payload); size >= 1<<19 || len(req.Batches) == 128 {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}

// run is blocks from and on, before to, of a prompt.
type run struct{ prompt, from, to int }

// runs are what a worker stores, each block once.
func (w *Workload) runs(worker int) []run {
	out := []run{{0, 0, w.sharedOf(worker)}}
	for p := range w.Prompts {
		if n := w.own(p, worker); n > w.Shared {
			out = append(out, run{p, w.Shared, n})
		}
	}
	return out
}

// hash is the engine's name of a block.
func (w *Workload) hash(prompt, block int) uint64 {
	if block < w.Shared {
		prompt = 0
	}
	return uint64(prompt+1)<<32 | uint64(block+1)
}

// store is a batch of one BlockStored, in vLLM's array form.
func (w *Workload) store(prompt, from, to int) ([]byte, error) {
	var hashes []uint64
	for b := from; b < to; b++ {
		hashes = append(hashes, w.hash(prompt, b))
	}
	var parent any
	if from > 0 {
		parent = w.hash(prompt, from-1)
	}
	event := []any{"BlockStored", hashes, parent, w.Prompts[prompt][from*BlockSize : to*BlockSize], BlockSize, nil, "GPU"}
	var out bytes.Buffer
	e := msgpack.NewEncoder(&out)
	e.UseCompactInts(true)
	err := e.Encode([]any{1.5, [][]any{event}})
	return out.Bytes(), err
}
