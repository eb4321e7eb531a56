package events

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
)

// bufferedHead is what a buffered event says outside its data.
type bufferedHead struct {
	id        BufferedID
	window    int
	group     int
	hasGroup  bool
	data      int // where its data begins
	kind      string
	restarted bool // it is the first event of an engine process
}

// decodeBuffered reads one buffered event of TensorRT-LLM, a JSON object, or a list of events of one rank
// (tensorrt_llm/_utils.py KVCacheEventSerializer; runtime/kv_cache_manager_v2/_event_manager.py).
func (d *Decoder) decodeBuffered(payload []byte, b *Batch) error {
	r := &d.buffered.json
	*r = jsonReader{buf: payload}
	defer func() { r.buf = nil }()
	if r.peek() == '{' {
		if err := d.bufferedElement(b, true); err != nil {
			return err
		}
	} else {
		r.pos++
		for first := true; ; first = false {
			more, err := r.more(']', first)
			if err != nil {
				return err
			}
			if !more {
				break
			}
			if err := d.bufferedElement(b, first); err != nil {
				return err
			}
		}
	}
	if r.peek() != 0 || r.pos < len(r.buf) {
		return fmt.Errorf("%w: %d bytes after the events", ErrPayload, len(r.buf)-r.pos)
	}
	return nil
}

// bufferedElement reads one event. What is wrong with it becomes a reject.
func (d *Decoder) bufferedElement(b *Batch, first bool) error {
	r := &d.buffered.json
	r.peek()
	start, list := r.pos, len(b.Events)
	hashes, tokens, extras, rows := len(d.hashes), len(d.tokens), len(d.extras), len(d.rows)
	err := d.bufferedEvent(b, first)
	if err == nil {
		return nil
	}
	f, ok := err.(fault)
	if !ok {
		return err
	}
	b.Events = b.Events[:list]
	d.hashes, d.tokens, d.extras, d.rows = d.hashes[:hashes], d.tokens[:tokens], d.extras[:extras], d.rows[:rows]
	r.pos = start
	if err := r.skip(); err != nil {
		return err
	}
	b.Rejects = append(b.Rejects, Reason(f))
	return nil
}

func (d *Decoder) bufferedEvent(b *Batch, first bool) error {
	r := &d.buffered.json
	if len(b.Events) >= d.limits.Events {
		return fmt.Errorf("%w: over %d events", ErrTooLarge, d.limits.Events)
	}
	h, err := d.bufferedHead()
	if err != nil || h.data == 0 {
		return err
	}
	end := r.pos
	if first {
		b.Rank, b.HasRank = h.id.Rank, h.id.HasRank
	} else if b.Rank != h.id.Rank || b.HasRank != h.id.HasRank {
		return fault(ReasonRankUnknown)
	}
	rank := d.rankOf(h.id.Rank)
	if rank == nil {
		return fault(ReasonRankUnknown)
	}
	if h.restarted {
		d.restart(rank)
	}
	rank.window, rank.last = max(rank.window, h.window), h.id.ID
	r.pos = h.data
	switch h.kind {
	case "stored":
		err = d.bufferedStore(b, rank, &h)
	case "removed":
		err = d.bufferedRemoval(b, rank, &h)
	case "updated":
		err = d.bufferedUpdate(b, rank, &h)
	case "created": // tells the windows that there are
	default:
		return fault(ReasonUnknownEvent)
	}
	if err == nil {
		r.pos = end
	}
	return err
}

// bufferedHead reads everything but the data, whose place and type it finds. Data of 0 means the empty object, which
// stands for no event.
func (d *Decoder) bufferedHead() (h bufferedHead, err error) {
	r := &d.buffered.json
	if err := r.open('{'); err != nil {
		return h, err
	}
	found := false
	for first := true; ; first = false {
		more, err := r.more('}', first)
		if err != nil {
			return h, err
		}
		if !more {
			if !first && (!found || h.data == 0 || h.kind == "") {
				return h, fault(ReasonBadEvent)
			}
			break
		}
		if err := d.headMember(&h, &found); err != nil {
			return h, err
		}
	}
	h.restarted = h.kind == "created" && h.id.ID == 0
	if !h.hasGroup && h.window > 0 {
		h.group, h.hasGroup = h.window, true
	}
	return h, nil
}

func (d *Decoder) headMember(h *bufferedHead, found *bool) (err error) {
	r := &d.buffered.json
	start := r.pos
	key, err := r.key()
	if err != nil {
		return err
	}
	switch string(key) {
	case "window_size":
		if !r.null() {
			h.window, err = r.intIn(math.MaxInt32)
		}
	case "layer_group_id":
		if !r.null() {
			h.hasGroup = true
			h.group, err = r.intIn(maxGroup)
		}
	case "data":
		if h.data > 0 || r.peek() != '{' {
			return fault(ReasonBadEvent)
		}
		h.data = r.pos
		h.kind, err = d.dataType()
	default:
		r.pos = start
		if err = r.identity(&h.id, found); err == ErrNoEventID {
			err = fault(ReasonBadEvent)
		}
	}
	return err
}

// dataType finds the type of an event's data and passes it.
func (d *Decoder) dataType() (kind string, err error) {
	err = d.members(func(key []byte) error {
		r := &d.buffered.json
		if string(key) != "type" || r.peek() != '"' {
			return r.skip()
		}
		raw, err := r.rawString()
		if err == nil && len(raw) <= longestName {
			kind, err = d.text(raw)
		}
		return err
	})
	return kind, err
}

// members reads an object, giving do the name of each member; do reads its value.
func (d *Decoder) members(do func(key []byte) error) error {
	r := &d.buffered.json
	if err := r.open('{'); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := r.more('}', first)
		if err != nil || !more {
			return err
		}
		key, err := r.key()
		if err != nil {
			return err
		}
		if err := do(key); err != nil {
			return err
		}
	}
}

// elements reads an array; do reads each element.
func (d *Decoder) elements(do func() error) error {
	r := &d.buffered.json
	if err := r.open('['); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := r.more(']', first)
		if err != nil || !more {
			return err
		}
		if err := do(); err != nil {
			return err
		}
	}
}

// bufferedHash reads a block's hash: an integer, or the hexadecimal digits of a digest (hash_algo v2_sha256).
func (d *Decoder) bufferedHash() (Hash, error) {
	r := &d.buffered.json
	if r.peek() != '"' {
		v, _, err := r.integer()
		return HashInt(v), err
	}
	text, err := r.text(d.limits.StringBytes)
	if err != nil {
		return Hash{}, err
	}
	if len(text) == 0 {
		return Hash{}, fault(ReasonBadEvent)
	}
	digest := make([]byte, hex.DecodedLen(len(text)))
	if _, err := hex.Decode(digest, text); err != nil {
		return HashBytes(text), nil
	}
	return HashBytes(digest), nil
}

// event is an Event of the group that h names.
func (h *bufferedHead) event(kind Kind, rank *bufferedRank, tier Tier) Event {
	e := Event{Kind: kind, Tier: tier, Group: h.group, HasGroup: h.hasGroup}
	if kind == Stored && h.window > 0 {
		e.Spec = SpecFull
		if h.window < rank.window {
			e.Spec, e.Window = SpecSlidingWindow, h.window
		}
	}
	return e
}

// bufferedRemoval reads the hashes of blocks that left every tier of a group.
func (d *Decoder) bufferedRemoval(b *Batch, rank *bufferedRank, h *bufferedHead) error {
	gone := &d.buffered.gone
	for t := range gone {
		gone[t] = reuse(gone[t], keepHashes)
	}
	seen, n := false, 0
	err := d.members(func(key []byte) error {
		if string(key) != "block_hashes" {
			return d.buffered.json.skip()
		}
		seen = true
		return d.elements(func() error {
			hash, err := d.bufferedHash()
			if err != nil {
				return err
			}
			if n++; len(d.hashes)+n > d.limits.Hashes {
				return fault(ReasonTooLarge)
			}
			d.take(rank, residence{h.group, hash})
			return nil
		})
	})
	if err == nil && !seen {
		err = fault(ReasonBadEvent)
	}
	for t := range gone {
		if err != nil || len(gone[t]) == 0 {
			continue
		}
		start := len(d.hashes)
		d.hashes = append(d.hashes, gone[t]...)
		e := h.event(Removed, rank, Tier(t))
		e.Hashes = d.hashes[start:len(d.hashes):len(d.hashes)]
		b.Events = append(b.Events, e)
	}
	return err
}

// bufferedUpdate reads a move of a block from one tier to another. A change of its priority alone means nothing here.
func (d *Decoder) bufferedUpdate(b *Batch, rank *bufferedRank, h *bufferedHead) error {
	var hash Hash
	from, to, named, moved := TierDevice, TierDevice, false, false
	err := d.members(func(key []byte) (err error) {
		r := &d.buffered.json
		switch string(key) {
		case "block_hash":
			named = true
			hash, err = d.bufferedHash()
			return err
		case "cache_level":
			if r.null() {
				return nil
			}
			moved = true
			from, to, err = d.levels()
			return err
		default:
			return r.skip()
		}
	})
	switch {
	case err != nil:
		return err
	case !named:
		return fault(ReasonBadEvent)
	case !moved || from == to:
		return nil
	case len(d.hashes) >= d.limits.Hashes:
		return fault(ReasonTooLarge)
	}
	d.put(rank, residence{h.group, hash}, to)
	d.hashes = append(d.hashes, hash)
	list := d.hashes[len(d.hashes)-1 : len(d.hashes) : len(d.hashes)]
	// The new copy first: the index finds a block by its hash as long as it holds one.
	store, removal := h.event(Stored, rank, to), h.event(Removed, rank, from)
	store.Hashes, removal.Hashes = list, slices.Clip(list)
	b.Events = append(b.Events, store, removal)
	return nil
}

// levels reads {old_value, new_value} of a cache level.
func (d *Decoder) levels() (from, to Tier, err error) {
	seen := 0
	err = d.members(func(key []byte) error {
		r := &d.buffered.json
		tier := &from
		switch string(key) {
		case "old_value":
		case "new_value":
			tier = &to
		default:
			return r.skip()
		}
		seen++
		level, err := r.intIn(math.MaxInt32)
		*tier = tierOfLevel(level)
		return err
	})
	if err == nil && seen != 2 {
		err = fault(ReasonBadEvent)
	}
	return from, to, err
}

// tierOfLevel names the tier of TensorRT-LLM's cache level: 0 is the device, 1 the host, 2 disk (V2 manager).
func tierOfLevel(level int) Tier {
	switch level {
	case 0:
		return TierDevice
	case 1:
		return TierHost
	case 2:
		return TierDisk
	default:
		return TierUnknown
	}
}
