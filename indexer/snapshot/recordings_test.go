package snapshot_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/recording"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/snapshot"
)

// played is an index with the sources of a recording.
type played struct {
	t     *testing.T
	x     *indexer.Index
	w     map[string]*indexer.Writer
	feeds map[string]*events.Feed
}

func newPlayed(t *testing.T) *played {
	return &played{t: t, x: indexer.New(indexer.Options{}), w: make(map[string]*indexer.Writer), feeds: make(map[string]*events.Feed)}
}

func (p *played) open(src events.Source) {
	p.t.Helper()
	src.Model = "" // requests name models as clients do
	if _, ok := p.w[src.ID()]; ok {
		return
	}
	w, err := p.x.NewWriter(src, events.Limits{})
	if err != nil {
		p.t.Fatal(err)
	}
	w.Joined(0, true)
	p.w[src.ID()], p.feeds[src.ID()] = w, events.NewFeed(w)
}

func (p *played) play(list []*recording.Record) {
	for _, rec := range list {
		switch rec.Kind {
		case recording.KindSource:
			p.open(*rec.Info)
		case recording.KindMessage:
			_, _ = p.feeds[rec.Source].Frames(rec.Frames, time.Unix(0, rec.Time))
		}
	}
}

// save writes what p has into a file.
func (p *played) save(path string) {
	p.t.Helper()
	_, err := snapshot.Write(path, p.x.Fingerprint(), func(out *snapshot.Writer) error {
		if err := out.Fleet([]byte("the fleet")); err != nil {
			return err
		}
		var s indexer.Saved
		for _, id := range sortedIDs(p.w) {
			if !p.w[id].Export(&s) {
				continue
			}
			if err := out.Stream(&s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

func sortedIDs[T any](m map[string]T) []string {
	var out []string
	for id := range m {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// restored is a copy of p by way of a file.
func (p *played) restored() *played {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), "snapshot")
	p.save(path)
	f, err := snapshot.Open(path, p.x.Fingerprint())
	if err != nil {
		p.t.Fatal(err)
	}
	defer f.Close()
	out := newPlayed(p.t)
	var s indexer.Saved
	for _, id := range sortedIDs(p.w) {
		out.open(p.w[id].Ledger().Source())
		at, ok := f.Find(id)
		if !ok {
			continue
		}
		if err := f.Stream(at, &s); err != nil {
			p.t.Fatal(err)
		}
		w := out.w[id]
		if err := w.Restore(&s, time.Hour); err != nil {
			p.t.Fatal(err)
		}
		out.feeds[id].Resume(s.Cursor, w.Proven)
	}
	return out
}

// same compares what two indexes say of everything; proven: the second need not be flagged.
func same(t *testing.T, what string, a, b *played, queries []indexer.Query, proven bool) {
	t.Helper()
	for _, q := range queries {
		var lists [2][]indexer.Match
		for i, x := range []*indexer.Index{a.x, b.x} {
			list, err := x.Lookup(context.Background(), q)
			if err != nil {
				t.Fatal(err)
			}
			slices.SortFunc(list, func(a, b indexer.Match) int { return strings.Compare(a.Source.ID(), b.Source.ID()) })
			lists[i] = list
		}
		for i := range lists[1] {
			m := &lists[1][i]
			if flagged := m.Bound.Doubt&indexer.DoubtResumed != 0; flagged == proven && m.Freshness.HasSequence {
				t.Fatalf("%s: flagged as resumed: %v", what, flagged)
			}
			if !proven {
				m.Bound = lists[0][i].Bound
				m.Freshness.State = lists[0][i].Freshness.State
			}
		}
		if diff := cmp.Diff(lists[0], lists[1]); diff != "" {
			t.Fatalf("%s: before (-) and after (+) answer differently:\n%s", what, diff)
		}
	}
	for _, id := range sortedIDs(a.w) {
		before, after := a.w[id].Ledger().Stats(), b.w[id].Ledger().Stats()
		if !proven {
			after.Bound = before.Bound
		}
		if diff := cmp.Diff(before, after, cmpopts.IgnoreFields(indexer.SourceStats{}, "Lag", "Since")); diff != "" {
			t.Fatalf("%s: %s counts differently before (-) and after (+):\n%s", what, id, diff)
		}
	}
	if diff := cmp.Diff(a.x.Stats(), b.x.Stats(), cmpopts.IgnoreFields(indexer.Stats{}, "Bytes", "Retired", "Version")); diff != "" {
		t.Fatalf("%s: before (-) and after (+) differ:\n%s", what, diff)
	}
}

func records(t *testing.T, path string) (list []*recording.Record, queries []indexer.Query) {
	t.Helper()
	r, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list, queries
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, rec)
		if q := rec.Request; rec.Kind == recording.KindRequest {
			query := indexer.Query{
				Namespace: indexer.Namespace{Salt: q.CacheSalt, Adapter: q.Adapter, Extra: q.ExtraKey}, AdapterID: q.LoraID, Tokens: q.Tokens,
			}
			for _, f := range q.Features {
				query.Features = append(query.Features, indexer.Feature{Hash: f.Hash, Offset: f.Offset, Length: f.Length})
			}
			queries = append(queries, query)
		}
	}
}

// The state of every recording of a real engine is the same behind a snapshot, at several moments: every recorded
// request is answered alike, every count is alike, and so it goes on to the end.
func TestRule8_RecordingsGoOnBehindASnapshot(t *testing.T) {
	paths, err := filepath.Glob("../../test/testdata/recordings/*.kvrec")
	if err != nil || len(paths) != 26 {
		t.Fatalf("%d recordings, want 26, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".kvrec"), func(t *testing.T) {
			list, queries := records(t, path)
			whole := newPlayed(t)
			whole.play(list)
			for _, cut := range []int{len(list) / 5, len(list) / 2, len(list) - 1, len(list)} {
				first := newPlayed(t)
				first.play(list[:cut])
				second := first.restored()
				same(t, "restored", first, second, queries, false)
				for _, w := range second.w {
					w.Proven()
				}
				for _, id := range sortedIDs(first.w) { // what states the stream tells
					f := first.w[id].Ledger().Freshness()
					if f.HasSequence {
						first.w[id].State(events.StateLive, nil)
						second.w[id].State(events.StateLive, nil)
					}
				}
				same(t, "proven", first, second, queries, true)
				second.play(list[cut:])
				if cut < len(list)-1 {
					same(t, "gone on", whole, second, queries, true)
				}
			}
		})
	}
}
