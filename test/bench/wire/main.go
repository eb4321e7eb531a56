// Command wire measures kvscout serve over the wire, and another project's indexer over HTTP beside it, with the same client,
// workload and checks, in turn, and prints tables of medians.
//
// usage: wire -kvscout PROGRAM [-peer PROGRAM] [-reps N] [-during TIME]
//
// The peer is test/bench/peers-http. Without one only kvscout is measured. See tools/bench-wire.sh.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/kvscout/kvscout/scorer/bench"
)

// Settings of the workload.
const (
	workers = 64
	prompts = 8
	seed    = 1
)

var (
	sizes   = []int{1024, 8192, 16384} // tokens of a prompt
	callers = []int{1, 8, 32}
)

// settings are the flags.
type settings struct {
	kvscout, peer string
	reps          int
	during        time.Duration
}

func main() {
	var s settings
	flag.StringVar(&s.kvscout, "kvscout", "", "program of kvscout")
	flag.StringVar(&s.peer, "peer", "", "program of the peer")
	flag.IntVar(&s.reps, "reps", 3, "repetitions, of which medians are printed")
	flag.DurationVar(&s.during, "during", 800*time.Millisecond, "time of one measurement")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "wire:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) error {
	if s.kvscout == "" || s.reps < 1 || s.during <= 0 {
		return errors.New("want -kvscout PROGRAM, and -reps and -during over 0")
	}
	got := newResults()
	for _, tokens := range sizes {
		if err := measure(ctx, s, tokens, got); err != nil {
			return fmt.Errorf("%d tokens: %w", tokens, err)
		}
	}
	return got.print(os.Stdout, s)
}

// measure fills both servers with prompts of so many tokens and measures all that is asked for of them.
func measure(ctx context.Context, s settings, tokens int, got *results) (err error) {
	w, err := bench.New(tokens, workers, prompts, seed)
	if err != nil {
		return err
	}
	own, err := startOwn(ctx, s.kvscout, w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.Stop()) }()
	subjects := []subject{own}
	if s.peer != "" {
		peer, err := startPeer(ctx, s.peer, w)
		if err != nil {
			return err
		}
		defer func() { peer.stop() }()
		subjects = append(subjects, peer)
	}
	for _, c := range cells(tokens) {
		for rep := range s.reps {
			for _, sub := range subjects {
				if err := one(ctx, s, w, sub, c, rep, got); err != nil {
					return fmt.Errorf("%s: %w", c, err)
				}
			}
		}
	}
	if tokens == openTokens {
		return open(ctx, s, w, own, got)
	}
	return nil
}

// subject is a server that is measured.
type subject interface {
	name() string
	pid() int
	// callers make the calls of a cell; none: the server does not speak this.
	callers(w *bench.Workload, c cell) ([]bench.Caller, func() error, error)
}

// one takes one measurement.
func one(ctx context.Context, s settings, w *bench.Workload, sub subject, c cell, rep int, got *results) error {
	list, end, err := sub.callers(w, c)
	if err != nil || list == nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "wire: %s, %s, %d/%d\n", sub.name(), c, rep+1, s.reps)
	r := bench.Run(ctx, list, bench.Load{Warmup: s.during / 4, During: s.during, ServerPID: sub.pid(), Rate: c.rate})
	if err := errors.Join(end(), ctx.Err()); err != nil {
		return err
	}
	if r.Errors > 0 || r.Calls == 0 {
		return fmt.Errorf("%s: %d errors %v, %d right answers: %w", sub.name(), r.Errors, r.Reasons, r.Calls, r.First)
	}
	c.rate = 0 // differs from one repetition to the next
	got.add(sub.name(), c, r)
	return nil
}

// open measures open loops, at a rate that is always the same and at half of what a closed loop reached just before, alone and while
// blocks are applied.
func open(ctx context.Context, s settings, w *bench.Workload, own *ownServer, got *results) error {
	three := func(closed, fixed, half kind, rep int) error {
		c := cell{tokens: openTokens, kind: closed, callers: openCallers}
		if err := one(ctx, s, w, own, c, rep, got); err != nil {
			return err
		}
		at := got.last(own.name(), c).Requests / 2
		c.kind, c.rate = fixed, fixedRate
		if err := one(ctx, s, w, own, c, rep, got); err != nil {
			return err
		}
		c.kind, c.rate = half, at
		return one(ctx, s, w, own, c, rep, got)
	}
	s.during *= openLasts
	for rep := range s.reps {
		if err := three(lean, openFixed, openLoop, rep); err != nil {
			return err
		}
		ingested, err := w.Beside(ctx, own.api, ingestRate, func() error { return three(leanIngest, openFixedIngest, openIngest, rep) })
		if err != nil {
			return err
		}
		got.ingested = append(got.ingested, ingested)
	}
	return nil
}
