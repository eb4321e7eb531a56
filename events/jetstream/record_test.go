package jetstream

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events"
)

// The bytes are those that doc.go describes, written by hand.
func TestRecord(t *testing.T) {
	data := "\x01\x01\x07\x00" + "\x00\x00\x00\x00\x00\x00\x00\x05" + "\x00\x00\x00\x00\x00\x00\x00\x06" + "\x00\x00\x00\x00\x00\x00\x01\x00" +
		"\xff\xff\xff\xff\xff\xff\xff\xff" + "\x00\x00\x00\x00\x00\x00\x00\x09" + "payload"
	want := record{
		kind: kindMessage, ingester: 5, epoch: 6, seq: 256, hasSeq: true, complete: true, link: 1<<64 - 1, linked: true,
		time: time.Unix(0, 9), body: []byte("payload"),
	}
	got, err := parseRecord([]byte(data))
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(record{})); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if out := want.append(nil); string(out) != data {
		t.Errorf("written % x", out)
	}
}

func TestSubjects(t *testing.T) {
	// dzA6ODAwMC94 is "w0:8000/x" in base64url.
	if s := sourceSubject("kvscout", "w0:8000/x", 3); s != "kvscout.source.dzA6ODAwMC94.3" {
		t.Errorf("subject %s", s)
	}
	for subject, want := range map[string]place{
		"kvscout.source.dzA6ODAwMC94.3": {"w0:8000/x", 3}, "kvscout.worker.dzA6ODAwMC94": {"w0:8000/x", -1},
	} {
		if got, err := parseSubject("kvscout", subject); err != nil || got != want {
			t.Errorf("%s: %v, %v", subject, got, err)
		}
	}
	for _, subject := range []string{"", "kvscout", "other.worker.dzA", "kvscout.worker.", "kvscout.worker.!", "kvscout.source.dzA", "kvscout.source.dzA.-1", "kvscout.source.dzA.x", "kvscout.source.dzA.1.2"} {
		if _, err := parseSubject("kvscout", subject); !errors.Is(err, ErrRecord) {
			t.Errorf("%q: %v", subject, err)
		}
	}
}

// FuzzRecord: whatever is stored, reading it does not panic, and neither does merging it.
func FuzzRecord(f *testing.F) {
	f.Add([]byte("\x01\x01\x07\x000123456701234567012345670123456701234567payload"), []byte("{}"))
	state := record{kind: kindState, state: events.StateLive, complete: true, ingester: 1, body: []byte("why")}
	f.Add(state.append(nil), []byte(`{"id":"w","sources":[{"engine":"vllm"}]}`))
	f.Fuzz(func(t *testing.T, data, member []byte) {
		if _, err := parseMember("w", member); err != nil && !errors.Is(err, ErrRecord) {
			t.Errorf("error of no kind: %v", err)
		}
		r, err := parseRecord(data)
		if err != nil {
			if !errors.Is(err, ErrRecord) {
				t.Errorf("error of no kind: %v", err)
			}
			return
		}
		if got := r.append(nil); got[0] != 1 || len(got) != len(data) {
			t.Errorf("read from % x, written % x", data, got)
		}
		s := &source{sink: newTrace(), lease: time.Second}
		for i := range 3 {
			s.take(&r, time.Unix(int64(10*i), 0))
			r.seq += uint64(i)
			s.settle(events.StateUnknown, nil, time.Second, time.Unix(int64(20*i), 0))
		}
		if len(s.past) > pastEpochs || len(s.names) > maxNames {
			t.Errorf("%d past and %d present epochs", len(s.past), len(s.names))
		}
	})
}
