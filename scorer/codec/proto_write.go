package codec

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// writer appends messages as protobuf does: fields by number, those of zero left out.
type writer struct {
	buf []byte
	// odd: protobuf is to judge. What was appended is then not to be used.
	odd bool
}

func (w *writer) tag(num protowire.Number, typ protowire.Type) {
	if num < 16 {
		w.buf = append(w.buf, byte(num)<<3|byte(typ))
		return
	}
	w.buf = protowire.AppendTag(w.buf, num, typ)
}

// open begins a message and returns where; close ends it.
func (w *writer) open(num protowire.Number) int {
	w.tag(num, protowire.BytesType)
	w.buf = append(w.buf, 0) // most lengths take one byte
	return len(w.buf)
}

func (w *writer) close(at int) { w.buf = closed(w.buf, at) }

// closed is b with a message that began at at ended.
func closed(b []byte, at int) []byte {
	n := len(b) - at
	if n < 1<<7 {
		b[at-1] = byte(n)
		return b
	}
	var length [binary.MaxVarintLen64]byte
	size := binary.PutUvarint(length[:], uint64(n))
	b = append(b, length[1:size]...) // makes room
	copy(b[at-1+size:], b[at:at+n])
	copy(b[at-1:], length[:size])
	return b
}

func (w *writer) uint(num protowire.Number, v uint64) {
	if v == 0 {
		return
	}
	w.tag(num, protowire.VarintType)
	w.buf = protowire.AppendVarint(w.buf, v)
}

func (w *writer) text(num protowire.Number, s string) {
	if s != "" {
		w.textAlways(num, s)
	}
}

func (w *writer) textAlways(num protowire.Number, s string) {
	w.odd = w.odd || !utf8.ValidString(s)
	w.tag(num, protowire.BytesType)
	w.buf = protowire.AppendString(w.buf, s)
}

// other appends a message that is written by protobuf.
func (w *writer) other(num protowire.Number, m proto.Message) {
	at := w.open(num)
	out, err := proto.MarshalOptions{}.MarshalAppend(w.buf, m)
	if err != nil {
		w.odd = true
		return
	}
	w.buf = out
	w.close(at)
}

func (w *writer) result(r *kvscoutv1.ScoreResult) {
	w.text(1, r.GetId())
	if m := r.GetResponse(); m != nil {
		at := w.open(2)
		w.response(m)
		w.close(at)
	}
	if m := r.GetError(); m != nil {
		w.other(3, m)
	}
}

func (w *writer) response(m *kvscoutv1.ScoreResponse) {
	for _, one := range m.GetWorkers() {
		at := w.open(1)
		w.worker(one)
		w.close(at)
	}
	w.uint(2, uint64(m.GetPromptTokens()))
	if m.GetRender() != nil {
		w.other(3, m.GetRender())
	}
	w.uint(4, m.GetIndexVersion())
	for _, s := range m.GetWarnings() {
		w.textAlways(5, s)
	}
	if m.GetTokens() != nil {
		w.other(6, m.GetTokens())
	}
	for _, f := range m.GetFeatures() {
		w.other(7, f)
	}
	w.text(50, m.GetScoreId())
	w.uint(51, uint64(m.GetWorkersOmitted()))
	if m.GetBestOutside() != nil {
		at := w.open(52)
		w.worker(m.GetBestOutside())
		w.close(at)
	}
}

// Tags of the fields that every entry has.
const (
	varintTag = 0
	doubleTag = 1
	bytesTag  = 2
)

// worker appends an entry. Most of an answer is entries, so this goes by itself and not through w.
func (w *writer) worker(m *kvscoutv1.WorkerScore) {
	b := w.buf
	if id := m.GetWorkerId(); id != "" {
		w.odd = w.odd || !utf8.ValidString(id)
		b = protowire.AppendString(append(b, 1<<3|bytesTag), id)
	}
	b = appendUint(b, 2, uint64(m.GetRank()))
	b = appendUint(b, 3, uint64(m.GetBlockSize()))
	b = appendUint(b, 4, uint64(m.GetHeldTokens()))
	b = appendUint(b, 5, uint64(m.GetReusableTokens()))
	for _, t := range m.GetTiers() {
		b = append(b, 6<<3|bytesTag, 0)
		at := len(b)
		b = appendUint(b, 1, enum(t.GetTier()))
		b = appendUint(b, 2, uint64(t.GetTokens()))
		b[at-1] = byte(len(b) - at) // at most 17
	}
	if s := m.GetScore(); s != 0 || math.Signbit(s) {
		b = appendDouble(b, 7, s)
	}
	if f := m.GetFreshness(); f != nil {
		b = append(b, 8<<3|bytesTag, 0)
		at := len(b)
		b = appendUint(b, 1, enum(f.GetState()))
		if f.LastSequence != nil {
			b = protowire.AppendVarint(append(b, 2<<3|varintTag), *f.LastSequence)
		}
		if f.AgeSeconds != nil {
			b = appendDouble(b, 3, *f.AgeSeconds)
		}
		b[at-1] = byte(len(b) - at) // at most 31
	}
	if m.GetBound() != nil {
		b = append(b, 9<<3|bytesTag, 0)
		at := len(b)
		b = closed(appendBound(b, m.GetBound()), at)
	}
	if m.GetKnown() {
		b = append(b, 10<<3|varintTag, 1)
	}
	w.buf = b
	w.uint(50, uint64(m.GetPredictedTokens()))
	if m.GetFlagged() != nil {
		w.other(51, m.GetFlagged())
	}
	if m.GetExplanation() != nil {
		w.other(52, m.GetExplanation())
	}
}

// appendUint appends a field of a number under 16, unless it is 0.
func appendUint(b []byte, num byte, v uint64) []byte {
	switch {
	case v == 0:
		return b
	case v < 1<<7:
		return append(b, num<<3|varintTag, byte(v))
	case v < 1<<14:
		return append(b, num<<3|varintTag, byte(v)|1<<7, byte(v>>7))
	default:
		return protowire.AppendVarint(append(b, num<<3|varintTag), v)
	}
}

func appendDouble(b []byte, num byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(append(b, num<<3|doubleTag), math.Float64bits(v))
}

func appendBound(b []byte, m *kvscoutv1.Bound) []byte {
	b = appendUint(b, 1, enum(m.GetKind()))
	if len(m.GetReasons()) == 0 {
		return b
	}
	b = append(b, 2<<3|bytesTag, 0)
	at := len(b)
	for _, r := range m.GetReasons() {
		b = protowire.AppendVarint(b, enum(r))
	}
	return closed(b, at)
}

// enum is how an enum goes onto the wire: negative numbers take ten bytes.
func enum[T ~int32](v T) uint64 { return uint64(int64(v)) }
