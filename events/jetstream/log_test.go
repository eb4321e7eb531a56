package jetstream

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/jetstream/embedded"
)

// Three replicas read the same log and are told the same, whenever they join and however often they are restarted.
func TestReplicas(t *testing.T) {
	s := serve(t, embedded.Options{})
	l := open(t, s, quick)
	_, sink := ingest(t, l)
	one, _, _ := follow(t, l, nil)
	two, _, stop := follow(t, open(t, s, quick), nil)
	sink.State(events.StateLive, nil)
	sink.Joined(0, true)
	tell(sink, 0, "a", "b")
	two.source(t).has(t, "joined 0 true", "0:a", "1:b")
	stop() // in the middle
	tell(sink, 2, "c", "d")
	sink.Reset()
	sink.Joined(0, true)
	tell(sink, 0, "e")
	again, _, _ := follow(t, open(t, s, quick), nil)
	tell(sink, 1, "f", "g")
	three, _, _ := follow(t, open(t, s, quick), nil)
	want := []string{"joined 0 true", "0:a", "1:b", "2:c", "3:d", "reset", "joined 0 true", "0:e", "1:f", "2:g"}
	for i, g := range []*target{one, again, three} {
		g.source(t).has(t, want...)
		g.source(t).is(t, "live")
		if got := g.source(t).all(); !slices.Equal(got, want) {
			t.Errorf("replica %d: %q", i, got)
		}
		if diff := cmp.Diff(map[string]Member{"w": {ID: "w", Model: "m", Sources: []Source{{Engine: events.EngineVLLM}}}}, g.members); diff != "" {
			t.Errorf("replica %d's workers (-want +got):\n%s", i, diff)
		}
	}
}

// Rule 8: two ingesters that hear the same engine do not count double, in whatever order their records are stored; when
// one leaves the other goes on.
func TestRule8_TwoIngesters(t *testing.T) {
	s := serve(t, embedded.Options{})
	l := open(t, s, quick)
	a, first := ingest(t, l)
	b, second := ingest(t, open(t, s, quick))
	g, _, _ := follow(t, l, nil)
	for _, sink := range []events.Sink{first, second} {
		sink.State(events.StateLive, nil)
		sink.Joined(0, true)
		tell(sink, 0, "a", "b", "c")
	}
	trace := g.source(t)
	trace.wait(t, func() bool { return slices.Contains(trace.calls, "2:c") }, "2:c")
	tell(second, 3, "d")
	trace.wait(t, func() bool { return slices.Contains(trace.calls, "3:d") }, "3:d")
	tell(first, 3, "d", "e")
	trace.wait(t, func() bool { return slices.Contains(trace.calls, "4:e") }, "4:e")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	a.Close(ctx)
	tell(second, 4, "e", "f")
	trace.wait(t, func() bool { return slices.Contains(trace.calls, "5:f") }, "5:f")
	trace.is(t, "live")
	got := slices.DeleteFunc(trace.all(), func(c string) bool { return c == "reject duplicate" })
	if want := []string{"joined 0 true", "0:a", "1:b", "2:c", "3:d", "4:e", "5:f"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	if n := a.Stats().Duplicates + b.Stats().Duplicates; n == 0 {
		t.Error("the server refused no repeat")
	}
}

// Rule 11: records that retention takes before a replica has read them are a gap, not silence.
func TestRule11_Trimmed(t *testing.T) {
	s := serve(t, embedded.Options{})
	o := quick
	o.MaxBytes = 64 << 10
	l := open(t, s, o)
	_, sink := ingest(t, l)
	g, f, stop := follow(t, l, nil)
	sink.State(events.StateLive, nil)
	sink.Joined(0, true)
	tell(sink, 0, "a")
	g.source(t).has(t, "0:a")
	g.source(t).is(t, "live")
	var at Cursor
	f.Pause(func(c Cursor) { at = c })
	stop()
	for i := range 40 {
		payload := make([]byte, 4096) // that the server cannot compress
		_, _ = rand.Read(payload)
		tell(sink, uint64(1+i), string(payload))
	}
	watch, _, _ := follow(t, l, &at)
	watch.source(t).has(t, "40:...")
	late, follower, _ := follow(t, open(t, s, o), &at)
	late.until(t, "followed", func() bool { return len(late.members) == 1 })
	trace := late.source(t)
	trace.wait(t, func() bool {
		return len(trace.calls) > 2 && strings.HasPrefix(trace.calls[0], "gap 1..") && strings.HasPrefix(trace.calls[len(trace.calls)-1], "40:")
	}, "a gap, and the last message")
	trace.is(t, "gap")
	if n := follower.Stats().Trimmed; n == 0 {
		t.Error("no record is counted as trimmed")
	}
	// Who joins without a cursor knows only what came since.
	fresh, _, _ := follow(t, open(t, s, o), nil)
	trace = fresh.source(t)
	tell(sink, 41, "z")
	trace.wait(t, func() bool {
		return len(trace.calls) > 1 && strings.HasSuffix(trace.calls[0], " false") && trace.calls[len(trace.calls)-1] == "41:z"
	}, "a late start")
}

// Rule 11: a hole behind which no message comes shows by what the ingester says it heard.
func TestRule11_HoleAtTheEnd(t *testing.T) {
	s := serve(t, embedded.Options{})
	l := open(t, s, quick)
	_, sink := ingest(t, l)
	g, _, _ := follow(t, l, nil)
	sink.State(events.StateLive, nil)
	sink.Joined(0, true)
	tell(sink, 0, "a")
	sink.Gap(1, 3)
	sink.Joined(4, false)
	sink.State(events.StateGap, nil)
	g.source(t).has(t, "0:a", "gap 1..3", "joined 4 false")
	g.source(t).is(t, "gap")
	tell(sink, 4, "e")
	g.source(t).has(t, "joined 4 false", "4:e")
}

// Rule 17: what does not fit the queue, or the server, is dropped, counted, and a hole.
func TestRule17_QueueAndRecordBounds(t *testing.T) {
	s := serve(t, embedded.Options{})
	o := quick
	o.QueueBytes = 100
	l := open(t, s, o)
	p, sink := ingest(t, l)
	g, _, _ := follow(t, l, nil)
	sink.Joined(0, true)
	tell(sink, 0, "a")
	g.source(t).has(t, "0:a")
	sink.Apply(1, make([]byte, 20<<20), time.Now())
	g.source(t).has(t, "gap 1..1", "joined 2 false")
	if n := p.Stats().Refused; n != 1 {
		t.Errorf("%d records refused", n)
	}
	for i := range uint64(200) {
		sink.Apply(2+i, make([]byte, 60), time.Now())
	}
	trace := g.source(t)
	trace.wait(t, func() bool {
		return slices.ContainsFunc(trace.calls, func(c string) bool { return strings.HasSuffix(c, "..201") || strings.HasPrefix(c, "201:") })
	}, "the end of the burst, lost or not")
	if n := p.Stats().Dropped; n == 0 {
		t.Error("nothing was dropped")
	}
}

// Rule 12: a source that nobody tells of goes stale, and so does everything when the log is out of reach; both come back.
func TestRule12_SilenceAndLoss(t *testing.T) {
	dir := t.TempDir()
	s, err := embedded.Start(embedded.Options{Dir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	addr := s.ClientURL()
	o := quick
	o.URL = addr
	l := open(t, nil, o)
	p, sink := ingest(t, open(t, nil, o))
	g, _, _ := follow(t, l, nil)
	sink.State(events.StateLive, nil)
	sink.Joined(0, true)
	tell(sink, 0, "a")
	g.source(t).is(t, "live")
	s.Close()
	g.source(t).is(t, "connecting: the log is not reached")
	g.source(t).is(t, "stale: the log is not reached")
	tell(sink, 1, "b") // waits
	s, err = embedded.Start(embedded.Options{Dir: dir, Listen: strings.TrimPrefix(addr, "nats://")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	g.source(t).has(t, "joined 0 true", "0:a", "1:b")
	g.source(t).is(t, "live")
	if link := l.Link(); link.Reconnects == 0 || link.Unreached != 0 {
		t.Errorf("%+v", link)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	p.Close(ctx)
	g.source(t).is(t, "connecting: its ingester has left")
	g.source(t).is(t, "stale: no ingester has told of it")
}

// A worker that leaves is taken out; one that is described otherwise begins anew.
func TestMembers(t *testing.T) {
	s := serve(t, embedded.Options{})
	l := open(t, s, quick)
	p, sink := ingest(t, l)
	g, _, _ := follow(t, l, nil)
	sink.Joined(0, true)
	tell(sink, 0, "a")
	g.source(t).has(t, "0:a")
	p.Members([]Member{{ID: "w", Model: "m2", Role: "prefill", Labels: map[string]string{"a": "b"}, Sources: []Source{SourceOf(described)}}})
	g.until(t, "described anew", func() bool { return g.members["w"].Model == "m2" && g.members["w"].Labels["a"] == "b" })
	tell(sink, 1, "b")
	g.source(t).has(t, "joined 1 false", "1:b")
	p.Members(nil)
	g.until(t, "gone", func() bool { return len(g.members) == 0 })
}

// The cursor of one log is refused by another.
func TestCursor_OtherLog(t *testing.T) {
	s := serve(t, embedded.Options{})
	l := open(t, s, quick)
	for name, c := range map[string]Cursor{
		"made at another time": {Created: time.Unix(1, 0), Sequence: 0, Sources: map[string]Bookmark{"w/0": {Position: Position{Epoch: 1}}}},
		"ahead of it":          {Sequence: 1000, Sources: map[string]Bookmark{"w/0": {Position: Position{Epoch: 1}}}},
	} {
		f := l.Follow(newTarget())
		if err := f.StartFrom(c); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		if err := f.Run(ctx); !errors.Is(err, ErrCursor) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	if err := l.Follow(newTarget()).StartFrom(Cursor{Sources: map[string]Bookmark{"": {}}}); !errors.Is(err, ErrCursor) {
		t.Errorf("a source without a name: %v", err)
	}
}

// A replica goes on from a cursor, without a repeat.
func TestStartFrom(t *testing.T) {
	s := serve(t, embedded.Options{})
	l := open(t, s, quick)
	_, sink := ingest(t, l)
	g, f, stop := follow(t, l, nil)
	sink.State(events.StateLive, nil)
	sink.Joined(0, true)
	tell(sink, 0, "a", "b")
	g.source(t).has(t, "1:b")
	var at Cursor
	f.Pause(func(c Cursor) { at = c })
	if at.Sequence == 0 || len(at.Members) != 1 || at.Sources["w/0"].Last != 1 || at.Sources["w/0"].Epoch == 0 {
		t.Fatalf("cursor %+v", at)
	}
	stop()
	tell(sink, 2, "c")
	next, _, _ := follow(t, l, &at)
	next.source(t).has(t, "2:c")
	next.source(t).is(t, "live")
	if got := next.source(t).all(); len(got) != 1 {
		t.Errorf("told %q", got)
	}
}

// Credentials come from files and are asked for; they stand in no error.
func TestCredentials(t *testing.T) {
	s := serve(t, embedded.Options{Listen: "127.0.0.1:0", Token: "hunter2"})
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := quick
	o.URL = s.ClientURL()
	o.TokenFile = file
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := open(t, nil, o).stream(ctx); err != nil {
		t.Errorf("with the token: %v", err)
	}
	o.TokenFile = ""
	short, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if _, err := open(t, nil, o).stream(short); err == nil {
		t.Error("without the token")
	}
	for name, o := range map[string]Options{
		"nothing": {}, "both": {URL: "nats://h", Server: s}, "credentials in the URL": {URL: "nats://user:hunter2@h:4222"},
		"stream": {URL: "nats://h", Stream: "a.b"}, "negative": {URL: "nats://h", MaxBytes: -1},
		"half a pair": {URL: "nats://h", CertFile: "x"}, "no token": {URL: "nats://h", TokenFile: "/nonexistent"},
		"two ways": {URL: "nats://h", TokenFile: file, CredentialsFile: file},
	} {
		_, err := Open(o)
		if !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error tells the secret: %v", name, err)
		}
	}
}
