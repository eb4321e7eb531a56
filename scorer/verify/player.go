package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/recording"
	"github.com/kvscout/kvscout/indexer"
)

// player keeps an index as a recording goes by.
type player struct {
	opts     Options
	complete map[string]bool
	index    *indexer.Index
	feeds    map[string]*feed
	report   Report
}

type feed struct {
	*events.Feed
	writer *indexer.Writer
	last   int64 // time of the last message, Unix nanoseconds
}

func newPlayer(opts Options, complete map[string]bool) *player {
	return &player{opts: opts, complete: complete, index: indexer.New(opts.Index), feeds: make(map[string]*feed)}
}

func (p *player) play(ctx context.Context, rec *recording.Record) error {
	switch rec.Kind {
	case recording.KindSource:
		return p.open(rec)
	case recording.KindMessage:
		f, ok := p.feeds[rec.Source]
		if !ok {
			return fmt.Errorf("%w: %s", ErrUnknownSource, rec.Source)
		}
		f.last = max(f.last, rec.Time)
		// A message that is none is counted by its source, as live.
		_, _ = f.Frames(rec.Frames, time.Unix(0, rec.Time))
	case recording.KindRequest:
		return p.predict(ctx, rec)
	}
	return nil
}

func (p *player) open(rec *recording.Record) error {
	if _, ok := p.feeds[rec.Source]; ok {
		return nil // described again, as when recordings are joined
	}
	src := *rec.Info
	src.Model = "" // one pool; requests name models as clients do, adapters among them
	w, err := p.index.NewWriter(src, events.Limits{})
	if err != nil {
		return err
	}
	f := &feed{Feed: events.NewFeed(w), writer: w}
	if p.complete[rec.Source] {
		f.Begin()
	}
	p.feeds[rec.Source] = f
	return nil
}

func (p *player) predict(ctx context.Context, rec *recording.Record) error {
	f, ok := p.feeds[rec.Source]
	if !ok {
		return fmt.Errorf("%w: %s", ErrUnknownSource, rec.Source)
	}
	r := rec.Request
	seq, seen := r.After[rec.Source]
	if f.Behind(seq, seen) && rec.Time < f.last {
		return fmt.Errorf("%w: a request of %s comes after a message that it was sent before", ErrOrder, rec.Source)
	}
	if f.Behind(seq, seen) {
		// The client had lost the engine and seen less of it since than we played: the life we know has ended, though
		// no batch of the next one has arrived.
		f.Restart()
	} else if seen {
		f.Missed(seq) // it had seen more than the recording holds
	}
	q := query(r)
	differs, err := p.render(ctx, r, &q)
	if errors.Is(err, ErrUnrendered) {
		p.report.Unrendered++
		return nil
	}
	if err != nil {
		return fmt.Errorf("render request %d: %w", p.report.Requests, err)
	}
	matches, err := p.index.Lookup(ctx, q)
	if err != nil {
		return err
	}
	for i := range matches {
		if matches[i].Source.ID() == rec.Source {
			p.compare(rec.Source, r, &matches[i], differs)
			return nil
		}
	}
	return fmt.Errorf("%w: %s", ErrUnknownSource, rec.Source)
}

func query(r *recording.Request) indexer.Query {
	q := indexer.Query{
		Namespace: indexer.Namespace{Salt: r.CacheSalt, Adapter: r.Adapter, Extra: r.ExtraKey},
		AdapterID: r.LoraID,
		Tokens:    r.Tokens,
	}
	for _, f := range r.Features {
		q.Features = append(q.Features, indexer.Feature{Hash: f.Hash, Offset: f.Offset, Length: f.Length})
	}
	return q
}

// render puts what the body of r becomes into q, and says whether that differs from what the engine ran.
func (p *player) render(ctx context.Context, r *recording.Request, q *indexer.Query) (differs bool, err error) {
	if p.opts.Render == nil || len(r.Body) == 0 {
		return false, nil
	}
	tokens, features, err := p.opts.Render(ctx, r.Path, r.Body)
	if err != nil {
		return false, err
	}
	differs = !slices.Equal(tokens, q.Tokens) || !slices.Equal(features, q.Features)
	q.Tokens, q.Features = tokens, features
	p.report.Rendered++
	if differs {
		p.report.Differing++
	}
	return differs, nil
}

func (p *player) compare(source string, r *recording.Request, m *indexer.Match, differs bool) {
	pr := Prediction{
		Differs:       differs,
		Index:         p.report.Requests,
		Source:        source,
		Predicted:     m.Reusable,
		Reported:      r.CachedTokens,
		HostPredicted: m.With[events.TierHost] - m.Reusable,
		HostReported:  r.HostCachedTokens,
		HasHost:       r.HasHost,
		Bound:         m.Bound,
	}
	diff := pr.Predicted - pr.Reported
	low, high := diff, diff
	if pr.HasHost {
		host := pr.HostPredicted - pr.HostReported
		low, high = min(low, host), max(high, host)
	}
	p.report.Requests++
	switch {
	case high > 0:
		p.report.Over++
	case low < 0:
		p.report.Under++
	default:
		p.report.Equal++
	}
	switch m.Bound.Kind {
	case indexer.Exact:
		pr.Wrong = low != 0 || high != 0
	case indexer.Upper:
		pr.Wrong = low < 0
	case indexer.Lower:
		pr.Wrong = high > 0
	}
	pr.Wrong = pr.Wrong || differs
	switch {
	case pr.Wrong:
		p.report.Wrong++
	case m.Bound.Kind != indexer.Exact:
		p.report.Bounds++
	}
	if p.opts.Observe != nil {
		p.opts.Observe(pr)
	}
}
