package events

import "cmp"

// Limits bounds what one payload may hold. A zero field takes its value of DefaultLimits. A list announced as longer
// than the bytes that follow it is refused whatever the limits are, so memory never follows a header alone.
//
// There is no limit on nesting: values that are skipped cost no stack, and values that are read nest a fixed depth.
type Limits struct {
	// PayloadBytes is the size of a whole payload. A larger one is refused with ErrTooLarge.
	PayloadBytes int
	// Events is the number of events of a payload, rejected ones included. More are refused with ErrTooLarge.
	Events int
	// Hashes, Tokens and Extras count over all events of a payload: block ids, token ids, and items of extra keys.
	// The event that would exceed one is rejected with ReasonTooLarge, the others apply.
	Hashes, Tokens, Extras int
	// StringBytes is the length of one name, salt or item of extra keys. A longer one rejects its event with
	// ReasonTooLarge.
	StringBytes int
}

// DefaultLimits has room for a million blocks and eight million tokens in one engine step, and keeps what the worst
// payload makes a Decoder allocate near 150 MB.
func DefaultLimits() Limits {
	return Limits{
		PayloadBytes: 64 << 20,
		Events:       1 << 18, // SGLang 0.5.9 sends one event per token at page size 1
		Hashes:       1 << 20,
		Tokens:       1 << 23,
		Extras:       1 << 18,
		StringBytes:  16 << 10,
	}
}

func (l Limits) withDefaults() Limits {
	def := DefaultLimits()
	return Limits{
		PayloadBytes: cmp.Or(l.PayloadBytes, def.PayloadBytes),
		Events:       cmp.Or(l.Events, def.Events),
		Hashes:       cmp.Or(l.Hashes, def.Hashes),
		Tokens:       cmp.Or(l.Tokens, def.Tokens),
		Extras:       cmp.Or(l.Extras, def.Extras),
		StringBytes:  cmp.Or(l.StringBytes, def.StringBytes),
	}
}
