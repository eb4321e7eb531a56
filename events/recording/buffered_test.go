package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events"
)

// removals are buffered events as TensorRT-LLM serialises them, one under each number.
func removals(ids ...int) string {
	var out []string
	for _, id := range ids {
		out = append(out, fmt.Sprintf(`{"event_id": %d, "data": {"type": "removed", "block_hashes": [%d]}, "window_size": 4096}`, id, id))
	}
	return strings.Join(out, ", ")
}

// What polls returned reads as a recording, whether as lists or as lines. Rule 11: a new life shows, though it repeats
// the old one byte by byte.
func TestBufferedEvents(t *testing.T) {
	for name, text := range map[string]string{
		"lists": "[" + removals(0, 1) + "]\n[]\n[{}, " + removals(4) + "]\n[" + removals(0, 1) + "]\n",
		"lines": strings.Join([]string{removals(0), removals(1), removals(4), removals(0), removals(1)}, "\n"),
	} {
		r, err := NewReader(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		rec, err := r.Next()
		if err != nil || rec.Kind != KindSource || rec.Info.ID() != "trtllm/0" || rec.Info.Engine != events.EngineTRTLLM {
			t.Fatalf("%s: %+v, %v", name, rec, err)
		}
		var got []string
		feed := events.NewFeed(deaf{})
		for {
			rec, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil || rec.Source != "trtllm/0" || rec.check() != nil {
				t.Fatalf("%s: %+v, %v", name, rec, err)
			}
			id, _, err := events.ParseBufferedID(rec.Frames[2])
			if err != nil || binary.BigEndian.Uint64(rec.Frames[1]) != id.ID {
				t.Errorf("%s: %s under % x: %v", name, rec.Frames[2], rec.Frames[1], err)
			}
			m, err := events.ParseFrames(rec.Frames)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%d:%d", id.ID, feed.Message(m, time.Unix(0, rec.Time))))
		}
		want := fmt.Sprintf("[0:%d 1:%d 4:%d 0:%d 1:%d]", events.StepFirst, events.StepNext, events.StepGap, events.StepReset, events.StepNext)
		if fmt.Sprint(got) != want {
			t.Errorf("%s: steps %v, want %v", name, got, want)
		}
	}
}

func TestBufferedEvents_Damaged(t *testing.T) {
	r, err := NewReader(strings.NewReader("[" + removals(0) + `, {"data": {}}, ` + removals(1) + `, {"event_id": 2`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		rec, err := r.Next()
		switch {
		case err == io.EOF:
			if want := "[1 2 bad 2 torn]"; fmt.Sprint(got) != want {
				t.Errorf("%v, want %s", got, want)
			}
			return
		case errors.Is(err, ErrTorn):
			got = append(got, "torn")
		case errors.Is(err, ErrRecord):
			got = append(got, "bad")
		case err != nil:
			t.Fatal(err)
		default:
			got = append(got, fmt.Sprint(int(rec.Kind)))
		}
	}
}

// deaf is a Sink that takes no notice.
type deaf struct{}

func (deaf) Apply(uint64, []byte, time.Time) {}
func (deaf) Reset()                          {}
func (deaf) Joined(uint64, bool)             {}
func (deaf) Gap(uint64, uint64)              {}
func (deaf) State(events.State, error)       {}
func (deaf) Reject(events.Reason)            {}
func (deaf) Replayed(int)                    {}
