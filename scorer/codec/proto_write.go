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

func (w *writer) close(at int) {
	n := len(w.buf) - at
	if n < 1<<7 {
		w.buf[at-1] = byte(n)
		return
	}
	var length [binary.MaxVarintLen64]byte
	size := binary.PutUvarint(length[:], uint64(n))
	w.buf = append(w.buf, length[1:size]...) // makes room
	copy(w.buf[at-1+size:], w.buf[at:at+n])
	copy(w.buf[at-1:], length[:size])
}

func (w *writer) uint(num protowire.Number, v uint64) {
	if v == 0 {
		return
	}
	w.tag(num, protowire.VarintType)
	w.buf = protowire.AppendVarint(w.buf, v)
}

func (w *writer) bool(num protowire.Number, v bool) {
	if v {
		w.uint(num, 1)
	}
}

func (w *writer) double(num protowire.Number, v float64) {
	w.tag(num, protowire.Fixed64Type)
	w.buf = binary.LittleEndian.AppendUint64(w.buf, math.Float64bits(v))
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

func (w *writer) worker(m *kvscoutv1.WorkerScore) {
	w.text(1, m.GetWorkerId())
	w.uint(2, uint64(m.GetRank()))
	w.uint(3, uint64(m.GetBlockSize()))
	w.uint(4, uint64(m.GetHeldTokens()))
	w.uint(5, uint64(m.GetReusableTokens()))
	for _, t := range m.GetTiers() {
		at := w.open(6)
		w.uint(1, enum(t.GetTier()))
		w.uint(2, uint64(t.GetTokens()))
		w.close(at)
	}
	if s := m.GetScore(); s != 0 || math.Signbit(s) {
		w.double(7, s)
	}
	if f := m.GetFreshness(); f != nil {
		at := w.open(8)
		w.freshness(f)
		w.close(at)
	}
	if b := m.GetBound(); b != nil {
		at := w.open(9)
		w.bound(b)
		w.close(at)
	}
	w.bool(10, m.GetKnown())
	w.uint(50, uint64(m.GetPredictedTokens()))
	if m.GetFlagged() != nil {
		w.other(51, m.GetFlagged())
	}
	if m.GetExplanation() != nil {
		w.other(52, m.GetExplanation())
	}
}

func (w *writer) freshness(f *kvscoutv1.Freshness) {
	w.uint(1, enum(f.GetState()))
	if f.LastSequence != nil {
		w.tag(2, protowire.VarintType)
		w.buf = protowire.AppendVarint(w.buf, *f.LastSequence)
	}
	if f.AgeSeconds != nil {
		w.double(3, *f.AgeSeconds)
	}
}

func (w *writer) bound(b *kvscoutv1.Bound) {
	w.uint(1, enum(b.GetKind()))
	if len(b.GetReasons()) == 0 {
		return
	}
	at := w.open(2)
	for _, r := range b.GetReasons() {
		w.buf = protowire.AppendVarint(w.buf, enum(r))
	}
	w.close(at)
}

// enum is how an enum goes onto the wire: negative numbers take ten bytes.
func enum[T ~int32](v T) uint64 { return uint64(int64(v)) }
