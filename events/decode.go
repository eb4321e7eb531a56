package events

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrPayload is a payload that is no event batch, or whose msgpack breaks off.
var ErrPayload = errors.New("payload is not an event batch")

// ErrTooLarge is a payload over a limit that leaves nothing to read.
var ErrTooLarge = errors.New("payload over its limit")

// fault is what is wrong with one event, whose extent is still known. It costs that event only (rule 10).
type fault Reason

func (f fault) Error() string { return "event rejected: " + Reason(f).String() }

// What a Decoder keeps from one payload for the next, in elements; larger buffers are given back to the collector, so
// that one large payload does not hold memory for ever.
const (
	keepEvents = 1 << 12
	keepHashes = 1 << 16
	keepTokens = 1 << 18
	keepExtras = 1 << 14
	keepNames  = 1 << 8
	// longestName is the longest string worth remembering, in bytes.
	longestName = 128
)

// leastEvent is the size in bytes of the smallest event that is accepted: an array of "BlockRemoved" and no hashes.
const leastEvent = 15

// Decoder reads the payloads of one source. It keeps its buffers from one payload to the next, so a steady stream
// allocates nothing. It is not safe for concurrent use.
//
// Headers, numbers and strings are read by streaming calls of vmihailenco/msgpack; the lists of hashes and tokens, which
// are nearly all of a payload, by loops of our own, ten times as fast. No call that builds values of the sender's choice
// (Unmarshal, DecodeInterface, Skip) is used: those trust lengths and recurse.
type Decoder struct {
	limits Limits
	r      reader
	// Everything that an event points to lies in these, one after another.
	hashes []Hash
	tokens []uint32
	extras []Extra
	rows   [][]Extra
	// buffered is for TensorRT-LLM's JSON, which a payload shows by its first byte.
	buffered buffered
	// names holds the strings seen lately, so that a name repeated in every event is made once.
	names map[string]string
	// ev is what is known of the event being read beyond its Event.
	ev struct {
		hasHashes bool
		remote    bool // a locality other than LOCAL
		owned     bool // an ownership
	}
}

// NewDecoder returns a Decoder that holds payloads to l.
func NewDecoder(l Limits) *Decoder {
	d := &Decoder{limits: l.withDefaults(), names: make(map[string]string)}
	d.r.init()
	return d
}

// NewSourceDecoder returns a Decoder for the payloads of src, whose block size is believed where the stream does not
// tell one.
func NewSourceDecoder(src Source, l Limits) *Decoder {
	d := NewDecoder(l)
	d.buffered.size = src.BlockSize
	return d
}

// Decode reads one payload into b, whose slices are valid until the next Decode. An event that is not understood is an
// entry of b.Rejects and costs that event only (rule 10). An error, which wraps ErrPayload or ErrTooLarge, means that
// no event of the payload could be read, or the rest could not; b then holds what was read before the fault.
func (d *Decoder) Decode(payload []byte, b *Batch) error {
	d.begin(b)
	if len(payload) > d.limits.PayloadBytes {
		return fmt.Errorf("%w: %d bytes, limit %d", ErrTooLarge, len(payload), d.limits.PayloadBytes)
	}
	if Buffered(payload) {
		return d.decodeBuffered(payload, b)
	}
	d.r.reset(payload)
	defer d.r.reset(nil)
	err := d.batch(b)
	if _, ok := err.(fault); ok { // of the batch itself: its list of events is no list, or its rank no number
		return fmt.Errorf("%w: value of a wrong type at byte %d", ErrPayload, d.r.offset())
	}
	if err == nil && d.r.left() > 0 {
		return fmt.Errorf("%w: %d bytes after the batch", ErrPayload, d.r.left())
	}
	return err
}

func (d *Decoder) begin(b *Batch) {
	clear(b.Events) // drops what the last payload pointed to
	*b = Batch{Events: reuse(b.Events, keepEvents), Rejects: reuse(b.Rejects, keepEvents)}
	d.hashes = reuse(d.hashes, keepHashes)
	d.tokens = reuse(d.tokens, keepTokens)
	d.extras = reuse(d.extras, keepExtras)
	d.rows = reuse(d.rows, keepHashes)
}

// reuse empties s, or gives it up when it has room for more than keep elements.
func reuse[T any](s []T, keep int) []T {
	if cap(s) > keep {
		return nil
	}
	return s[:0]
}

// batch reads [time, events, rank, ...] or {ts, events, data_parallel_rank, ...}.
func (d *Decoder) batch(b *Batch) error {
	switch d.r.next() {
	case classArray:
		return d.arrayBatch(b)
	case classMap:
		return d.mapBatch(b)
	default:
		return fmt.Errorf("%w: neither an array nor a map", ErrPayload)
	}
}

func (d *Decoder) arrayBatch(b *Batch) error {
	n, err := d.r.arrayLen()
	if err != nil {
		return err
	}
	if n < 2 {
		return fmt.Errorf("%w: array of %d, want time and events", ErrPayload, n)
	}
	for i := range n {
		switch i {
		case 0:
			err = d.time(b)
		case 1:
			err = d.events(b)
		case 2:
			err = d.rank(b)
		default:
			err = d.r.skip()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *Decoder) mapBatch(b *Batch) error {
	n, err := d.r.mapLen()
	if err != nil {
		return err
	}
	seen := false
	for range n {
		key, err := d.r.key()
		if err != nil {
			return err
		}
		switch string(key) {
		case "ts":
			err = d.time(b)
		case "events":
			if seen {
				return fmt.Errorf("%w: two lists of events", ErrPayload)
			}
			seen = true
			err = d.events(b)
		case "data_parallel_rank":
			err = d.rank(b)
		default:
			err = d.r.skip()
		}
		if err != nil {
			return err
		}
	}
	if !seen {
		return fmt.Errorf("%w: map without events", ErrPayload)
	}
	return nil
}

// millisecondsFrom tells Unix milliseconds (Mooncake) from Unix seconds: as seconds it is the year 5138.
const millisecondsFrom = 1e11

// time leaves b.Time 0 when there is no usable number.
func (d *Decoder) time(b *Batch) error {
	var t float64
	switch d.r.next() {
	case classInt:
		v, negative, _ := intAt(d.r.rest())
		if !negative {
			t = float64(v)
		}
		if err := d.r.skip(); err != nil {
			return err
		}
	case classFloat:
		v, err := d.r.float()
		if err != nil {
			return err
		}
		t = v
	default:
		return d.r.skip()
	}
	if t > millisecondsFrom {
		t /= 1000
	}
	if t > 0 && !math.IsInf(t, 0) { // false for NaN
		b.Time = t
	}
	return nil
}

func (d *Decoder) rank(b *Batch) error {
	if d.r.next() == classNil {
		return d.r.skip()
	}
	v, err := d.r.intIn(math.MinInt32, math.MaxInt32)
	if err != nil {
		return err
	}
	b.Rank, b.HasRank = int(v), true
	return nil
}

// events reads the list of events. What is wrong with one of them becomes a reject, and reading goes on behind it.
func (d *Decoder) events(b *Batch) error {
	n, err := d.r.arrayLen()
	if err != nil {
		return err
	}
	if n > d.limits.Events {
		return fmt.Errorf("%w: %d events, limit %d", ErrTooLarge, n, d.limits.Events)
	}
	b.Events = slices.Grow(b.Events, min(n, d.r.left()/leastEvent+1))
	for range n {
		start, hashes, tokens, extras, rows := d.r.offset(), len(d.hashes), len(d.tokens), len(d.extras), len(d.rows)
		b.Events = append(b.Events, Event{})
		last := len(b.Events) - 1
		err := d.event(&b.Events[last])
		if err == nil {
			continue
		}
		b.Events = b.Events[:last]
		d.hashes, d.tokens, d.extras, d.rows = d.hashes[:hashes], d.tokens[:tokens], d.extras[:extras], d.rows[:rows]
		f, ok := err.(fault)
		if !ok {
			return err
		}
		d.r.seek(start)
		if err := d.r.skip(); err != nil {
			return err
		}
		b.Rejects = append(b.Rejects, Reason(f))
	}
	return nil
}

// text makes a string of b, which lies in the payload.
func (d *Decoder) text(b []byte) (string, error) {
	if len(b) > d.limits.StringBytes {
		return "", fault(ReasonTooLarge)
	}
	if s, ok := d.names[string(b)]; ok {
		return s, nil
	}
	s := string(b)
	if len(s) <= longestName {
		if len(d.names) >= keepNames {
			clear(d.names)
		}
		d.names[s] = s
	}
	return s, nil
}
