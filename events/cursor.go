package events

import (
	"time"

	"github.com/cespare/xxhash/v2"
)

// Cursor says how far a stream was applied, so that another process may go on behind it. It names the last batch by
// number and content: who publishes that batch again under that number is the publisher that published it before.
type Cursor struct {
	// Seq is the number of the last batch applied, Sum the xxhash64 of its payload.
	Seq, Sum uint64
	// Epoch is the id of the publisher's life, empty if it sends none.
	Epoch string
	// Lossy: batches of that life were lost before the cursor.
	Lossy bool
	// At is when the batch arrived.
	At time.Time
}

// CursorAt is the cursor behind batch seq with this payload. The rest is left empty.
func CursorAt(seq uint64, payload []byte, at time.Time) Cursor {
	return Cursor{Seq: seq, Sum: xxhash.Sum64(payload), At: at}
}

// Resume makes c the last message accepted, the only one that is recognised.
func (t *Tracker) Resume(c Cursor) {
	t.Forget()
	t.accept(c.Seq, c.Sum)
}
