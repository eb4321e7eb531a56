package jetstream

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/kvscout/kvscout/events"
)

// lives names the lives of one source's engine as an ingester sees them: its epochs.
type lives struct {
	random func() uint64
	// drained: payloads carry no time, so the first message of two lives may be the same. Nobody else hears the source.
	drained bool

	epoch    uint64 // of the life at hand, 0 before its first message
	complete bool   // the next message is the first of its life
	base     uint64 // of the last epoch made of a message
	repeats  uint64 // how often base came again
}

// begin notes that a life begins with the next message: its first one, if complete.
func (l *lives) begin(complete bool) { l.epoch, l.complete = 0, complete }

// of is the epoch of a message.
func (l *lives) of(seq uint64, payload []byte) uint64 {
	if l.epoch != 0 {
		return l.epoch
	}
	if !l.complete || l.drained {
		l.epoch = l.random() | 1
		return l.epoch
	}
	var d xxhash.Digest
	d.Reset()
	_, _ = d.Write(binary.BigEndian.AppendUint64(nil, seq))
	_, _ = d.Write(payload)
	base := d.Sum64()
	if base == l.base {
		l.repeats++
	} else {
		l.base, l.repeats = base, 0
	}
	_, _ = d.Write(binary.BigEndian.AppendUint64(nil, l.repeats))
	l.epoch = d.Sum64() | 1 // never 0
	return l.epoch
}

// Position is how far a replica has got with one source.
type Position struct {
	// Epoch is the life of its engine, 0 before the first message.
	Epoch uint64 `json:"epoch,omitempty"`
	// Last is the sequence number of the last message applied and Sum the xxhash of its payload.
	Last uint64 `json:"last,omitempty"`
	Sum  uint64 `json:"sum,omitempty"`
	// Empty: the source was told to have begun, and to hold nothing so far.
	Empty bool `json:"empty,omitempty"`
}

// drainedSource says whether nobody but one ingester can hear the source.
func drainedSource(s events.Source) bool { return s.Polled() || s.Events == "" }
