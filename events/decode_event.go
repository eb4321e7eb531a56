package events

import (
	"bytes"
	"errors"
	"math"
)

// field is a field of an event on the wire. Its place in an array and its keys in a map are in the tables below.
type field uint8

const (
	fieldSkip field = iota
	fieldHashes
	fieldParent
	fieldTokens
	fieldBlockSize
	fieldLoraID
	fieldMedium
	fieldLoraName
	fieldSlot7
	fieldExtraKeys
	fieldGroup
	fieldKind
	fieldWindow
	fieldLocality
	fieldOwnership
	fieldSalt
	fieldMetadata
	fieldComponents
	fieldMMKeys
	fieldMMInfos
)

// keys are the fields of map events.
var keys = map[string]field{
	"block_hashes":                 fieldHashes,
	"parent_block_hash":            fieldParent,
	"token_ids":                    fieldTokens,
	"block_size":                   fieldBlockSize,
	"lora_id":                      fieldLoraID,
	"medium":                       fieldMedium,
	"lora_name":                    fieldLoraName,
	"extra_keys":                   fieldExtraKeys,
	"group_idx":                    fieldGroup,
	"kv_cache_spec_kind":           fieldKind,
	"kv_cache_spec_sliding_window": fieldWindow,
	"locality":                     fieldLocality,
	"ownership":                    fieldOwnership,
	"cache_salt":                   fieldSalt,
	"additional_salt":              fieldSalt, // kvcache-ai/Mooncake#1527
	"metadata":                     fieldMetadata,
	"component_type":               fieldComponents,
	"component_types":              fieldComponents,
	"mm_keys":                      fieldMMKeys,
	"block_mm_infos":               fieldMMInfos,
}

// shape is how events of one tag look.
type shape struct {
	kind Kind
	// least is the shortest array accepted, tag included.
	least int
	// slots are the fields of an array by position; slot 0 is the tag, and positions after the last are skipped.
	slots []field
	// wants has the bit of each field that means something in an event of this kind; the keys of others are skipped.
	wants uint32
}

func bits(fields ...field) (set uint32) {
	for _, f := range fields {
		set |= 1 << f
	}
	return set
}

var shapes = map[string]*shape{
	"BlockStored": {
		kind: Stored, least: 5, wants: ^bits(fieldSkip),
		slots: []field{fieldSkip, fieldHashes, fieldParent, fieldTokens, fieldBlockSize, fieldLoraID, fieldMedium,
			fieldSlot7, fieldExtraKeys, fieldGroup, fieldKind, fieldWindow},
	},
	"BlockRemoved": {
		kind: Removed, least: 2,
		// Kind and window stood here for a while before vllm-project/vllm#40984 was merged.
		slots: []field{fieldSkip, fieldHashes, fieldMedium, fieldGroup, fieldKind, fieldWindow},
		wants: bits(fieldHashes, fieldMedium, fieldGroup, fieldKind, fieldWindow, fieldLocality, fieldOwnership,
			fieldComponents),
	},
	"AllBlocksCleared": {kind: Cleared, least: 1},
	"TierBlocksCleared": {
		kind: TierCleared, least: 1, slots: []field{fieldSkip, fieldMedium},
		wants: bits(fieldMedium, fieldLocality, fieldOwnership),
	},
}

// maxGroup is the highest index of a KV-cache group taken for one.
const maxGroup = math.MaxUint16

// event reads one event into the zero Event e. A fault leaves the reader anywhere within it.
func (d *Decoder) event(e *Event) error {
	if d.r.next() == classBytes {
		return d.wrappedEvent(e)
	}
	return d.bareEvent(e)
}

// wrappedEvent reads an event that was packed twice: a byte string that holds a packed event (llm-d's storage backend).
func (d *Decoder) wrappedEvent(e *Event) error {
	inner, err := d.r.bytes()
	if err != nil {
		return err
	}
	outer, offset := d.r.buf, d.r.offset()
	d.r.reset(inner)
	err = d.bareEvent(e)
	used := d.r.left() == 0
	d.r.reset(outer)
	d.r.seek(offset)
	// What breaks off in there does not break the batch, which goes on behind the byte string.
	if errors.Is(err, ErrPayload) || err == nil && !used {
		return fault(ReasonBadEvent)
	}
	return err
}

func (d *Decoder) bareEvent(e *Event) error {
	d.ev.hasHashes, d.ev.remote, d.ev.owned = false, false, false
	var err error
	switch d.r.next() {
	case classArray:
		err = d.arrayEvent(e)
	case classMap:
		err = d.mapEvent(e)
	default:
		return fault(ReasonBadEvent)
	}
	if err != nil {
		return err
	}
	return d.finish(e)
}

// arrayEvent reads [tag, field, ...] of any length that the tag allows: engines grew it by appending.
func (d *Decoder) arrayEvent(e *Event) error {
	n, err := d.r.arrayLen()
	if err != nil {
		return err
	}
	if n == 0 {
		return fault(ReasonBadEvent)
	}
	s, err := d.tag()
	if err != nil {
		return err
	}
	if n < s.least {
		return fault(ReasonBadEvent)
	}
	e.Kind = s.kind
	for i := 1; i < n; i++ {
		f := fieldSkip
		if i < len(s.slots) {
			f = s.slots[i]
		}
		if s.kind == Removed && i >= 4 && !d.fits(f) {
			f = fieldSkip
		}
		if err := d.field(e, f); err != nil {
			return err
		}
	}
	return nil
}

// fits says whether the value that follows has the type of f, for the slots that one version of an engine used.
func (d *Decoder) fits(f field) bool {
	c := d.r.next()
	return f == fieldKind && c == classString || f == fieldWindow && c == classInt
}

// mapEvent reads {type, field, ...} with its keys in any order.
func (d *Decoder) mapEvent(e *Event) error {
	n, err := d.r.mapLen()
	if err != nil {
		return err
	}
	start := d.r.offset()
	s, err := d.findTag(n)
	if err != nil {
		return err
	}
	d.r.seek(start)
	e.Kind = s.kind
	for range n {
		key, err := d.r.key()
		if err != nil {
			return err
		}
		f := keys[string(key)]
		if s.wants&(1<<f) == 0 {
			f = fieldSkip
		}
		if err := d.field(e, f); err != nil {
			return err
		}
	}
	return nil
}

// findTag looks through a map of n keys for the tag, which nearly always comes first.
func (d *Decoder) findTag(n int) (*shape, error) {
	for range n {
		key, err := d.r.key()
		if err != nil {
			return nil, err
		}
		if string(key) == "type" {
			return d.tag()
		}
		if err := d.r.skip(); err != nil {
			return nil, err
		}
	}
	return nil, fault(ReasonBadEvent)
}

func (d *Decoder) tag() (*shape, error) {
	if d.r.next() != classString {
		return nil, fault(ReasonBadEvent)
	}
	b, err := d.r.bytes()
	if err != nil {
		return nil, err
	}
	s, ok := shapes[string(b)]
	if !ok {
		return nil, fault(ReasonUnknownEvent)
	}
	return s, nil
}

// field reads the value of f into e.
func (d *Decoder) field(e *Event, f field) (err error) {
	switch f {
	case fieldHashes:
		return d.readHashes(e)
	case fieldParent:
		return d.readParent(e)
	case fieldTokens:
		return d.readTokens(e)
	case fieldBlockSize:
		return d.number(func(v int64) { e.BlockSize = int(v) }, math.MinInt32, math.MaxInt32)
	case fieldLoraID:
		return d.number(func(v int64) { e.LoraID, e.HasLoraID = v, true }, math.MinInt64, math.MaxInt64)
	case fieldGroup:
		return d.number(func(v int64) { e.Group, e.HasGroup = int(v), true }, 0, maxGroup)
	case fieldWindow:
		return d.number(func(v int64) { e.Window = int(v) }, 0, math.MaxInt32)
	case fieldMedium:
		return d.name(func(b []byte) { e.Tier = ParseMedium(string(b)) })
	case fieldKind:
		return d.name(func(b []byte) { e.Spec = ParseSpecKind(string(b)) })
	case fieldLocality:
		return d.name(func(b []byte) { d.ev.remote = !bytes.EqualFold(b, []byte("LOCAL")) })
	case fieldOwnership:
		return d.name(func(b []byte) { d.ev.owned = len(b) > 0 })
	case fieldLoraName:
		return d.readLoraName(e)
	case fieldSalt:
		return d.readSalt(e)
	case fieldMetadata:
		return d.readMetadata(e)
	case fieldSlot7:
		return d.readSlot7(e)
	case fieldComponents:
		return d.readComponents(e)
	case fieldExtraKeys:
		return d.readRows(e, extraKeysRow)
	case fieldMMKeys:
		return d.readRows(e, mmKeysRow)
	case fieldMMInfos:
		return d.readRows(e, mmInfoRow)
	default:
		return d.r.skip()
	}
}

// number reads an integer from low to high, or nil, which sets nothing.
func (d *Decoder) number(set func(int64), low, high int64) error {
	if d.r.next() == classNil {
		return d.r.skip()
	}
	v, err := d.r.intIn(low, high)
	if err == nil {
		set(v)
	}
	return err
}

// name reads a string, or nil, which sets nothing.
func (d *Decoder) name(set func([]byte)) error {
	switch d.r.next() {
	case classNil:
		return d.r.skip()
	case classString:
	default:
		return fault(ReasonBadEvent)
	}
	b, err := d.r.bytes()
	switch {
	case err != nil:
		return err
	case len(b) > d.limits.StringBytes:
		return fault(ReasonTooLarge)
	}
	set(b)
	return nil
}

// finish checks what only the whole event can tell.
func (d *Decoder) finish(e *Event) error {
	if (e.Kind == Stored || e.Kind == Removed) && !d.ev.hasHashes {
		return fault(ReasonBadEvent)
	}
	if e.Extras != nil && len(e.Extras) != len(e.Hashes) { // whose block is it?
		return fault(ReasonBadNamespace)
	}
	// A copy that is not the worker's own is never credited as its device's: vllm-project/vllm#48281, #52067.
	if d.ev.remote || d.ev.owned && e.Tier == TierDevice {
		e.Remote, e.Tier = true, TierShared
	}
	return nil
}
