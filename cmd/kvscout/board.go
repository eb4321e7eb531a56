package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

// board shows a running simulation: on a terminal the table again every second, else a line every few seconds.
type board struct {
	w     io.Writer
	live  bool
	every time.Duration
	next  time.Time
}

func newBoard(cmd *cobra.Command, quiet bool) *board {
	b := &board{w: cmd.ErrOrStderr(), every: progressEvery}
	if out := cmd.OutOrStdout(); isTerminal(out) && !quiet {
		b.w, b.live, b.every = out, true, time.Second
	}
	b.next = time.Now().Add(b.every)
	return b
}

func (b *board) due() bool { return time.Now().After(b.next) }

func (b *board) show(ctx context.Context, s *simulation) error {
	b.next = time.Now().Add(b.every)
	sum := s.summary()
	if !b.live {
		line := fmt.Sprintf("kvscout: %d requests, %s of the prompt tokens from a cache", sum.Requests, percent(sum.CachedTokens, sum.PromptTokens))
		if s.judge != nil {
			line += fmt.Sprintf(", %d of %d predictions equal, %d wrong", sum.Equal, sum.Scored, sum.Wrong)
		}
		_, err := fmt.Fprintln(b.w, line)
		return err
	}
	s.countRemovals(ctx)
	if _, err := fmt.Fprint(b.w, "\x1b[H\x1b[2J"); err != nil { // home, clear
		return err
	}
	return s.summary().print(b.w, false)
}

// countRemovals asks the server for the removals of each engine. They are decoration: without an answer the old
// numbers stay.
func (s *simulation) countRemovals(ctx context.Context) {
	if s.judge == nil {
		return
	}
	list, err := s.judge.sources(ctx)
	if err != nil {
		return
	}
	for _, e := range s.engines {
		if stats := list[e.src.ID()]; stats != nil {
			e.removed = stats.GetRemovedEvents()
		}
	}
}

// simSummary is the outcome of a simulation.
type simSummary struct {
	Engines []engineSummary `json:"engines"`
	tally
	Seconds float64 `json:"seconds"`
}

// engineSummary is the outcome of one engine.
type engineSummary struct {
	Engine string `json:"engine"`
	Form   string `json:"form"`
	tally
	// Batches published; Evictions are removal events that the server saw, 0 without --score.
	Batches   uint64 `json:"batches"`
	Evictions uint64 `json:"evictions"`
}

func (s *simulation) summary() simSummary {
	sum := simSummary{Seconds: time.Since(s.began).Seconds()}
	for _, e := range s.engines {
		sum.Engines = append(sum.Engines, engineSummary{
			Engine: e.src.Worker, Form: string(e.Form()), tally: e.tally, Batches: e.Stats().Published, Evictions: e.removed,
		})
		sum.add(e.tally)
	}
	return sum
}

func (t *tally) add(o tally) {
	t.Requests += o.Requests
	t.PromptTokens += o.PromptTokens
	t.CachedTokens += o.CachedTokens
	t.Scored += o.Scored
	t.Equal += o.Equal
	t.Over += o.Over
	t.Under += o.Under
	t.Bounds += o.Bounds
	t.Wrong += o.Wrong
}

func (s simSummary) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(s)
	}
	columns := []any{"ENGINE", "FORM", "REQUESTS", "PROMPT TOKENS", "FROM CACHE", "HIT", "BATCHES"}
	if s.Scored > 0 { // what only a server tells
		columns = append(columns, "EVICTIONS", "SCORED", "EQUAL", "OVER", "UNDER", "BOUNDS", "WRONG")
	}
	t := newTable(w, columns...)
	line := func(name, form string, c tally, batches, evictions uint64) {
		cells := []any{name, form, c.Requests, c.PromptTokens, c.CachedTokens, percent(c.CachedTokens, c.PromptTokens),
			batches, evictions, c.Scored, c.Equal, c.Over, c.Under, c.Bounds, c.Wrong}
		t.row(cells[:len(columns)]...)
	}
	var batches, evictions uint64
	for _, e := range s.Engines {
		line(e.Engine, e.Form, e.tally, e.Batches, e.Evictions)
		batches += e.Batches
		evictions += e.Evictions
	}
	line("total", "", s.tally, batches, evictions)
	if err := t.flush(); err != nil {
		return err
	}
	if s.Scored > 0 {
		_, err := fmt.Fprintf(w, "predicted = reported in %d of %d requests (gRPC and Connect JSON in turn), %d wrong, %.1f s\n", s.Equal, s.Scored, s.Wrong, s.Seconds)
		return err
	}
	return nil
}
