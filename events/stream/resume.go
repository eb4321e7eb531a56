package stream

import (
	"errors"
	"time"

	"github.com/kvscout/kvscout/events"
)

// errSilent is why a resumed stream is stale though it is connected.
var errSilent = errors.New("nothing shows yet that the publisher is the one before")

// resumed is what a stream that goes on behind a cursor has yet to learn. All zero: nothing.
type resumed struct {
	cursor uint64 // number of the cursor's batch
	// proven is told when the publisher shows that it is the cursor's; nil once it did, or shows another.
	proven func()
	// waiting: the publisher has shown nothing at all, since since.
	waiting bool
	since   time.Time
}

// resume goes on behind a cursor.
func (l *loop) resume(c events.Cursor, proven func()) {
	l.track.Resume(c)
	l.setEpoch([]byte(c.Epoch))
	l.lossy = c.Lossy
	l.resumed = resumed{cursor: c.Seq, proven: proven, waiting: true, since: time.Now()}
}

// prove notes that the publisher is the cursor's.
func (l *loop) prove() {
	l.waiting = false
	if l.proven != nil {
		l.proven()
		l.proven = nil
	}
}

// waitsUntil is when a publisher that shows nothing is given up; zero if it has shown something.
func (l *loop) waitsUntil() time.Time {
	if !l.waiting {
		return time.Time{}
	}
	return l.since.Add(l.o.StaleAfter)
}
