package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/recording"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// indexAPI is the part of IndexService that a replay needs, of a server or in this process.
type indexAPI interface {
	RegisterWorker(context.Context, *connect.Request[kvscoutv1.RegisterWorkerRequest]) (*connect.Response[kvscoutv1.RegisterWorkerResponse], error)
	ListWorkers(context.Context, *connect.Request[kvscoutv1.ListWorkersRequest]) (*connect.Response[kvscoutv1.ListWorkersResponse], error)
	GetStats(context.Context, *connect.Request[kvscoutv1.GetStatsRequest]) (*connect.Response[kvscoutv1.GetStatsResponse], error)
	Publish(context.Context, *connect.Request[kvscoutv1.PublishRequest]) (*connect.Response[kvscoutv1.PublishResponse], error)
}

// unnamedModel is the model of a recording that names none, played without a server.
const unnamedModel = "recorded"

func unnamed(w *kvscoutv1.WorkerSpec) bool { return w.GetModel() == unnamedModel }

// survey finds the workers of recordings, without endpoints, and counts the messages. What cannot be read is left to the
// play itself. differs is told of workers that are described in two ways: the first counts.
func survey(paths []string, model string, differs func(worker string)) (out []*kvscoutv1.WorkerSpec, messages int64, err error) {
	for _, path := range paths {
		r, err := recording.Open(path)
		if errors.Is(err, recording.ErrTorn) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		for {
			rec, err := r.Next()
			if err == io.EOF {
				break
			}
			switch {
			case err == nil && rec.Kind == recording.KindSource:
				out = surveySource(out, *rec.Info, model, differs)
			case err == nil && rec.Kind == recording.KindMessage:
				messages++
			case err != nil && !errors.Is(err, recording.ErrTorn) && !errors.Is(err, recording.ErrRecord):
				return nil, 0, errors.Join(fmt.Errorf("%s: %w", path, err), r.Close())
			}
		}
		if err := r.Close(); err != nil {
			return nil, 0, err
		}
	}
	if len(out) == 0 {
		return nil, 0, errors.New("the recordings describe no source")
	}
	return out, messages, nil
}

// surveySource adds src to the workers found so far. A worker has as many ranks as its highest one needs.
func surveySource(list []*kvscoutv1.WorkerSpec, src events.Source, model string, differs func(string)) []*kvscoutv1.WorkerSpec {
	src.Model = cmp.Or(model, src.Model, unnamedModel)
	src.Events, src.Replay, src.Topic, src.Version = "", "", "", ""
	spec := workerSpec(src, uint32(src.Rank)+1)
	for _, have := range list {
		if have.GetWorkerId() != src.Worker {
			continue
		}
		have.Ranks = max(have.GetRanks(), spec.GetRanks())
		spec.Ranks = have.GetRanks()
		if !proto.Equal(have, spec) {
			differs(src.Worker)
		}
		return list
	}
	return append(list, spec)
}

// enrol registers the workers. It refuses one that the server listens to: two streams would mix.
func enrol(ctx context.Context, api indexAPI, specs []*kvscoutv1.WorkerSpec) error {
	res, err := api.ListWorkers(ctx, connect.NewRequest(&kvscoutv1.ListWorkersRequest{}))
	if err != nil {
		return err
	}
	for _, spec := range specs {
		i := slices.IndexFunc(res.Msg.GetWorkers(), func(w *kvscoutv1.Worker) bool {
			return w.GetSpec().GetWorkerId() == spec.GetWorkerId()
		})
		if i < 0 {
			continue
		}
		if e := res.Msg.GetWorkers()[i].GetSpec().GetEventEndpoint(); e != "" {
			return fmt.Errorf("the server listens to worker %q at %s; a replay would mix with it, so remove the worker first", spec.GetWorkerId(), e)
		}
	}
	for _, spec := range specs {
		_, err := api.RegisterWorker(ctx, connect.NewRequest(&kvscoutv1.RegisterWorkerRequest{Worker: spec}))
		if err != nil {
			return fmt.Errorf("worker %q: %w", spec.GetWorkerId(), err)
		}
	}
	return nil
}

// Bounds of one Publish.
const (
	pushBatches = 256
	pushBytes   = 1 << 20
)

// pusher pushes messages in order. Those of one source that follow each other go together.
type pusher struct {
	api     indexAPI
	source  string // of pending
	pending []*kvscoutv1.RawBatch
	bytes   int // of pending

	applied, duplicates, gaps, resets uint64
	rejected                          map[string]uint64
}

// add takes a message; a record that is none is counted.
func (p *pusher) add(ctx context.Context, rec *recording.Record) error {
	m, err := events.ParseFrames(rec.Frames)
	if err != nil {
		p.rejected[events.FrameReason(err).String()]++
		return nil
	}
	if rec.Source != p.source || len(p.pending) >= pushBatches || p.bytes >= pushBytes {
		if err := p.flush(ctx); err != nil {
			return err
		}
	}
	p.source = rec.Source
	// The topic stays out: it belongs to the transport that recorded it, and need not be text.
	p.pending = append(p.pending, &kvscoutv1.RawBatch{Sequence: m.Seq, Epoch: m.Epoch, Payload: m.Payload})
	p.bytes += len(m.Payload)
	return nil
}

func (p *pusher) flush(ctx context.Context) error {
	if len(p.pending) == 0 {
		return nil
	}
	worker, rank, err := events.ParseID(p.source)
	if err != nil {
		return err
	}
	req := &kvscoutv1.PublishRequest{WorkerId: worker, Rank: uint32(rank), Batches: p.pending}
	res, err := p.api.Publish(ctx, connect.NewRequest(req))
	if err != nil {
		return fmt.Errorf("source %s: %w", p.source, err)
	}
	p.applied += uint64(res.Msg.GetApplied())
	p.duplicates += uint64(res.Msg.GetDuplicates())
	p.gaps += uint64(len(res.Msg.GetGaps()))
	p.resets += uint64(res.Msg.GetResets())
	for reason, n := range res.Msg.GetRejected() {
		p.rejected[reason] += uint64(n)
	}
	p.pending, p.bytes = nil, 0
	return nil
}

func (p *pusher) summary() string {
	return strings.TrimSpace(fmt.Sprintf("replayed: %d batches applied, %d duplicates, %d gaps, %d resets, rejected: %s",
		p.applied, p.duplicates, p.gaps, p.resets, counts(p.rejected)))
}
