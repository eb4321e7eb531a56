package events

import "github.com/cespare/xxhash/v2"

// Step is what a sequence number means after the ones before it.
type Step uint8

const (
	// StepNext continues the stream.
	StepNext Step = iota
	// StepFirst is the first number seen. Above 0 it means that the start was missed, or that the publisher is one of the few
	// that count from 1.
	StepFirst
	// StepDuplicate repeats a message already applied.
	StepDuplicate
	// StepGap skips numbers.
	StepGap
	// StepReset falls back: the engine process started again.
	StepReset
)

// trackerMemory is how many applied messages a Tracker can recognise. Repeats come from a replay that overlaps the
// live stream, which reaches back no further than the hole it fills.
const trackerMemory = 1024

// Tracker decides for one source which messages are new, in order and exactly once (rule 8). It holds no messages.
// It is not safe for concurrent use. The zero value has seen nothing, and has no memory yet: many sources stay idle.
type Tracker struct {
	last   uint64
	seen   bool
	recent []applied // nil before the first
}

type applied struct {
	seq, sum uint64
	valid    bool
}

// Observe says what message seq with this payload means, without accepting it. For StepGap the missing numbers are
// from..to inclusive. A number at or below the last one is a duplicate only if the payload is the one applied under
// it; otherwise the engine counts anew.
func (t *Tracker) Observe(seq uint64, payload []byte) (step Step, from, to uint64) {
	switch {
	case !t.seen:
		return StepFirst, 0, 0
	case seq == t.last+1 && seq != 0: // 0 after the highest number is a fall, not a step
		return StepNext, 0, 0
	case seq > t.last:
		return StepGap, t.last + 1, seq - 1
	case t.Recognises(seq, payload):
		return StepDuplicate, 0, 0
	default:
		return StepReset, 0, 0
	}
}

// Recognises says whether this payload was accepted as number seq.
func (t *Tracker) Recognises(seq uint64, payload []byte) bool {
	if t.recent == nil {
		return false
	}
	a := t.recent[seq%trackerMemory]
	return a.valid && a.seq == seq && a.sum == xxhash.Sum64(payload)
}

// Accept moves the cursor to seq.
func (t *Tracker) Accept(seq uint64, payload []byte) {
	t.accept(seq, xxhash.Sum64(payload))
}

func (t *Tracker) accept(seq, sum uint64) {
	if t.recent == nil {
		t.recent = make([]applied, trackerMemory)
	}
	t.last, t.seen = seq, true
	t.recent[seq%trackerMemory] = applied{seq: seq, sum: sum, valid: true}
}

// Forget starts anew, as before the first message.
func (t *Tracker) Forget() {
	t.last, t.seen = 0, false
	clear(t.recent)
}

// Last is the highest number accepted; false before the first.
func (t *Tracker) Last() (uint64, bool) { return t.last, t.seen }
