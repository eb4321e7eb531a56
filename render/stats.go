package render

import (
	"errors"
	"sync/atomic"
)

// Stats counts what a Client did since it was made. Calls = OK + Canceled + the sum of Errors + the running ones.
type Stats struct {
	// Calls of Render begun.
	Calls uint64
	// OK is how many gave a Result.
	OK uint64
	// Canceled is how many ended because the caller did.
	Canceled uint64
	// Errors by Reason.
	Errors [ReasonCount]uint64
	// BytesSent is the size of the request bodies handed to the transport, BytesReceived what was read of answers.
	BytesSent, BytesReceived uint64
	// InFlight calls are on the wire now; Waiting ones have no slot yet.
	InFlight, Waiting int
}

type counters struct {
	calls, ok, canceled, sent, received atomic.Uint64
	errors                              [ReasonCount]atomic.Uint64
}

// ended counts the outcome of a call.
func (c *counters) ended(err error) {
	var failed *Error
	switch {
	case err == nil:
		c.ok.Add(1)
	case errors.As(err, &failed) && failed.Reason < ReasonCount:
		c.errors[failed.Reason].Add(1)
	default:
		c.canceled.Add(1)
	}
}

// Stats returns the counters. They are read one by one, so a running call may show in some and not in others.
func (c *Client) Stats() Stats {
	s := Stats{
		Calls:         c.counters.calls.Load(),
		OK:            c.counters.ok.Load(),
		Canceled:      c.counters.canceled.Load(),
		BytesSent:     c.counters.sent.Load(),
		BytesReceived: c.counters.received.Load(),
		InFlight:      len(c.gate.slots),
		Waiting:       len(c.gate.queue),
	}
	for r := range s.Errors {
		s.Errors[r] = c.counters.errors[r].Load()
	}
	return s
}
