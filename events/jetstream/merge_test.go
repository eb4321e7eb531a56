package jetstream

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/kvscout/kvscout/events"
)

// script drives one source's merge with records of two ingesters, a second apart unless said otherwise.
type script struct {
	t     *testing.T
	sink  *trace
	s     *source
	clock time.Time
}

func newScript(t *testing.T) *script {
	sink := newTrace()
	return &script{t: t, sink: sink, s: &source{sink: sink, lease: 10 * time.Second}, clock: time.Unix(1000, 0)}
}

// message takes a message of an ingester, whose payload is its number in its life; the link is that of the number before.
func (c *script) message(ingester, epoch, seq uint64, life string, complete, linked bool) {
	c.clock = c.clock.Add(time.Second)
	payload := func(n uint64) []byte { return fmt.Appendf(nil, "%s%d", life, n) }
	c.s.take(&record{
		kind: kindMessage, ingester: ingester, epoch: epoch, seq: seq, hasSeq: true, complete: complete,
		link: xxhash.Sum64(payload(seq - 1)), linked: linked, time: c.clock, body: payload(seq),
	}, c.clock)
}

func (c *script) other(r record) {
	c.clock = c.clock.Add(time.Second)
	r.time = c.clock
	c.s.take(&r, c.clock)
}

func (c *script) wants(want ...string) {
	c.t.Helper()
	if got := c.sink.all(); !slices.Equal(got, want) {
		c.t.Errorf("told %q, want %q", got, want)
	}
}

const a, b = 1, 2 // ingesters

// Rule 8: records of a life that ended, or of one whose beginning the ingester missed, change nothing.
func TestRule8_StaleIngester(t *testing.T) {
	c := newScript(t)
	c.message(a, 10, 0, "x", true, false)
	c.message(a, 10, 1, "x", false, true)
	c.message(b, 99, 7, "y", false, false) // who knows what this is
	c.message(a, 11, 0, "y", true, false)  // the engine started again
	c.message(b, 10, 2, "x", false, true)  // b has not noticed
	c.message(a, 11, 1, "y", false, true)
	c.wants("joined 0 true", "0:x0", "1:x1", "reject stale_publisher", "reset", "joined 0 true", "0:y0", "reject stale_publisher", "1:y1")
}

// Rule 8: an ingester that joined late is found to hear the life at hand, by what it heard before, or by a message that
// was applied already. Then it may go on alone.
func TestRule8_LateIngester(t *testing.T) {
	for name, by := range map[string]func(*script){
		"link":    func(c *script) { c.message(b, 99, 2, "x", false, true) },
		"payload": func(c *script) { c.message(a, 10, 2, "x", false, true); c.message(b, 99, 2, "x", false, false) },
	} {
		c := newScript(t)
		c.message(a, 10, 0, "x", true, false)
		c.message(a, 10, 1, "x", false, true)
		by(c)
		c.message(b, 99, 3, "x", false, true)
		c.message(a, 10, 3, "x", false, true)
		got := slices.DeleteFunc(c.sink.all(), func(s string) bool { return s == "reject duplicate" })
		if want := []string{"joined 0 true", "0:x0", "1:x1", "2:x2", "3:x3"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Rule 11: an ingester that cannot be shown to continue takes over when the other one has been silent, or has left, and
// what is known begins anew.
func TestRule11_TakeOver(t *testing.T) {
	c := newScript(t)
	c.message(a, 10, 0, "x", true, false)
	c.message(b, 99, 7, "y", false, false)
	c.clock = c.clock.Add(11 * time.Second)
	c.message(b, 99, 8, "y", false, true)
	c.wants("joined 0 true", "0:x0", "reject stale_publisher", "reset", "joined 8 false", "8:y8")

	c = newScript(t)
	c.message(a, 10, 0, "x", true, false)
	c.other(record{kind: kindClosed, ingester: a})
	c.message(b, 99, 7, "y", false, false)
	c.wants("joined 0 true", "0:x0", "reset", "joined 7 false", "7:y7")
}

// Rule 11: a restart that the leader tells counts before a message shows it; another ingester's does not.
func TestRule11_Reset(t *testing.T) {
	c := newScript(t)
	c.message(a, 10, 0, "x", true, false)
	c.other(record{kind: kindReset, ingester: b})
	c.other(record{kind: kindReset, ingester: a})
	c.other(record{kind: kindReset, ingester: a}) // stored twice
	c.message(a, 12, 5, "y", false, false)
	c.wants("joined 0 true", "0:x0", "reset", "joined 5 false", "5:y5")
}

// Rule 13: a source that was told to be empty is known to be, and a late first message is a hole.
func TestRule13_Empty(t *testing.T) {
	live := record{kind: kindState, state: events.StateLive, complete: true, ingester: a}
	c := newScript(t)
	c.other(live)
	c.other(live)
	c.message(a, 10, 0, "x", true, false)
	c.wants("joined 0 true", "0:x0")

	c = newScript(t)
	c.other(live)
	c.message(a, 10, 2, "x", false, false)
	c.wants("joined 0 true", "gap 0..1", "joined 2 false", "2:x2")
}

// Rule 11: a hole in the numbers, and one that the state shows.
func TestRule11_Holes(t *testing.T) {
	c := newScript(t)
	c.message(a, 10, 0, "x", true, false)
	c.message(a, 10, 3, "x", false, false)
	c.other(record{kind: kindState, state: events.StateLive, ingester: a, epoch: 10, seq: 5, hasSeq: true})
	c.message(a, 10, 6, "x", false, true)
	c.wants("joined 0 true", "0:x0", "gap 1..2", "joined 3 false", "3:x3", "gap 4..5", "joined 6 false", "6:x6")
}

// Rules 12 and 13: what is told of the state.
func TestRule13_States(t *testing.T) {
	now := time.Unix(2000, 0)
	for name, tt := range map[string]struct {
		s    source
		over events.State
		why  error
		want string
	}{
		"nothing heard":       {want: "unknown "},
		"as the ingester":     {s: source{leader: a, state: events.StateLive, heard: now}, want: "live "},
		"lost":                {s: source{leader: a, state: events.StateLive, lossy: true, heard: now}, want: "gap "},
		"lost, reconnecting":  {s: source{leader: a, state: events.StateConnecting, why: "refused", lossy: true, heard: now}, want: "connecting refused"},
		"trimmed":             {s: source{leader: a, state: events.StateLive, unproven: true, heard: now}, want: "replaying " + ErrTrimmed.Error()},
		"silent":              {s: source{leader: a, state: events.StateLive, heard: now.Add(-time.Minute)}, want: "stale " + ErrSilent.Error()},
		"behind":              {s: source{leader: a, state: events.StateLive, heard: now}, over: events.StateReplaying, why: ErrBehind, want: "replaying " + ErrBehind.Error()},
		"resumed, not proven": {s: source{at: Position{Epoch: 1}, unproven: true}, want: "replaying " + ErrTrimmed.Error()},
	} {
		state, text := tt.s.judge(tt.over, tt.why, 30*time.Second, now)
		if got := state.String() + " " + text; got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// Two ingesters that hear the beginning of a life name it alike; the same beginning twice is two lives.
func TestLives(t *testing.T) {
	life := func(l *lives, complete bool, first string) uint64 {
		l.begin(complete)
		e := l.of(0, []byte(first))
		if e == 0 || l.of(1, []byte("next")) != e {
			t.Errorf("epoch %x does not stay", e)
		}
		return e
	}
	n := uint64(0)
	random := func() uint64 { n += 2; return n }
	one, two := &lives{random: random}, &lives{random: random}
	if x, y := life(one, true, "x"), life(two, true, "x"); x != y {
		t.Errorf("%x and %x are one life", x, y)
	}
	if x, y := life(one, true, "x"), life(two, true, "x"); x != y || x == life(&lives{random: random}, true, "x") {
		t.Error("the same beginning again is another life, for both alike")
	}
	if life(one, false, "z") == life(two, false, "z") {
		t.Error("late ingesters cannot name a life alike")
	}
	drained := &lives{random: random, drained: true}
	if x, y := life(drained, true, "x"), life(drained, true, "x"); x == y {
		t.Error("events without times do not name a life")
	}
}
