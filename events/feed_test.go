package events

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// journal writes down what a sink was told.
type journal []string

func (j *journal) say(format string, args ...any) { *j = append(*j, fmt.Sprintf(format, args...)) }

func (j *journal) Apply(seq uint64, payload []byte, _ time.Time) { j.say("apply %d %s", seq, payload) }
func (j *journal) Reset()                                        { j.say("reset") }
func (j *journal) Joined(first uint64, complete bool)            { j.say("joined %d %v", first, complete) }
func (j *journal) Gap(from, to uint64)                           { j.say("gap %d-%d", from, to) }
func (j *journal) State(State, error)                            {}
func (j *journal) Reject(r Reason)                               { j.say("reject %v", r) }
func (j *journal) Replayed(int)                                  {}

type sent struct {
	seq     uint64
	payload string
	epoch   string
}

func TestFeed(t *testing.T) {
	tests := []struct {
		name string
		in   []sent
		want journal
	}{
		{"from the start", []sent{{seq: 0, payload: "a"}, {seq: 1, payload: "b"}},
			journal{"joined 0 true", "apply 0 a", "apply 1 b"}},
		{"Case49 joined late", []sent{{seq: 3, payload: "a"}}, journal{"joined 3 false", "apply 3 a"}},
		{"Rule08 duplicate", []sent{{seq: 0, payload: "a"}, {seq: 1, payload: "b"}, {seq: 0, payload: "a"}, {seq: 1, payload: "b"}, {seq: 2, payload: "c"}},
			journal{"joined 0 true", "apply 0 a", "apply 1 b", "reject duplicate", "reject duplicate", "apply 2 c"}},
		{"Rule11 Case09 gap", []sent{{seq: 0, payload: "a"}, {seq: 4, payload: "b"}},
			journal{"joined 0 true", "apply 0 a", "gap 1-3", "joined 4 false", "apply 4 b"}},
		{"Rule11 Case08 reset", []sent{{seq: 0, payload: "a"}, {seq: 1, payload: "b"}, {seq: 0, payload: "c"}},
			journal{"joined 0 true", "apply 0 a", "apply 1 b", "reset", "joined 0 true", "apply 0 c"}},
		{"Case98 two lives", []sent{{seq: 0, payload: "a"}, {seq: 1, payload: "b"}, {seq: 0, payload: "c"}, {seq: 1, payload: "d"}},
			journal{"joined 0 true", "apply 0 a", "apply 1 b", "reset", "joined 0 true", "apply 0 c", "apply 1 d"}},
		{"reset to the same number", []sent{{seq: 0, payload: "a"}, {seq: 0, payload: "b"}},
			journal{"joined 0 true", "apply 0 a", "reset", "joined 0 true", "apply 0 b"}},
		{"new publisher id", []sent{{seq: 0, payload: "a", epoch: "x"}, {seq: 1, payload: "b", epoch: "y"}},
			journal{"joined 0 true", "apply 0 a", "reset", "joined 1 false", "apply 1 b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got journal
			f := NewFeed(&got)
			for _, s := range tt.in {
				seq := append(binary.BigEndian.AppendUint64(nil, s.seq), s.epoch...)
				if _, err := f.Frames([][]byte{nil, seq, []byte(s.payload)}, time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// states is a journal of states only.
type states struct {
	journal
	told []State
}

func (s *states) State(now State, _ error) { s.told = append(s.told, now) }

// Rule 11: nothing is silent, so a stream that lost batches is not called live until the engine starts again.
func TestFeed_Rule11_StateAfterGap(t *testing.T) {
	var got states
	f := NewFeed(&got)
	for _, m := range []Message{{Seq: 0}, {Seq: 2}, {Seq: 3}, {Seq: 0, Payload: []byte("again")}, {Seq: 5}} {
		f.Message(m, time.Now())
	}
	f.Restart()
	f.Message(Message{Seq: 0}, time.Now())
	want := []State{StateLive, StateGap, StateGap, StateLive, StateGap, StateLive}
	if diff := cmp.Diff(want, got.told); diff != "" {
		t.Error(diff)
	}
}

// Case 120: what is no message is counted and makes no gap.
func TestFeed_Case120_BadFrames(t *testing.T) {
	seq := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	var got journal
	f := NewFeed(&got)
	for _, frames := range [][][]byte{
		{nil, seq(0), []byte("a")}, {[]byte("a")}, {[]byte("kv"), []byte("a")}, {[]byte("kv"), {0, 0, 0, 1}, []byte("a")}, {[]byte("kv"), seq(1), []byte("b")},
	} {
		_, _ = f.Frames(frames, time.Now()) // the sink hears of faults
	}
	want := journal{"joined 0 true", "apply 0 a", "reject bad_frames", "reject bad_frames", "reject bad_sequence", "apply 1 b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A client that has seen less than was fed has lost the engine in between.
func TestFeed_Restart(t *testing.T) {
	var got journal
	f := NewFeed(&got)
	if f.Behind(0, false) {
		t.Error("behind before the first message")
	}
	f.Message(Message{Seq: 0, Payload: []byte("a")}, time.Now())
	f.Message(Message{Seq: 1, Payload: []byte("b")}, time.Now())
	if f.Behind(1, true) || !f.Behind(0, true) || !f.Behind(0, false) {
		t.Error("behind is wrong")
	}
	f.Restart()
	f.Message(Message{Seq: 0, Payload: []byte("c")}, time.Now())
	want := journal{"joined 0 true", "apply 0 a", "apply 1 b", "reset", "joined 0 true", "joined 0 true", "apply 0 c"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if f.Next() != 1 {
		t.Errorf("next is %d, want 1", f.Next())
	}
}

// A hole that only somebody else's word shows is a gap at once, and no second one when the stream goes on.
func TestFeed_Missed(t *testing.T) {
	var got journal
	f := NewFeed(&got)
	f.Missed(7)
	for _, seq := range []uint64{0, 1} {
		f.Message(Message{Seq: seq, Payload: []byte{byte('a' + seq)}}, time.Now())
	}
	f.Missed(1)
	f.Missed(3)
	f.Message(Message{Seq: 4, Payload: []byte("e")}, time.Now())
	want := journal{"joined 0 true", "apply 0 a", "apply 1 b", "gap 2-3", "joined 4 false", "apply 4 e"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
