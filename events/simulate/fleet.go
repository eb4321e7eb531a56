package simulate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/kvscout/kvscout/events"
)

// maxEngines bounds a fleet.
const maxEngines = 1024

// FleetConfig describes several engines under one traffic.
type FleetConfig struct {
	// Engines to run; MixedEngines(4, "127.0.0.1") when empty.
	Engines []Config
	// Traffic is what they serve, made from Seed.
	Traffic TrafficConfig
	Seed    uint64
	// Rate is the number of requests a second over all engines, at least 0.001; 0 is as fast as possible.
	Rate float64
	// Requests ends the run after so many; 0 runs until the context ends.
	Requests int
	// Sticky is the share of requests that go to the engine of their prefix, as a router would send them (0.75); the
	// others go anywhere, so that prefixes spread. A negative share is none.
	Sticky float64
	// ResetEvery and RestartEvery reset or restart an engine, each in turn, before every so many requests; 0 is never.
	ResetEvery, RestartEvery int
	// Ready, if not nil, is called by RunFleet when the endpoints are bound, before the first request.
	Ready func([]events.Source)
}

// Step tells of one served request.
type Step struct {
	// Number counts the requests of the fleet from 1.
	Number  int
	Engine  *Engine
	Request Request
	Outcome Outcome
	// Before says what happened to this engine just before: "", "reset" or "restart".
	Before string
	At     time.Time
}

// MixedEngines describes n engines, worker "sim-0" and on, in the forms vllm, vllm, sglang, vllm-array and over again,
// each bound to free ports of host, with replay.
func MixedEngines(n int, host string) []Config {
	mix := []Form{FormVLLM, FormVLLM, FormSGLang, FormVLLMArray}
	out := make([]Config, n)
	for i := range out {
		out[i] = Config{
			Worker: "sim-" + strconv.Itoa(i), Form: mix[i%len(mix)], Model: "sim-model", Seed: uint64(i),
			Events: "tcp://" + host + ":0", Replay: "tcp://" + host + ":0",
		}
		out[i].Topic = "kv@" + out[i].Worker + "@" + out[i].Model
	}
	return out
}

// Fleet is several engines under one traffic. Run and Close are for one goroutine.
type Fleet struct {
	cfg     FleetConfig
	engines []*Engine
	traffic *Traffic
	random  *rand.Rand
}

// NewFleet starts the engines. It errs with ErrConfig, or when an endpoint cannot be bound; then none is left running.
func NewFleet(cfg FleetConfig) (*Fleet, error) {
	if len(cfg.Engines) == 0 {
		cfg.Engines = MixedEngines(4, "127.0.0.1")
	}
	if cfg.Sticky == 0 {
		cfg.Sticky = 0.75
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	f := &Fleet{
		cfg: cfg, traffic: NewTraffic(cfg.Seed, cfg.Traffic), random: rand.New(rand.NewPCG(cfg.Seed, 0x666c6565)),
	}
	for _, c := range cfg.Engines {
		e, err := New(c)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("engine %q: %w", c.Worker, err), f.Close())
		}
		f.engines = append(f.engines, e)
	}
	return f, nil
}

func (cfg FleetConfig) validate() error {
	if len(cfg.Engines) > maxEngines {
		return fmt.Errorf("%w: %d engines, at most %d", ErrConfig, len(cfg.Engines), maxEngines)
	}
	if !(cfg.Rate == 0 || cfg.Rate >= 0.001) {
		return fmt.Errorf("%w: a rate of %v requests a second", ErrConfig, cfg.Rate)
	}
	if cfg.Requests < 0 || cfg.ResetEvery < 0 || cfg.RestartEvery < 0 {
		return fmt.Errorf("%w: a count of the fleet is negative", ErrConfig)
	}
	if err := cfg.Traffic.Validate(); err != nil {
		return err
	}
	traffic := cfg.Traffic.withDefaults()
	for _, c := range cfg.Engines {
		c = c.withDefaults()
		if len(traffic.Adapters) > 0 && !formTraits[c.Form].adapters {
			return fmt.Errorf("%w: engine %q: form %s serves no adapters, and the traffic has some", ErrConfig, c.Worker, c.Form)
		}
		if room := c.Blocks * c.BlockSize; room < traffic.longest() {
			return fmt.Errorf("%w: engine %q: a cache of %d tokens cannot run requests of up to %d", ErrConfig, c.Worker, room, traffic.longest())
		}
	}
	return nil
}

// Engines returns the running engines, in the order of the configuration.
func (f *Fleet) Engines() []*Engine { return f.engines }

// Sources describes them as a client's configuration would.
func (f *Fleet) Sources() []events.Source {
	out := make([]events.Source, len(f.engines))
	for i, e := range f.engines {
		out[i] = e.Source()
	}
	return out
}

// Run serves traffic until ctx ends (which is no error) or the configured requests are served. observe, which may be
// nil, is called after each request, in order, from this goroutine.
func (f *Fleet) Run(ctx context.Context, observe func(Step)) error {
	return Pace(ctx, f.cfg.Rate, f.cfg.Requests, func(n int) error {
		step, err := f.step(n)
		if err == nil && observe != nil {
			observe(step)
		}
		return err
	})
}

// Pace calls do for requests 1, 2, ... at a rate a second (0: as fast as it returns) until it fails, ctx ends, which is no
// error, or so many were made (0: no end).
func Pace(ctx context.Context, rate float64, requests int, do func(n int) error) error {
	var tick <-chan time.Time
	if rate > 0 {
		t := time.NewTicker(max(time.Duration(float64(time.Second)/rate), time.Microsecond))
		defer t.Stop()
		tick = t.C
	}
	for n := 1; requests == 0 || n <= requests; n++ {
		if tick != nil {
			select {
			case <-ctx.Done():
			case <-tick:
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		if err := do(n); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fleet) step(n int) (Step, error) {
	r := f.traffic.Next()
	s := Step{Number: n, Engine: f.pick(r), Request: r, At: time.Now()}
	var err error
	switch {
	case due(n, f.cfg.RestartEvery):
		s.Engine, s.Before = f.engines[n/f.cfg.RestartEvery%len(f.engines)], "restart"
		err = s.Engine.Restart()
	case due(n, f.cfg.ResetEvery):
		s.Engine, s.Before = f.engines[n/f.cfg.ResetEvery%len(f.engines)], "reset"
		err = s.Engine.Reset()
	}
	if err == nil {
		s.Outcome, err = s.Engine.Serve(r)
	}
	if err != nil {
		return Step{}, fmt.Errorf("request %d on %s: %w", n, s.Engine.Source().ID(), err)
	}
	return s, nil
}

func due(n, every int) bool { return every > 0 && n%every == 0 }

// pick sends most requests of one beginning to one engine.
func (f *Fleet) pick(r Request) *Engine {
	if f.random.Float64() >= f.cfg.Sticky {
		return f.engines[f.random.IntN(len(f.engines))]
	}
	return f.engines[r.Beginning()%uint64(len(f.engines))]
}

// Beginning is a number that requests have in common which begin alike in the same namespace.
func (r Request) Beginning() uint64 {
	b := []byte(r.Adapter + "\x00" + r.CacheSalt + "\x00")
	for _, t := range r.Tokens[:min(len(r.Tokens), 64)] {
		b = binary.LittleEndian.AppendUint32(b, t)
	}
	return xxhash.Sum64(b)
}

// Close closes every engine.
func (f *Fleet) Close() error {
	var faults []error
	for _, e := range f.engines {
		faults = append(faults, e.Close())
	}
	return errors.Join(faults...)
}

// RunFleet starts a fleet, tells its sources to cfg.Ready and runs it until ctx ends (which is no error) or the requests
// are served. It returns when every engine is closed.
func RunFleet(ctx context.Context, cfg FleetConfig, observe func(Step)) (err error) {
	f, err := NewFleet(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if cfg.Ready != nil {
		cfg.Ready(f.Sources())
	}
	return f.Run(ctx, observe)
}
