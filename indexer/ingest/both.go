package ingest

import (
	"time"

	"github.com/kvscout/kvscout/events"
)

// both passes everything to two sinks.
type both [2]events.Sink

func (b both) Apply(seq uint64, payload []byte, received time.Time) {
	b[0].Apply(seq, payload, received)
	b[1].Apply(seq, payload, received)
}

func (b both) Reset() {
	b[0].Reset()
	b[1].Reset()
}

func (b both) Joined(first uint64, complete bool) {
	b[0].Joined(first, complete)
	b[1].Joined(first, complete)
}

func (b both) Gap(from, to uint64) {
	b[0].Gap(from, to)
	b[1].Gap(from, to)
}

func (b both) State(s events.State, why error) {
	b[0].State(s, why)
	b[1].State(s, why)
}

func (b both) Reject(r events.Reason) {
	b[0].Reject(r)
	b[1].Reject(r)
}

func (b both) Replayed(n int) {
	b[0].Replayed(n)
	b[1].Replayed(n)
}
