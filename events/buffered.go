package events

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
)

// ErrNoEventID is a buffered event without a number that could be read.
var ErrNoEventID = errors.New("event without an id")

// BufferedID is what tells a buffered event of TensorRT-LLM from others: the number that its rank's event manager gave
// it, from 0 on in steps of 1 (kvCacheEventManager.cpp: each attention-DP rank counts for itself).
type BufferedID struct {
	ID uint64
	// Rank is the attention-DP rank; HasRank is false when the event names none.
	Rank    int
	HasRank bool
}

// ParseBufferedID reads the number of one buffered event, a JSON object. empty is true for {}, which TensorRT-LLM sends
// for an event that came to nothing. It errs with ErrPayload or ErrNoEventID.
func ParseBufferedID(event []byte) (id BufferedID, empty bool, err error) {
	r := jsonReader{buf: event}
	if err := r.open('{'); err != nil {
		return id, false, fmt.Errorf("%w: no JSON object", ErrPayload)
	}
	found := false
	for first := true; ; first = false {
		more, err := r.more('}', first)
		if err != nil {
			return id, false, err
		}
		if !more {
			if first {
				return id, true, nil
			}
			break
		}
		if err := r.identity(&id, &found); err != nil {
			return id, false, err
		}
	}
	if !found {
		return id, false, ErrNoEventID
	}
	return id, false, nil
}

// identity reads one member of a buffered event, if it is part of its identity.
func (r *jsonReader) identity(id *BufferedID, found *bool) error {
	key, err := r.key()
	if err != nil {
		return err
	}
	switch string(key) {
	case "event_id":
		v, negative, err := r.integer()
		if err != nil || negative || v == EndSequence {
			return ErrNoEventID
		}
		id.ID, *found = v, true
	case "attention_dp_rank":
		if r.null() {
			return nil
		}
		rank, err := r.intIn(math.MaxInt32)
		if err != nil {
			return ErrNoEventID
		}
		id.Rank, id.HasRank = rank, true
	default:
		return r.skip()
	}
	return nil
}

// Buffered says whether a payload is JSON, as TensorRT-LLM's buffered events are: no batch in msgpack begins so.
func Buffered(payload []byte) bool {
	return len(payload) > 0 && (payload[0] == '{' || payload[0] == '[')
}

// checkPolled reports what is wrong with a polled source, joined, each fault wrapping ErrSource.
func (s Source) checkPolled() error {
	var faults []error
	bad := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("%w: "+format, append([]any{ErrSource}, args...)...))
	}
	if s.Engine != EngineTRTLLM {
		bad("events of engine %q are not polled by HTTP", s.Engine)
	}
	if s.Replay != "" || s.Topic != "" {
		bad("events that are polled have neither replay nor topic")
	}
	u, err := url.Parse(s.Events)
	switch {
	case err != nil:
		bad("events is no URL") // which the parser's error would repeat, credentials and all
	case u.User != nil || u.RawQuery != "":
		bad("events holds credentials, or a query that may be one")
	case u.Host == "" || u.Fragment != "":
		bad("events %q is not http://host:port/path", s.Events)
	}
	return errors.Join(faults...)
}

// Polled says whether the source's events are polled by HTTP and not subscribed to.
func (s Source) Polled() bool {
	return strings.HasPrefix(s.Events, "http://") || strings.HasPrefix(s.Events, "https://")
}
