package events

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func frames(parts ...string) [][]byte {
	out := make([][]byte, len(parts))
	for i, p := range parts {
		out[i] = []byte(p)
	}
	return out
}

const (
	seq0   = "\x00\x00\x00\x00\x00\x00\x00\x00"
	seq3   = "\x00\x00\x00\x00\x00\x00\x00\x03"
	seqEnd = "\xff\xff\xff\xff\xff\xff\xff\xff"
)

func TestParseFrames(t *testing.T) {
	for _, c := range []struct {
		name   string
		frames [][]byte
		want   Message
		err    error
	}{
		{"Case120 empty topic", frames("", seq0, "p"), Message{Topic: []byte{}, Payload: []byte("p")}, nil},
		{"Case120 payload alone", frames("p"), Message{}, ErrFrames},
		{"Case120 no sequence", frames("kv", "p"), Message{}, ErrFrames},
		{"Case120 short sequence", frames("kv", "\x00\x00\x00\x01", "p"), Message{}, ErrSequence},
		{"Case120 topic", frames("kv", "\x00\x00\x00\x00\x00\x00\x00\x01", "p"),
			Message{Topic: []byte("kv"), Seq: 1, Payload: []byte("p")}, nil},
		{"wire.md 8.4", frames("kv@10.0.0.1:8000@m", "\x00\x00\x00\x00\x00\x00\x00\x05", "p"),
			Message{Topic: []byte("kv@10.0.0.1:8000@m"), Seq: 5, Payload: []byte("p")}, nil},
		{"Quirk31 epoch behind the sequence", frames("kv", seq3+"0123456789abcdef", "p"),
			Message{Topic: []byte("kv"), Seq: 3, Epoch: []byte("0123456789abcdef"), Payload: []byte("p")}, nil},
		{"Quirk31 missing sequence", frames("kv", "", "p"), Message{}, ErrSequence},
		{"Quirk33 topic with NUL", frames("kv\x00sgl-kv-epoch=1", seq3, ""), Message{Topic: []byte("kv\x00sgl-kv-epoch=1"), Seq: 3}, nil},
		{"Quirk32 four frames", frames("", "kv", seq3, "p"), Message{}, ErrFrames},
		{"none", nil, Message{}, ErrFrames},
		{"wide sequence", frames("", "\xff\xff\xff\xff\xff\xff\xff\xfe", "p"), Message{Seq: 1<<64 - 2, Payload: []byte("p")}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseFrames(c.frames)
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(c.want, got, asEmpty); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestParseReply has the layouts of wire.md 1.11 and 8.4 (Quirk34).
func TestParseReply(t *testing.T) {
	for _, c := range []struct {
		name   string
		frames [][]byte
		want   Message
		end    bool
		err    error
	}{
		{"old", frames("", seq3, "p"), Message{Seq: 3, Payload: []byte("p")}, false, nil},
		{"new", frames("", "kv", seq3, "p"), Message{Topic: []byte("kv"), Seq: 3, Payload: []byte("p")}, false, nil},
		{"new, empty topic", frames("", "", seq3, "p"), Message{Seq: 3, Payload: []byte("p")}, false, nil},
		{"old end", frames("", seqEnd, ""), Message{Seq: EndSequence}, true, nil},
		{"new end", frames("", "", seqEnd, ""), Message{Seq: EndSequence}, true, nil},
		{"old as REQ sees it", frames(seq3, "p"), Message{Seq: 3, Payload: []byte("p")}, false, nil},
		{"epoch", frames("", "kv", seq3+"0123456789abcdef", "p"),
			Message{Topic: []byte("kv"), Seq: 3, Epoch: []byte("0123456789abcdef"), Payload: []byte("p")}, false, nil},
		{"empty batch is not the end", frames("", "", seq3, ""), Message{Seq: 3}, false, nil},
		{"all ones with a payload is not the end", frames("", "", seqEnd, "p"), Message{Seq: EndSequence, Payload: []byte("p")}, false, nil},
		{"nothing", nil, Message{}, false, ErrFrames},
		{"delimiter alone", frames(""), Message{}, false, ErrFrames},
		{"one", frames("", seq3), Message{}, false, ErrFrames},
		{"many", frames("", "a", "b", seq3, "p"), Message{}, false, ErrFrames},
		{"short sequence", frames("", "kv", "\x03", "p"), Message{}, false, ErrSequence},
		{"short end", frames("", "\xff\xff", ""), Message{}, false, ErrSequence},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, end, err := ParseReply(c.frames)
			if !errors.Is(err, c.err) || end != c.end {
				t.Fatalf("end %v, error %v, want %v, %v", end, err, c.end, c.err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(c.want, got, asEmpty); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReplayRequest(t *testing.T) {
	if diff := cmp.Diff(frames("", seq3), ReplayRequest(3), asEmpty); diff != "" {
		t.Errorf("wire.md 8.4 (-want +got):\n%s", diff)
	}
}

// FuzzFrames: no frames panic, and what is parsed is what was sent.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("kv"), []byte(seq0), []byte("p"), uint8(3))
	f.Add([]byte(""), []byte(seqEnd), []byte(""), uint8(3))
	f.Add([]byte(""), []byte(seq3+"0123456789abcdef"), []byte("p"), uint8(2))
	f.Fuzz(func(t *testing.T, topic, sequence, payload []byte, n uint8) {
		all := [][]byte{topic, sequence, payload, topic, payload}
		_, _ = ParseFrames(all[:int(n)%len(all)])
		_, _, _ = ParseReply(all[:int(n)%len(all)])

		m, err := ParseFrames(all[:3])
		if (err == nil) != (len(sequence) >= 8) {
			t.Fatalf("sequence of %d bytes: %v", len(sequence), err)
		}
		if err != nil {
			return
		}
		if m.Seq != binary.BigEndian.Uint64(sequence) || !bytes.Equal(m.Epoch, sequence[8:]) || !bytes.Equal(m.Payload, payload) {
			t.Errorf("%x became %+v", sequence, m)
		}
		r, end, err := ParseReply([][]byte{nil, topic, sequence, payload})
		if err != nil || cmp.Diff(m, r, asEmpty) != "" {
			t.Errorf("live %+v, replayed %+v, %v", m, r, err)
		}
		if end != (m.Seq == EndSequence && len(payload) == 0) {
			t.Errorf("end %v of %+v", end, m)
		}
	})
}
