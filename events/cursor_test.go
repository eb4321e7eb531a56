package events

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// deeds is a Sink that lists what is to be done.
type deeds struct{ list []string }

func (d *deeds) note(format string, args ...any) {
	d.list = append(d.list, fmt.Sprintf(format, args...))
}

func (d *deeds) Apply(seq uint64, _ []byte, _ time.Time) { d.note("apply %d", seq) }
func (d *deeds) Reset()                                  { d.note("reset") }
func (d *deeds) Joined(first uint64, complete bool)      { d.note("joined %d %v", first, complete) }
func (d *deeds) Gap(from, to uint64)                     { d.note("gap %d-%d", from, to) }
func (d *deeds) State(State, error)                      {}
func (d *deeds) Reject(r Reason)                         { d.note("%v", r) }
func (d *deeds) Replayed(int)                            {}

// A feed goes on behind a cursor (rule 8), and is told when who feeds it is proven to be the one of the cursor (rule 11):
// by the batch of the cursor, which is applied once all the same, or by the epoch.
func TestRule11_FeedResumes(t *testing.T) {
	m := func(seq uint64, payload, epoch string) Message {
		return Message{Seq: seq, Payload: []byte(payload), Epoch: []byte(epoch)}
	}
	for _, tc := range []struct {
		name  string
		epoch string
		in    []Message
		want  []string
	}{
		{"next", "", []Message{m(6, "b", "")}, []string{"apply 6"}},
		{"the cursor's batch again", "", []Message{m(5, "a", ""), m(6, "b", "")}, []string{"proven", "duplicate", "apply 6"}},
		{"a later batch twice", "", []Message{m(6, "b", ""), m(6, "b", "")}, []string{"apply 6", "duplicate"}},
		{"other content", "", []Message{m(5, "x", "")}, []string{"reset", "joined 5 false", "apply 5"}},
		{"fallen", "", []Message{m(0, "x", "")}, []string{"reset", "joined 0 true", "apply 0"}},
		{"gap", "", []Message{m(8, "x", "")}, []string{"gap 6-7", "joined 8 false", "apply 8"}},
		{"same epoch", "e", []Message{m(6, "b", "e"), m(7, "c", "e")}, []string{"proven", "apply 6", "apply 7"}},
		{"other epoch", "e", []Message{m(6, "b", "f"), m(7, "c", "f")}, []string{"reset", "joined 6 false", "apply 6", "apply 7"}},
		{"an epoch now", "", []Message{m(6, "b", "f")}, []string{"reset", "joined 6 false", "apply 6"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := new(deeds)
			f := NewFeed(d)
			c := CursorAt(5, []byte("a"), time.Now())
			c.Epoch = tc.epoch
			f.Resume(c, func() { d.note("proven") })
			if f.Next() != 6 || f.Epoch() != tc.epoch {
				t.Errorf("next %d, epoch %q", f.Next(), f.Epoch())
			}
			for _, in := range tc.in {
				f.Message(in, time.Now())
			}
			if diff := cmp.Diff(tc.want, d.list); diff != "" {
				t.Error(diff)
			}
		})
	}
}
