package simulate

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events"
)

func quiet(list []Config) []Config {
	for i := range list {
		list[i].Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return list
}

// The default fleet serves the default traffic with hits and evictions in every engine, and every prediction-relevant
// fact is in its steps.
func TestFleet(t *testing.T) {
	cfg := FleetConfig{
		Engines: quiet(MixedEngines(4, "127.0.0.1")), Traffic: DefaultTraffic(), Seed: 3, Requests: 400, ResetEvery: 90, RestartEvery: 150,
	}
	for i := range cfg.Engines {
		cfg.Engines[i].Blocks = 160
	}
	var sources []events.Source
	cfg.Ready = func(s []events.Source) { sources = s }
	hits, befores, served := map[string]int{}, map[string]int{}, 0
	err := RunFleet(t.Context(), cfg, func(s Step) {
		served++
		if s.Number != served {
			t.Errorf("step %d after %d", s.Number, served-1)
		}
		if s.Outcome.CachedTokens > 0 {
			hits[s.Engine.Source().ID()]++
		}
		befores[s.Before]++
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]int{"": 394, "reset": 4, "restart": 2}; !cmp.Equal(befores, want) {
		t.Errorf("steps by what came before: %v, want %v", befores, want)
	}
	for _, s := range sources {
		if hits[s.ID()] < 10 {
			t.Errorf("%s: %d hits", s.ID(), hits[s.ID()])
		}
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
	}
	if len(sources) != 4 {
		t.Errorf("%d sources", len(sources))
	}
}

// The end of the context ends a run without an error.
func TestFleetEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err := RunFleet(ctx, FleetConfig{Engines: quiet(MixedEngines(1, "127.0.0.1")), Rate: 500}, func(Step) {
		if n++; n == 5 {
			cancel()
		}
	})
	if err != nil || n != 5 {
		t.Errorf("%d steps, %v", n, err)
	}
}

func TestFleetConfigErrors(t *testing.T) {
	for _, c := range []FleetConfig{
		{Engines: []Config{{Worker: "a", Form: FormSGLangArray}}, Traffic: DefaultTraffic()},
		{Engines: []Config{{Worker: "a", Blocks: 4}}},
		{Engines: []Config{{}}},
		{Rate: -1}, {Rate: 1e-9}, {Requests: -1}, {Traffic: TrafficConfig{TurnTokens: -1}}, {Traffic: TrafficConfig{RepeatShare: 2}},
	} {
		if err := RunFleet(t.Context(), c, nil); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v, want ErrConfig", c, err)
		}
	}
}

// Equal seeds make equal traffic, and the default traffic has what it promises.
func TestTraffic(t *testing.T) {
	a, b, other := NewTraffic(5, DefaultTraffic()), NewTraffic(5, DefaultTraffic()), NewTraffic(6, DefaultTraffic())
	var salted, adapted, aligned, repeated, differ int
	var last Request
	for range 500 {
		r := a.Next()
		if again := b.Next(); !reflect.DeepEqual(r, again) {
			t.Fatalf("same seed: %v and %v", r, again)
		}
		if !reflect.DeepEqual(r, other.Next()) {
			differ++
		}
		for _, c := range []struct {
			is bool
			n  *int
		}{
			{r.CacheSalt != "", &salted}, {r.Adapter != "", &adapted}, {len(r.Tokens)%32 == 0, &aligned}, {reflect.DeepEqual(r, last), &repeated},
		} {
			if c.is {
				*c.n++
			}
		}
		if len(r.Tokens)+r.Output > DefaultTraffic().longest() {
			t.Errorf("%d tokens and %d output", len(r.Tokens), r.Output)
		}
		last = r
	}
	if min(salted, adapted, aligned, repeated) < 25 || differ < 490 {
		t.Errorf("salted %d, adapted %d, aligned %d, repeated %d of 500; %d differ by seed", salted, adapted, aligned, repeated, differ)
	}
}
