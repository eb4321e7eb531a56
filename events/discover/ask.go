package discover

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kvscout/kvscout/events"
)

// Defaults of AskerOptions.
const (
	DefaultRefresh = 30 * time.Second
	DefaultRetry   = 2 * time.Second
	DefaultTimeout = 2 * time.Second
	// asksAtOnce bounds the questions under way, over all workers.
	asksAtOnce = 32
)

// AskerOptions configures an Asker. Zero means the default of that name.
type AskerOptions struct {
	// Policy says which addresses may be reached.
	Policy Policy
	// Refresh is the time between two questions to a worker that answers, Retry to one that does not.
	Refresh, Retry time.Duration
	// Timeout bounds one request.
	Timeout time.Duration
	// Health is the time between two looks at a worker's /health; 0 takes none.
	Health time.Duration
	// Grace is how long /health may fail before the worker is told unhealthy.
	Grace time.Duration
}

// Asker asks workers about themselves over HTTP. It may be used by several goroutines. Close it.
type Asker struct {
	o      AskerOptions
	client *client
	slots  chan struct{}
}

// NewAsker returns an Asker.
func NewAsker(o AskerOptions) *Asker {
	setDuration(&o.Refresh, DefaultRefresh)
	setDuration(&o.Retry, DefaultRetry)
	setDuration(&o.Timeout, DefaultTimeout)
	return &Asker{o: o, client: newClient(o.Policy, o.Timeout), slots: make(chan struct{}, asksAtOnce)}
}

func setDuration(d *time.Duration, otherwise time.Duration) {
	if *d <= 0 {
		*d = otherwise
	}
}

// Close frees idle connections.
func (a *Asker) Close() { a.client.close() }

// follow asks one worker again and again, until ctx ends.
func (a *Asker) follow(ctx context.Context, worker, url string, engine events.Engine, to chan<- news) {
	base, host, err := parseBase(url)
	if err != nil {
		send(ctx, to, news{from: -1, worker: worker, url: url, err: err})
		return // it is asked again when its URL changes
	}
	h := health{grace: a.o.Grace}
	for next := time.Now(); ; {
		if !time.Now().Before(next) {
			answer, err := a.ask(ctx, base, host, engine)
			pause := a.o.Retry
			if err == nil {
				pause = a.o.Refresh
			}
			next = time.Now().Add(pause*3/4 + rand.N(pause/2+1)) // many workers are not asked at one moment
			send(ctx, to, news{from: -1, worker: worker, url: url, answer: answer, err: err})
		}
		wait := time.Until(next)
		if a.o.Health > 0 {
			if changed, err := h.look(a.alive(ctx, base), time.Now()); changed && ctx.Err() == nil {
				send(ctx, to, news{from: -1, worker: worker, url: url, health: true, err: err})
			}
			wait = min(wait, a.o.Health)
		}
		if !sleep(ctx, wait) {
			return
		}
	}
}

// ask puts one worker's questions, within the bound over all workers.
func (a *Asker) ask(ctx context.Context, base, host string, engine events.Engine) (*Worker, error) {
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	q := question{client: a.client, policy: a.o.Policy, base: base, host: host}
	for _, try := range []struct {
		engine events.Engine
		ask    func(context.Context) (*Worker, error)
	}{{events.EngineVLLM, q.vllm}, {events.EngineSGLang, q.sglang}, {events.EngineTRTLLM, q.trtllm}} {
		if engine != "" && engine != try.engine {
			continue
		}
		w, err := try.ask(ctx)
		if !errors.Is(err, errAbsent) || engine != "" {
			return w, err
		}
	}
	return nil, fmt.Errorf("%w: neither /kv_event_sources nor /server_info tells an engine", ErrAnswer)
}

// question is one worker being asked.
type question struct {
	client     *client
	policy     Policy
	base, host string
}

// alive asks for /health. It errs if the worker says that it is not well, or says nothing.
func (a *Asker) alive(ctx context.Context, base string) error {
	err := a.client.get(ctx, base, "/health", nil)
	if errors.Is(err, errAbsent) {
		return nil // it answers, and has no word for it
	}
	return err
}

// health turns looks at a worker into news.
type health struct {
	grace time.Duration
	// well is when a look last succeeded; zero before the first: a port that never answered says nothing.
	well time.Time
	bad  bool
}

// look takes the outcome of one look and says whether the worker's health changed, and to what.
func (h *health) look(err error, now time.Time) (changed bool, why error) {
	if err == nil {
		changed, h.bad, h.well = h.bad, false, now
		return changed, nil
	}
	if h.bad || h.well.IsZero() || now.Sub(h.well) < h.grace {
		return false, nil
	}
	h.bad = true
	return true, fmt.Errorf("no good word from /health in %v: %w", h.grace, err)
}

// sleep waits and reports whether ctx still goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
