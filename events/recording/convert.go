package recording

import (
	"errors"
	"io"
)

// Counts tells what a recording held, in records.
type Counts struct {
	Sources, Messages, Requests, Notes, ReplayRequests, ReplayReplies int
	// Unknown is the number of records of kinds that this version does not know; they were left out.
	Unknown int
	// Bad is the number of places that could not be read; what was there was left out.
	Bad int
	// Torn says that the end of the recording is missing.
	Torn bool
}

// Add counts one record of kind k.
func (c *Counts) Add(k Kind) {
	switch k {
	case KindSource:
		c.Sources++
	case KindMessage:
		c.Messages++
	case KindRequest:
		c.Requests++
	case KindNote:
		c.Notes++
	case KindReplayRequest:
		c.ReplayRequests++
	case KindReplayReply:
		c.ReplayReplies++
	default:
		c.Unknown++
	}
}

// Convert copies every record of src that can be read to dst, and flushes dst. When something was bad or torn, the
// rest was copied nevertheless, and the error is the first of each sort (ErrRecord, ErrTorn). Any other error ended the
// copy.
func Convert(dst *Writer, src *Reader) (Counts, error) {
	var counts Counts
	var bad, torn error
	for {
		rec, err := src.Next()
		switch {
		case err == nil:
			if err := dst.Write(rec); err != nil {
				return counts, err
			}
			counts.Add(rec.Kind)
			continue
		case errors.Is(err, ErrTorn):
			torn, counts.Torn = err, true
			continue
		case errors.Is(err, ErrRecord):
			counts.Bad++
			if bad == nil {
				bad = err
			}
			continue
		}
		counts.Unknown = src.Unknown()
		if err == io.EOF {
			err = nil
		}
		return counts, errors.Join(err, bad, torn, dst.Flush())
	}
}
