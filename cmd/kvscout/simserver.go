package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/simulate"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/client"
)

// Times that a simulation waits for the server.
const (
	callTimeout  = 5 * time.Second
	readyTimeout = 10 * time.Second // for the server to connect to every engine
	applyTimeout = 5 * time.Second  // for a batch to be applied
	pollEvery    = 2 * time.Millisecond
)

// judge asks a server for scores.
type judge struct {
	grpc, json *client.Client
	// whole says that the server has followed the engines from their first batch, since it was told of them first.
	whole bool
}

// dial prepares calls of the server at url.
func (o *simulateOptions) dial(url string, protocol client.Protocol) (*client.Client, error) {
	c := clientOptions{server: url, protocol: string(protocol), timeout: callTimeout, credentialOptions: o.credentialOptions}
	return c.dial()
}

// newJudge returns nil without --score.
func newJudge(o *simulateOptions) (*judge, error) {
	if o.score == "" {
		return nil, nil
	}
	g, err := o.dial(o.score, client.GRPC)
	if err != nil {
		return nil, err
	}
	j, err := o.dial(o.score, client.ConnectJSON)
	if err != nil {
		return nil, err
	}
	return &judge{grpc: g, json: j, whole: o.score == o.register}, nil
}

func (j *judge) Close() {
	if j != nil {
		j.grpc.Close()
		j.json.Close()
	}
}

// score asks about r, by gRPC for odd n and by Connect JSON for even n.
func (j *judge) score(ctx context.Context, n int, model string, r simulate.Request) ([]*kvscoutv1.WorkerScore, error) {
	c := j.grpc
	if n%2 == 0 {
		c = j.json
	}
	req := &kvscoutv1.ScoreRequest{
		Model: model, Tokens: &kvscoutv1.Tokens{Packed: packTokens(r.Tokens)}, CacheSalt: r.CacheSalt, Adapter: r.Adapter,
	}
	res, err := c.Score(ctx, req)
	return res.GetWorkers(), err
}

// ready waits until the server follows every engine's stream from its start, and will be sent what comes: a subscription
// reaches an engine by another connection than the replay by which the server knows that it is live.
func (j *judge) ready(ctx context.Context, engines []*simEngine) error {
	return poll(ctx, readyTimeout, func() error {
		list, err := j.sources(ctx)
		if err != nil {
			return err
		}
		for _, e := range engines {
			s := list[e.src.ID()]
			if s == nil {
				return fmt.Errorf("%w: the server does not listen to %s; --register makes it", errNotYet, e.src.ID())
			}
			live := s.GetFreshness().GetState() == kvscoutv1.FreshnessState_FRESHNESS_STATE_LIVE
			if !live || !j.applied(e, s) {
				return fmt.Errorf("%w: the server's state of %s is %s", errNotYet, e.src.ID(), freshWords(s.GetFreshness()))
			}
			if e.Stats().Subscribers == 0 {
				return fmt.Errorf("%w: the server has not subscribed to %s", errNotYet, e.src.ID())
			}
		}
		return nil
	})
}

// await waits until the server has applied everything that e published.
func (j *judge) await(ctx context.Context, e *simEngine) error {
	if !e.last.Published {
		return nil
	}
	return poll(ctx, applyTimeout, func() error {
		list, err := j.sources(ctx)
		if err != nil {
			return err
		}
		s := list[e.src.ID()]
		f := s.GetFreshness()
		if f == nil || f.LastSequence == nil || f.GetLastSequence() < e.last.Sequence || !j.applied(e, s) {
			return fmt.Errorf("%w: the server has not applied batch %d of %s", errNotYet, e.last.Sequence, e.src.ID())
		}
		return nil
	})
}

// applied says whether as many batches were applied as e published. The sequence number alone is told a moment before
// its batch is applied.
func (j *judge) applied(e *simEngine, s *kvscoutv1.SourceStats) bool {
	return !j.whole || s.GetBatches() >= e.Stats().Published
}

// sources are the event streams of the server by id.
func (j *judge) sources(ctx context.Context) (map[string]*kvscoutv1.SourceStats, error) {
	res, err := j.grpc.GetStats(ctx, &kvscoutv1.GetStatsRequest{})
	if err != nil {
		return nil, err
	}
	out := make(map[string]*kvscoutv1.SourceStats)
	for _, s := range res.GetStats().GetSources() {
		out[s.GetWorkerId()+"/"+strconv.FormatUint(uint64(s.GetRank()), 10)] = s
	}
	return out, nil
}

// errNotYet is what poll waits out.
var errNotYet = errors.New("not yet")

// poll calls fn until it no longer errs with errNotYet, ctx ends or the time is up; then it returns fn's last error.
func poll(ctx context.Context, limit time.Duration, fn func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := fn()
		if !errors.Is(err, errNotYet) || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		sleep(ctx, pollEvery)
	}
}

// enrolment is the engines' registration at a server.
type enrolment struct {
	client *client.Client // nil without --register
	ids    []string
}

// newEnrolment registers the engines where --register says, until ctx ends. Call leave at the end.
func newEnrolment(ctx context.Context, o *simulateOptions, engines []*simEngine, stderr io.Writer) (*enrolment, error) {
	if o.register == "" {
		return &enrolment{}, nil
	}
	c, err := o.dial(o.register, client.Connect)
	if err != nil {
		return nil, err
	}
	r := &enrolment{client: c}
	whole := context.WithoutCancel(ctx) // a call that is cut off may still register
	for _, e := range engines {
		if ctx.Err() != nil {
			break
		}
		res, err := c.RegisterWorker(whole, &kvscoutv1.RegisterWorkerRequest{Worker: workerSpec(e.src, 1)})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("register %s: %w", e.src.Worker, err), r.leave(whole))
		}
		if res.GetReplaced() {
			warn(stderr, "the server knew a worker %q already; it is replaced, and removed at the end", e.src.Worker)
		}
		r.ids = append(r.ids, e.src.Worker)
	}
	return r, nil
}

// leave deregisters the engines.
func (r *enrolment) leave(ctx context.Context) error {
	if r.client == nil {
		return nil
	}
	defer r.client.Close()
	var faults []error
	for _, id := range r.ids {
		if _, err := r.client.DeregisterWorker(ctx, &kvscoutv1.DeregisterWorkerRequest{WorkerId: id}); err != nil {
			faults = append(faults, fmt.Errorf("deregister %s: %w", id, err))
		}
	}
	return errors.Join(faults...)
}

// sourceSpec is src in the form of --source.
func sourceSpec(src events.Source) string {
	parts := []string{"id=" + src.Worker, "engine=" + string(src.Engine), "model=" + src.Model,
		"block-size=" + strconv.Itoa(src.BlockSize), "events=" + src.Events}
	if src.Replay != "" {
		parts = append(parts, "replay="+src.Replay)
	}
	if src.Topic != "" {
		parts = append(parts, "topic="+src.Topic)
	}
	return strings.Join(parts, ",")
}
