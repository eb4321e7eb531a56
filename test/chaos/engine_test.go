package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/simulate"
)

// smallBuffer is how many batches the engines keep whose buffer does not reach back to their start.
const smallBuffer = 20

// engine is one simulated engine behind two proxies, with what was asked of it.
type engine struct {
	*simulate.Engine
	live, replay *proxy
	small        bool // its replay buffer
	traffic      *simulate.Traffic
	random       *rand.Rand
	skew         atomic.Int64 // of its clock, nanoseconds

	served map[uint64]simulate.Request // by content; belongs to the goroutine of life, then to the test
	keys   []uint64                    // of served, in no order; likewise
	faults map[string]int              // what happened to it; likewise
}

func startEngine(t *testing.T, i int, seed uint64) *engine {
	t.Helper()
	e := &engine{
		small: i%5 == 4, random: rand.New(rand.NewPCG(seed, uint64(i))),
		served: make(map[uint64]simulate.Request), faults: make(map[string]int),
	}
	forms := simulate.Forms()
	cfg := simulate.Config{
		Worker: fmt.Sprintf("chaos-%03d", i), Form: forms[i%len(forms)], Model: "m", BlockSize: 16, Blocks: 192, Seed: uint64(i),
		Events: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0", Topic: fmt.Sprintf("kv@%03d", i),
		Clock:  func() time.Time { return time.Now().Add(time.Duration(e.skew.Load())) },
		Logger: slog.New(slog.DiscardHandler),
	}
	if e.small {
		cfg.BufferSteps = smallBuffer
	} else {
		cfg.BufferSteps = 1 << 20
	}
	var err error
	if e.Engine, err = simulate.New(cfg); err != nil {
		t.Fatal(err)
	}
	// Engines of one group see the same conversations, so that they share prefixes and hold different parts.
	traffic := simulate.TrafficConfig{
		SystemPrompts: 4, SystemTokens: 96, Conversations: 6, MaxTokens: 640, TurnTokens: 96, Output: 24,
		Tenants: []string{"tenant-a", "tenant-b"},
	}
	if cfg.Form != simulate.FormSGLangArray { // it serves none
		traffic.Adapters = []string{"adapter-a"}
	}
	e.traffic = simulate.NewTraffic(seed+uint64(i%10), traffic)
	e.live, e.replay = newProxy(t, e.Engine.Source().Events, false), newProxy(t, e.Engine.Source().Replay, true)
	return e
}

// source is the engine as the index is told of it: behind its proxies.
func (e *engine) source() events.Source {
	s := e.Engine.Source()
	s.Events, s.Replay = e.live.endpoint(), e.replay.endpoint()
	return s
}

func (e *engine) close() error {
	err := e.Engine.Close()
	e.live.close()
	e.replay.close()
	return err
}

// serve runs one request.
func (e *engine) serve() error { return e.run(e.traffic.Next()) }

// speak runs a request whose prompt nobody has seen, so that the engine publishes: what a network lost of a stream shows
// only with the next batch.
func (e *engine) speak() error {
	tokens := make([]uint32, 40)
	for i := range tokens {
		tokens[i] = e.random.Uint32N(simulate.Vocabulary)
	}
	return e.run(simulate.Request{Tokens: tokens, Output: 1})
}

// run runs a request and remembers the prompt with its answer.
func (e *engine) run(r simulate.Request) error {
	if _, err := e.Engine.Serve(r); err != nil {
		return err
	}
	whole := r
	whole.Tokens = append(append([]uint32(nil), r.Tokens...), simulate.Generate(r.Tokens, r.Output)...)
	e.remember(whole)
	return nil
}

// remembered is how many prompts an engine is asked about in the end. Two minutes serve fewer.
const remembered = 300

// remember keeps r. When there is no more room it takes the place of any other, so that young ones are kept most, and some of
// every age.
func (e *engine) remember(r simulate.Request) {
	key := xxhash.Sum64String(fmt.Sprint(r.Adapter, "\x00", r.CacheSalt, "\x00", r.Tokens))
	if _, again := e.served[key]; again {
		return
	}
	if len(e.keys) < remembered {
		e.keys = append(e.keys, key)
	} else {
		i := e.random.IntN(remembered)
		delete(e.served, e.keys[i])
		e.keys[i] = key
	}
	e.served[key] = r
}

// life serves requests at about the given pause, and does to the engine what happens to engines, until ctx ends.
func (e *engine) life(ctx context.Context, pause time.Duration) error {
	for ctx.Err() == nil {
		if err := errors.Join(e.serve(), e.mishap(ctx)); err != nil {
			return err
		}
		sleep(ctx, rand.N(2*pause))
	}
	return nil
}

// mishap is what the engine does by itself, now and then.
func (e *engine) mishap(ctx context.Context) error {
	switch n := e.random.IntN(1000); {
	case n < 8:
		e.faults["restart"]++
		return e.Restart()
	case n < 12: // it restarts unseen and reaches the same numbers or higher ones before it is heard again
		e.faults["renumber"]++
		e.live.refuse.Store(time.Now().Add(time.Second).UnixNano())
		e.live.cut()
		if err := e.Restart(); err != nil {
			return err
		}
		for range 1 + e.random.IntN(60) {
			if err := e.serve(); err != nil {
				return err
			}
		}
	case n < 18:
		e.faults["reset"]++
		return e.Reset()
	case n < 24:
		e.faults["pause"]++
		sleep(ctx, time.Duration(e.random.IntN(2000))*time.Millisecond)
	case n < 32:
		e.faults["clock"]++
		e.skew.Store(int64(time.Duration(e.random.IntN(7200)-3600) * time.Second))
	case n < 36:
		e.faults["kill"]++
		return e.die(ctx, time.Duration(e.random.IntN(3000))*time.Millisecond)
	case n < 40:
		e.faults["burst"]++
		for range 40 {
			if err := e.serve(); err != nil {
				return err
			}
		}
	}
	return nil
}

// die ends the process without a word and starts the next one later.
func (e *engine) die(ctx context.Context, dead time.Duration) error {
	until := time.Now().Add(dead)
	for _, p := range []*proxy{e.live, e.replay} {
		p.refuse.Store(until.UnixNano())
		p.cut()
	}
	err := e.Restart()
	sleep(ctx, time.Until(until))
	return err
}

// weather does to the proxies what networks do, until ctx ends: one fault at a time, on average every pause.
func weather(ctx context.Context, engines []*engine, pause time.Duration, seed uint64, count map[string]int) {
	random := rand.New(rand.NewPCG(seed, 0x77))
	for ctx.Err() == nil {
		e := engines[random.IntN(len(engines))]
		p := e.live
		if random.IntN(4) == 0 {
			p = e.replay
		}
		until := time.Now().Add(time.Duration(random.IntN(1500)) * time.Millisecond).UnixNano()
		switch n := random.IntN(12); {
		case n < 2:
			count["cut"]++
			p.cut()
		case n < 3:
			count["refuse"]++
			p.refuse.Store(until)
			p.cut()
		case n < 5:
			count["stall"]++
			p.stalled.Store(until)
		default:
			f := 1 + random.IntN(int(faultCount)-1)
			count[fmt.Sprint("message fault ", f)]++
			p.next.Store(int32(f))
		}
		sleep(ctx, rand.N(2*pause))
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// storm lets all engines live and the weather rage for so long.
func storm(t *testing.T, engines []*engine, length, pause time.Duration, seed uint64) map[string]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var wg sync.WaitGroup
	count := make(map[string]int)
	wg.Go(func() { weather(ctx, engines, 30*time.Millisecond, seed, count) }) // both end with ctx
	for _, e := range engines {
		wg.Go(func() {
			if err := e.life(ctx, pause); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, e := range engines {
		for k, n := range e.faults {
			count[k] += n
		}
	}
	return count
}
