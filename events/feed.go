package events

import "time"

// Feed drives a Sink from messages that arrive without a transport of their own: recordings and pushes. There is
// nobody to ask for a replay, so a hole is lost at once and told as StateGap until the engine starts again. It is not
// safe for concurrent use.
type Feed struct {
	sink    Sink
	tracker Tracker
	epoch   string
	lossy   bool   // batches of this life were lost
	begun   bool   // this life began before our eyes, and no batch of it was fed yet
	cursor  uint64 // number it was resumed behind
	proven  func() // nil once it was called, or never will be
}

// NewFeed returns a feed that has seen nothing.
func NewFeed(sink Sink) *Feed { return &Feed{sink: sink} }

// Resume makes the feed go on behind a cursor, as if the batches up to it had been fed. proven is called once if what
// comes shows that its publisher is the one of the cursor: by its epoch, or by the batch of the cursor itself. Whoever
// else goes on with the next number may be another one that has got as far.
func (f *Feed) Resume(c Cursor, proven func()) {
	f.tracker.Resume(c)
	f.epoch, f.lossy, f.cursor, f.proven = c.Epoch, c.Lossy, c.Seq, proven
}

// Epoch is the id of the publisher's life, "" if it sends none.
func (f *Feed) Epoch() string { return f.epoch }

// prove tells that the publisher is the one of the cursor.
func (f *Feed) prove() {
	if f.proven != nil {
		f.proven()
		f.proven = nil
	}
}

// Frames takes the frames of a live message; ones that are none are rejected.
func (f *Feed) Frames(frames [][]byte, received time.Time) (Step, error) {
	m, err := ParseFrames(frames)
	if err != nil {
		f.sink.Reject(FrameReason(err))
		return 0, err
	}
	return f.Message(m, received), nil
}

// Message takes the next message and returns what it meant.
func (f *Feed) Message(m Message, received time.Time) Step {
	step, from, to := f.tracker.Observe(m.Seq, m.Payload)
	if string(m.Epoch) != f.epoch {
		if _, seen := f.tracker.Last(); seen {
			step = StepReset
		}
		f.epoch = string(m.Epoch)
	}
	if step == StepDuplicate && m.Seq == f.cursor || step != StepReset && f.epoch != "" {
		f.prove()
	}
	switch step {
	case StepDuplicate:
		f.sink.Reject(ReasonDuplicate)
		return step
	case StepFirst:
		f.sink.Joined(m.Seq, m.Seq == 0)
	case StepGap:
		f.lossy = true
		f.sink.Gap(from, to)
		f.sink.Joined(m.Seq, false)
	case StepReset:
		f.forget()
		f.sink.Joined(m.Seq, m.Seq == 0)
	}
	f.begun = false
	f.tracker.Accept(m.Seq, m.Payload)
	if f.lossy {
		f.sink.State(StateGap, nil)
	} else {
		f.sink.State(StateLive, nil)
	}
	f.sink.Apply(m.Seq, m.Payload, received)
	return step
}

// Next is the sequence number expected next; 0 before the first message.
func (f *Feed) Next() uint64 {
	last, seen := f.tracker.Last()
	if !seen {
		return 0
	}
	return last + 1
}

// Behind says whether a client that has seen number last of the source (seen false: none) has seen less than was fed.
func (f *Feed) Behind(last uint64, seen bool) bool {
	have, any := f.tracker.Last()
	return any && (!seen || last < have)
}

// Missed says from outside that the source had sent everything up to number last. What was not fed of it is lost, though
// no later batch shows the hole yet. Before the first message nothing follows from it, unless the life began before our
// eyes.
func (f *Feed) Missed(last uint64) {
	next := f.Next()
	if _, seen := f.tracker.Last(); !seen && !f.begun || last < next {
		return
	}
	f.sink.Gap(next, last)
	f.sink.Joined(last+1, false)
	f.tracker.Accept(last, nil)
	f.begun = false
}

// Begin says from outside that the engine has just started and its cache is empty, before its first batch.
func (f *Feed) Begin() {
	f.begun = true
	f.sink.Joined(0, true)
}

// Restart says from outside that the engine started again and its cache is empty, before any batch shows it.
func (f *Feed) Restart() {
	f.forget()
	f.Begin()
}

// forget ends the life so far.
func (f *Feed) forget() {
	f.tracker.Forget()
	f.lossy, f.begun, f.proven = false, false, nil
	f.sink.Reset()
}
