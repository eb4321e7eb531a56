package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/recording"
)

// tape writes what several streams deliver into one recording.
type tape struct {
	stop context.CancelFunc // ends the recording after a failure

	mu      sync.Mutex // guards the fields below
	w       *recording.Writer
	err     error // the first failure
	counts  recording.Counts
	payload int64 // bytes
	heads   []*tapeHead
}

func newTape(w *recording.Writer, stop context.CancelFunc) *tape { return &tape{w: w, stop: stop} }

// write adds a record, unless something failed before.
func (t *tape) write(r *recording.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return
	}
	if err := t.w.Write(r); err != nil {
		t.failLocked(err)
		return
	}
	t.counts.Add(r.Kind)
	for _, f := range r.Frames {
		t.payload += int64(len(f))
	}
}

func (t *tape) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failLocked(err)
}

func (t *tape) failLocked(err error) {
	if t.err == nil {
		t.err = err
		t.stop()
	}
}

// flush brings what was written so far into the file.
func (t *tape) flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.w.Flush(); err != nil {
		t.failLocked(err)
	}
}

// close writes what was rejected, ends the file and returns the first failure.
func (t *tape) close() error {
	for _, h := range t.heads {
		for r, n := range h.rejects {
			if n > 1 { // the first was written when it happened
				h.note("rejected: %s, %d times in all", events.Reason(r), n)
			}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.w.Close(); err != nil && t.err == nil {
		t.err = err
	}
	return t.err
}

func (t *tape) summary() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	rejects := 0
	for _, h := range t.heads {
		for _, n := range h.rejects {
			rejects += n
		}
	}
	return fmt.Sprintf("%d batches (%d bytes), %d notes, %d rejected", t.counts.Messages, t.payload, t.counts.Notes, rejects)
}

// head describes src on the tape and returns the sink for its stream. Streams must have ended before close.
func (t *tape) head(src events.Source) (events.Sink, error) {
	t.write(&recording.Record{Kind: recording.KindSource, Time: time.Now().UnixNano(), Source: src.ID(), Info: &src})
	t.mu.Lock()
	defer t.mu.Unlock()
	h := &tapeHead{tape: t, source: src.ID(), topic: []byte(src.Topic), polled: src.Polled()}
	t.heads = append(t.heads, h)
	return h, t.err
}

// tapeHead is the events.Sink of one source. A stream tells the topic's prefix, not the topic, so the prefix is what is
// written.
type tapeHead struct {
	tape   *tape
	source string
	topic  []byte
	// polled events carry no time, so a new life may repeat them byte by byte: its number tells them apart.
	polled bool
	life   []byte
	resets int
	// rejects counts by events.Reason; guarded by tape.mu.
	rejects [events.ReasonCount]int
}

func (h *tapeHead) Apply(seq uint64, payload []byte, received time.Time) {
	h.tape.write(&recording.Record{
		Kind: recording.KindMessage, Time: received.UnixNano(), Source: h.source,
		Frames: [][]byte{h.topic, append(binary.BigEndian.AppendUint64(nil, seq), h.life...), payload},
	})
}

func (h *tapeHead) note(format string, args ...any) {
	h.tape.write(&recording.Record{
		Kind: recording.KindNote, Time: time.Now().UnixNano(), Source: h.source,
		Text: strings.ToValidUTF8(fmt.Sprintf(format, args...), "?"), // errors may quote what a peer sent
	})
}

func (h *tapeHead) Reset() {
	h.resets++
	if h.polled {
		h.life = strconv.AppendInt(h.life[:0], int64(h.resets), 10)
	}
	h.note("the engine started again")
}

func (h *tapeHead) Joined(first uint64, complete bool) {
	h.note("joined at batch %d, history complete: %t", first, complete)
}

func (h *tapeHead) Gap(from, to uint64) { h.note("batches %d to %d are lost", from, to) }

func (h *tapeHead) State(s events.State, why error) {
	if why != nil {
		h.note("%s: %v", s, why)
		return
	}
	h.note("%s", s)
}

func (h *tapeHead) Reject(r events.Reason) {
	h.tape.mu.Lock()
	h.rejects[r]++
	first := h.rejects[r] == 1
	h.tape.mu.Unlock()
	if first {
		h.note("rejected: %s", r)
	}
}

func (h *tapeHead) Replayed(n int) { h.note("%d batches were fetched by replay", n) }
