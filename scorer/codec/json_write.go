package codec

import (
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// jsonWriter appends messages in protobuf's JSON form: names in camel case, 64-bit integers as strings, fields of zero
// left out. Each member is followed by a comma, the last one's is taken back.
type jsonWriter struct {
	buf []byte
	// odd: protobuf is to judge. What was appended is then not to be used.
	odd bool
}

// Names of enums by number.
var (
	tierNames   = namesOf(kvscoutv1.Tier_name)
	stateNames  = namesOf(kvscoutv1.FreshnessState_name)
	kindNames   = namesOf(kvscoutv1.BoundKind_name)
	reasonNames = namesOf(kvscoutv1.BoundReason_name)
)

func namesOf(names map[int32]string) (list []string) {
	for n, name := range names {
		if int(n) >= len(list) {
			list = append(list, make([]string, int(n)+1-len(list))...)
		}
		list[n] = name
	}
	return list
}

// name begins a member. Names need no escapes.
func (w *jsonWriter) name(name string) {
	w.buf = append(w.buf, '"')
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, '"', ':')
}

// end ends an object or a list.
func (w *jsonWriter) end(last byte) {
	if n := len(w.buf) - 1; w.buf[n] == ',' {
		w.buf = w.buf[:n]
	}
	w.buf = append(w.buf, last, ',')
}

func (w *jsonWriter) open(name string, first byte) {
	w.name(name)
	w.buf = append(w.buf, first)
}

func (w *jsonWriter) uint32(name string, v uint32) {
	if v != 0 {
		w.name(name)
		w.buf = append(strconv.AppendUint(w.buf, uint64(v), 10), ',')
	}
}

func (w *jsonWriter) uint64(name string, v uint64) {
	w.name(name)
	w.buf = append(strconv.AppendUint(append(w.buf, '"'), v, 10), '"', ',')
}

func (w *jsonWriter) double(name string, v float64) {
	w.odd = w.odd || math.IsNaN(v) || math.IsInf(v, 0)
	w.name(name)
	w.buf = append(strconv.AppendFloat(w.buf, v, 'g', -1, 64), ',')
}

func (w *jsonWriter) text(name, s string) {
	if s != "" {
		w.name(name)
		w.quoted(s)
	}
}

func (w *jsonWriter) quoted(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			w.escaped(s)
			return
		}
	}
	w.buf = append(w.buf, '"')
	w.buf = append(w.buf, s...)
	w.buf = append(w.buf, '"', ',')
}

func (w *jsonWriter) escaped(s string) {
	out, err := json.Marshal(s)
	w.odd = w.odd || err != nil || !utf8.ValidString(s)
	w.buf = append(append(w.buf, out...), ',')
}

// enum appends an enum's value: one that this version has no name for as its number.
func (w *jsonWriter) enum(names []string, v int32) {
	if v < 0 || int(v) >= len(names) || names[v] == "" {
		w.buf = append(strconv.AppendInt(w.buf, int64(v), 10), ',')
		return
	}
	w.quoted(names[v])
}

// other appends a message that is written by protobuf.
func (w *jsonWriter) other(name string, m proto.Message) {
	w.name(name)
	w.message(m)
}

func (w *jsonWriter) message(m proto.Message) {
	out, err := protojson.MarshalOptions{}.MarshalAppend(w.buf, m)
	if err != nil {
		w.odd = true
		return
	}
	w.buf = append(out, ',')
}

func (w *jsonWriter) batch(m *kvscoutv1.ScoreBatchResponse) {
	if len(m.GetResults()) == 0 {
		return // protobuf's
	}
	w.buf = append(w.buf, '{')
	w.open("results", '[')
	for _, r := range m.GetResults() {
		w.buf = append(w.buf, '{')
		w.text("id", r.GetId())
		if r.GetResponse() != nil {
			w.name("response")
			w.response(r.GetResponse())
			w.buf = append(w.buf, ',')
		}
		if r.GetError() != nil {
			w.other("error", r.GetError())
		}
		w.end('}')
	}
	w.end(']')
	w.end('}')
	w.buf = w.buf[:len(w.buf)-1]
}

// response appends an answer, without a comma.
func (w *jsonWriter) response(m *kvscoutv1.ScoreResponse) {
	w.buf = append(w.buf, '{')
	if len(m.GetWorkers()) > 0 {
		w.open("workers", '[')
		for _, one := range m.GetWorkers() {
			w.worker(one)
		}
		w.end(']')
	}
	w.uint32("promptTokens", m.GetPromptTokens())
	if m.GetRender() != nil {
		w.other("render", m.GetRender())
	}
	if m.GetIndexVersion() != 0 {
		w.uint64("indexVersion", m.GetIndexVersion())
	}
	if len(m.GetWarnings()) > 0 {
		w.open("warnings", '[')
		for _, s := range m.GetWarnings() {
			w.quoted(s)
		}
		w.end(']')
	}
	if m.GetTokens() != nil {
		w.other("tokens", m.GetTokens())
	}
	if len(m.GetFeatures()) > 0 {
		w.open("features", '[')
		for _, f := range m.GetFeatures() {
			w.message(f)
		}
		w.end(']')
	}
	w.text("scoreId", m.GetScoreId())
	w.uint32("workersOmitted", m.GetWorkersOmitted())
	if m.GetBestOutside() != nil {
		w.name("bestOutside")
		w.worker(m.GetBestOutside())
	}
	w.end('}')
	w.buf = w.buf[:len(w.buf)-1]
}

func (w *jsonWriter) worker(m *kvscoutv1.WorkerScore) {
	w.buf = append(w.buf, '{')
	w.text("workerId", m.GetWorkerId())
	w.uint32("rank", m.GetRank())
	w.uint32("blockSize", m.GetBlockSize())
	w.uint32("heldTokens", m.GetHeldTokens())
	w.uint32("reusableTokens", m.GetReusableTokens())
	if len(m.GetTiers()) > 0 {
		w.open("tiers", '[')
		for _, t := range m.GetTiers() {
			w.tier(t)
		}
		w.end(']')
	}
	if s := m.GetScore(); s != 0 || math.Signbit(s) {
		w.double("score", s)
	}
	if m.GetFreshness() != nil {
		w.freshness(m.GetFreshness())
	}
	if m.GetBound() != nil {
		w.bound(m.GetBound())
	}
	if m.GetKnown() {
		w.name("known")
		w.buf = append(w.buf, "true,"...)
	}
	w.uint32("predictedTokens", m.GetPredictedTokens())
	if m.GetFlagged() != nil {
		w.other("flagged", m.GetFlagged())
	}
	if m.GetExplanation() != nil {
		w.other("explanation", m.GetExplanation())
	}
	w.end('}')
}

func (w *jsonWriter) tier(t *kvscoutv1.TierTokens) {
	w.buf = append(w.buf, '{')
	if t.GetTier() != 0 {
		w.name("tier")
		w.enum(tierNames, int32(t.GetTier()))
	}
	w.uint32("tokens", t.GetTokens())
	w.end('}')
}

func (w *jsonWriter) freshness(f *kvscoutv1.Freshness) {
	w.open("freshness", '{')
	if f.GetState() != 0 {
		w.name("state")
		w.enum(stateNames, int32(f.GetState()))
	}
	if f.LastSequence != nil {
		w.uint64("lastSequence", *f.LastSequence)
	}
	if f.AgeSeconds != nil {
		w.double("ageSeconds", *f.AgeSeconds)
	}
	w.end('}')
}

func (w *jsonWriter) bound(b *kvscoutv1.Bound) {
	w.open("bound", '{')
	if b.GetKind() != 0 {
		w.name("kind")
		w.enum(kindNames, int32(b.GetKind()))
	}
	if len(b.GetReasons()) > 0 {
		w.open("reasons", '[')
		for _, r := range b.GetReasons() {
			w.enum(reasonNames, int32(r))
		}
		w.end(']')
	}
	w.end('}')
}
