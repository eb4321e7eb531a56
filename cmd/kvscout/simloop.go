package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/simulate"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// simEngine is a running engine with what became of its requests.
type simEngine struct {
	*simulate.Engine
	src     events.Source
	last    simulate.Outcome // of its last request
	removed uint64           // removal events that the server counted
	tally
}

// tally counts requests and their predictions. Scored = Equal + Over + Under.
type tally struct {
	Requests     int `json:"requests"`
	PromptTokens int `json:"prompt_tokens"`
	CachedTokens int `json:"cached_tokens"`
	Scored       int `json:"scored"`
	Equal        int `json:"equal"`
	Over         int `json:"over"`
	Under        int `json:"under"`
	// Bounds are answers that were bounds and held, Wrong those that claimed more than was true.
	Bounds int `json:"bounds"`
	Wrong  int `json:"wrong"`
}

// simulation runs traffic on engines, judged by a server or not.
type simulation struct {
	o       *simulateOptions
	engines []*simEngine
	traffic *simulate.Traffic
	random  *rand.Rand
	judge   *judge // nil without --score
	sampled bool   // a prompt was written to --sample
	began   time.Time
}

func newSimulation(o *simulateOptions, engines []*simulate.Engine, traffic *simulate.Traffic) *simulation {
	s := &simulation{o: o, traffic: traffic, random: rand.New(rand.NewPCG(o.seed, 0x6465)), began: time.Now()}
	for _, e := range engines {
		s.engines = append(s.engines, &simEngine{Engine: e, src: e.Source()})
	}
	return s
}

// run serves requests until ctx ends, which is no error, or all are served.
func (s *simulation) run(ctx context.Context, b *board) error {
	if s.judge != nil {
		if err := s.judge.ready(ctx, s.engines); err != nil {
			return unlessEnded(ctx, err)
		}
	}
	return simulate.Pace(ctx, s.o.rate, s.o.requests, func(n int) error {
		if err := s.step(ctx, n); err != nil {
			return unlessEnded(ctx, fmt.Errorf("request %d: %w", n, err))
		}
		if b.due() {
			return b.show(ctx, s)
		}
		return nil
	})
}

// unlessEnded leaves out an error that the end of ctx made.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, errWrong) {
		return nil
	}
	return err
}

// step scores, serves and compares one request.
func (s *simulation) step(ctx context.Context, n int) error {
	r := s.traffic.Next()
	var scores []*kvscoutv1.WorkerScore
	if s.judge != nil {
		var err error
		if scores, err = s.judge.score(ctx, n, s.o.model, r); err != nil {
			return err
		}
	}
	e := s.pick(r, scores)
	out, err := e.Serve(r)
	if err != nil {
		return err
	}
	e.last = out
	e.Requests++
	e.PromptTokens += out.PromptTokens
	e.CachedTokens += out.CachedTokens
	if err := s.writeSample(r); err != nil {
		return err
	}
	if s.judge == nil {
		return nil
	}
	if err := e.compare(scores, out.CachedTokens); err != nil {
		return err
	}
	return s.judge.await(ctx, e)
}

// writeSample writes the first prompt that runs in no namespace to --sample, whole or not at all.
func (s *simulation) writeSample(r simulate.Request) error {
	if s.o.sample == "" || s.sampled || r.CacheSalt != "" || r.Adapter != "" {
		return nil
	}
	s.sampled = true
	data, err := json.Marshal(r.Tokens)
	if err != nil {
		return err
	}
	part := s.o.sample + ".part"
	if err := os.WriteFile(part, data, 0o600); err != nil {
		return err
	}
	return os.Rename(part, s.o.sample)
}

// affinity is how many requests go where their beginning is; the others go anywhere, so that prefixes spread.
const affinity = 0.75

// pick chooses who serves r: mostly the engine with the best score, among equal ones the least busy; without scores
// the same one for the same beginning.
func (s *simulation) pick(r simulate.Request, scores []*kvscoutv1.WorkerScore) *simEngine {
	if s.random.Float64() >= affinity {
		return s.engines[s.random.IntN(len(s.engines))]
	}
	if len(scores) == 0 {
		return s.engines[r.Beginning()%uint64(len(s.engines))]
	}
	best := s.engines[0]
	for _, e := range s.engines[1:] {
		a, b := scoreOf(scores, e).GetScore(), scoreOf(scores, best).GetScore()
		if a > b || a == b && e.Requests < best.Requests {
			best = e
		}
	}
	return best
}

// scoreOf is the answer about e, nil if there is none.
func scoreOf(scores []*kvscoutv1.WorkerScore, e *simEngine) *kvscoutv1.WorkerScore {
	for _, s := range scores {
		if s.GetWorkerId() == e.src.Worker && int(s.GetRank()) == e.src.Rank && s.GetKnown() {
			return s
		}
	}
	return nil
}

// compare counts how the answer about e did against what e reported.
func (e *simEngine) compare(scores []*kvscoutv1.WorkerScore, reported int) error {
	answer := scoreOf(scores, e)
	if answer == nil {
		return fmt.Errorf("the server knows no worker %q", e.src.Worker)
	}
	e.Scored++
	diff := int(answer.GetReusableTokens()) - reported
	switch {
	case diff > 0:
		e.Over++
	case diff < 0:
		e.Under++
	default:
		e.Equal++
	}
	kind := answer.GetBound().GetKind()
	switch {
	case kind == kvscoutv1.BoundKind_BOUND_KIND_EXACT && diff != 0,
		kind == kvscoutv1.BoundKind_BOUND_KIND_UPPER && diff < 0,
		kind == kvscoutv1.BoundKind_BOUND_KIND_LOWER && diff > 0:
		e.Wrong++
	case kind != kvscoutv1.BoundKind_BOUND_KIND_EXACT:
		e.Bounds++
	}
	return nil
}
