package zmq_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/zmq"
	"github.com/kvscout/kvscout/events/zmq/zmqtest"
)

// ask replays and returns the numbers received.
func ask(t *testing.T, o zmq.ReplayOptions) ([]uint64, zmq.Result, error) {
	t.Helper()
	var got []uint64
	o.IdleTimeout = orElse(o.IdleTimeout, 3*time.Second)
	r, err := zmq.Replay(t.Context(), o, func(m events.Message) error {
		got = append(got, m.Seq)
		return nil
	})
	return got, r, err
}

func orElse(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// TestCase48_Replay, TestCase57_Layouts: the request has its empty delimiter, the replies come in both layouts, with and
// without a topic.
func TestCase48_Case57_Replay(t *testing.T) {
	for _, layout := range []string{"new", "old"} {
		for _, topic := range []string{"kv", ""} {
			t.Run(layout+" "+topic, func(t *testing.T) {
				p := zmqtest.Start(t)
				at := p.Do("open", zmqtest.Args{"replay": "tcp://127.0.0.1:*", "layout": layout, "topic": topic})
				p.Do("publish", zmqtest.Args{"n": 5})
				var got []events.Message
				o := zmq.ReplayOptions{Endpoint: endpoint(t, at.Replay), From: 2}
				r, err := zmq.Replay(t.Context(), o, func(m events.Message) error {
					got = append(got, m)
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				var want []events.Message
				for i, payload := range []string{"0:2", "0:3", "0:4"} {
					m := events.Message{Seq: uint64(i) + 2, Payload: []byte(payload), Epoch: []byte{}}
					if layout == "new" {
						m.Topic = []byte(topic)
					}
					want = append(want, m)
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Error(d)
				}
				if d := cmp.Diff(zmq.Result{First: 2, Last: 4, Count: 3, Ended: true}, r); d != "" {
					t.Error(d)
				}
				if got, _, err := ask(t, o); err != nil || len(got) != 3 {
					t.Errorf("second request: %v, %v", got, err)
				}
			})
		}
	}
}

func TestReplayOfNothing(t *testing.T) {
	p := zmqtest.Start(t)
	at := p.Do("open", zmqtest.Args{"replay": "tcp://127.0.0.1:*"})
	got, r, err := ask(t, zmq.ReplayOptions{Endpoint: endpoint(t, at.Replay)})
	if err != nil || len(got) != 0 || !r.Ended {
		t.Errorf("got %v, %+v, %v", got, r, err)
	}
}

// TestCase32_ClippedReplay: a start older than the buffer brings the oldest there is, and the result says so.
func TestCase32_ClippedReplay(t *testing.T) {
	p := zmqtest.Start(t)
	at := p.Do("open", zmqtest.Args{"replay": "tcp://127.0.0.1:*", "ring": 3})
	p.Do("publish", zmqtest.Args{"n": 9})
	got, r, err := ask(t, zmq.ReplayOptions{Endpoint: endpoint(t, at.Replay), From: 3})
	if err != nil || !slices.Equal(got, []uint64{6, 7, 8}) || r.First != 6 || r.Last != 8 {
		t.Errorf("got %v, %+v, %v", got, r, err)
	}
}

func TestReplayFailures(t *testing.T) {
	p := zmqtest.Start(t)
	at := p.Do("open", zmqtest.Args{"replay": "tcp://127.0.0.1:*"})
	p.Do("publish", zmqtest.Args{"n": 5})
	o := zmq.ReplayOptions{Endpoint: endpoint(t, at.Replay), IdleTimeout: 300 * time.Millisecond}

	p.Do("set", zmqtest.Args{"no_end": true})
	if got, r, err := ask(t, o); !errors.Is(err, zmq.ErrSilent) || len(got) != 5 || r.Ended {
		t.Errorf("no end: %v, %+v, %v", got, r, err)
	}
	p.Do("set", zmqtest.Args{"no_end": false, "mute": true})
	if got, _, err := ask(t, o); !errors.Is(err, zmq.ErrSilent) || len(got) != 0 {
		t.Errorf("mute: %v, %v", got, err)
	}
	p.Do("set", zmqtest.Args{"mute": false})
	limited := o
	limited.MaxBatches = 4
	if got, _, err := ask(t, limited); !errors.Is(err, zmq.ErrTooManyBatches) || len(got) != 4 {
		t.Errorf("limit: %v, %v", got, err)
	}
	stop := errors.New("stop")
	if _, err := zmq.Replay(t.Context(), o, func(events.Message) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v, want the callee's error", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := zmq.Replay(ctx, o, func(events.Message) error { cancel(); return nil })
	if err != nil && !errors.Is(err, context.Canceled) { // all five may have come before the cancel
		t.Errorf("got %v", err)
	}
	p.Do("close", nil)
	for err = nil; !errors.Is(err, zmq.ErrConnect); { // libzmq closes its ports a little later
		if _, _, err = ask(t, o); err == nil {
			t.Fatal("a closed publisher answered")
		}
	}
}

// TestReplayRejects counts replies that are none.
func TestReplayRejects(t *testing.T) {
	replies := []byte{
		0, 1, 'x', // one frame
		1, 0, 1, 4, 0, 0, 0, 9, 0, 1, 'p', // sequence of 4 bytes
		1, 0, 1, 8, 0, 0, 0, 0, 0, 0, 0, 7, 0, 1, 'p', // batch 7 in the old layout
		1, 0, 1, 8, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, // end
	}
	e := stage(t, zmqtest.Attack{Name: t.Name(), Bytes: append(zmqtest.Hello("ROUTER"), replies...)})
	got, r, err := ask(t, zmq.ReplayOptions{Endpoint: e})
	if err != nil || !slices.Equal(got, []uint64{7}) {
		t.Errorf("got %v, %v", got, err)
	}
	want := zmq.Result{First: 7, Last: 7, Count: 1, Ended: true}
	want.Rejected[events.ReasonBadReply] = 1
	want.Rejected[events.ReasonBadSequence] = 1
	if d := cmp.Diff(want, r); d != "" {
		t.Error(d)
	}
}

// TestRecordedReplay reads the conversations recorded from SGLang 0.5.23 (the numbers are those of its recorded notes:
// the last batch is 23, the buffer holds 16).
func TestRecordedReplay(t *testing.T) {
	f, err := os.ReadFile("testdata/sglang-0.5.23-replay.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	type record struct {
		Kind, Client string
		Frames       [][]byte
	}
	type talk struct {
		asked, ended bool
		got          []uint64
	}
	var talks []talk
	for line := range bytes.Lines(f) {
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if r.Client != "DEALER" {
			continue
		}
		if r.Kind == "replay_request" {
			ours := len(r.Frames) == 2 && len(r.Frames[1]) == 8
			if ours {
				from := events.Message{}
				from, err = events.ParseFrames([][]byte{nil, r.Frames[1], nil})
				ours = err == nil && cmp.Equal(events.ReplayRequest(from.Seq)[1], r.Frames[1]) && len(r.Frames[0]) == 0
			}
			talks = append(talks, talk{asked: ours})
			continue
		}
		m, end, err := events.ParseReply(r.Frames)
		if err != nil {
			t.Fatal(err)
		}
		last := &talks[len(talks)-1]
		if last.ended = end; !end {
			last.got = append(last.got, m.Seq)
		}
	}
	want := []talk{
		{true, true, span(20, 23)}, {true, true, span(8, 23)}, {true, true, nil},
		{false, false, nil}, {false, true, span(8, 23)}, {true, true, span(23, 32)},
	}
	if d := cmp.Diff(want, talks, cmp.AllowUnexported(talk{})); d != "" {
		t.Error(d)
	}
}

func span(from, to uint64) (out []uint64) {
	for ; from <= to; from++ {
		out = append(out, from)
	}
	return out
}
