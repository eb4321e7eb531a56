package events

import (
	"runtime"
	"strconv"
	"testing"
)

// seen is a message and what it should mean; accept is whether the consumer then takes it.
type seen struct {
	seq      uint64
	payload  string
	want     Step
	from, to uint64
	accept   bool
}

func TestRule8_Tracker(t *testing.T) {
	next := func(seq uint64) seen {
		return seen{seq: seq, payload: "p" + strconv.FormatUint(seq, 10), want: StepNext, accept: true}
	}
	first := func(seq uint64) seen { s := next(seq); s.want = StepFirst; return s }
	for _, c := range []struct {
		name string
		msgs []seen
	}{
		{"in order", []seen{first(0), next(1), next(2)}},
		{"Quirk30 counts from 1", []seen{first(1), next(2)}},
		{"joined late", []seen{first(281), next(282)}},
		{"Quirk35 repeated", []seen{first(0), next(1), {1, "p1", StepDuplicate, 0, 0, false}, {0, "p0", StepDuplicate, 0, 0, false}, next(2)}},
		{"gap", []seen{first(0), {4, "p4", StepGap, 1, 3, false}, next(1), next(2), next(3), next(4), next(5)}},
		{"gap of one", []seen{first(0), {2, "p2", StepGap, 1, 1, true}, next(3)}},
		{"Quirk36 reset to 0", []seen{first(0), next(1), next(2), {0, "new", StepReset, 0, 0, false}}},
		{"reset to the same number", []seen{first(0), {0, "new", StepReset, 0, 0, false}}},
		{"reset in the middle", []seen{first(7), next(8), {8, "new", StepReset, 0, 0, false}}},
		{"number never seen", []seen{first(7), {3, "p3", StepReset, 0, 0, false}}},
		{"falls from the highest number to 0", []seen{first(EndSequence), {0, "p0", StepReset, 0, 0, false}}},
		{"up to the highest number", []seen{first(EndSequence - 1), next(EndSequence)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tr Tracker
			for i, m := range c.msgs {
				step, from, to := tr.Observe(m.seq, []byte(m.payload))
				if step != m.want || from != m.from || to != m.to {
					t.Fatalf("message %d (%d): step %d %d..%d, want %d %d..%d", i, m.seq, step, from, to, m.want, m.from, m.to)
				}
				if m.accept {
					tr.Accept(m.seq, []byte(m.payload))
				}
			}
		})
	}
}

func TestTrackerForgets(t *testing.T) {
	var tr Tracker
	if _, ok := tr.Last(); ok {
		t.Error("a new tracker has a last number")
	}
	tr.Accept(5, []byte("p"))
	if last, ok := tr.Last(); last != 5 || !ok {
		t.Errorf("last %d %v, want 5", last, ok)
	}
	if !tr.Recognises(5, []byte("p")) || tr.Recognises(5, []byte("q")) || tr.Recognises(5+trackerMemory, []byte("p")) {
		t.Error("Recognises takes something else for message 5")
	}
	tr.Forget()
	if _, ok := tr.Last(); ok || tr.Recognises(5, []byte("p")) {
		t.Error("Forget kept something")
	}
	if step, _, _ := tr.Observe(5, []byte("p")); step != StepFirst {
		t.Errorf("step %d after Forget, want StepFirst", step)
	}
}

// A repeat is known as far back as the tracker remembers.
func TestTrackerMemory(t *testing.T) {
	var tr Tracker
	payload := func(seq uint64) []byte { return strconv.AppendUint(nil, seq, 10) }
	const n = 3 * trackerMemory
	for seq := range uint64(n) {
		tr.Accept(seq, payload(seq))
	}
	for seq := uint64(n - trackerMemory); seq < n; seq++ {
		if step, _, _ := tr.Observe(seq, payload(seq)); step != StepDuplicate {
			t.Fatalf("message %d is step %d, want StepDuplicate", seq, step)
		}
	}
	if step, _, _ := tr.Observe(0, payload(0)); step != StepReset {
		t.Errorf("message 0 is step %d, want StepReset", step)
	}
}

// A source that says nothing costs no memory for what it said: a fleet may have thousands.
func TestFeed_IdleIsSmall(t *testing.T) {
	list := make([]*Feed, 1000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range list {
		list[i] = NewFeed(nil)
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / uint64(len(list)); n > 512 {
		t.Errorf("an idle feed takes %d bytes", n)
	}
	runtime.KeepAlive(list)
}
