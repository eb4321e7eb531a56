package recording

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/kvscout/kvscout/events"
)

// ErrFormat is a file in no form, or no version, that this package reads.
var ErrFormat = errors.New("not a recording")

// ErrRecord is one record, or one frame of records, that cannot be used. Reading may go on behind it.
var ErrRecord = errors.New("bad record")

// ErrTorn is a recording whose end is missing. Everything before the cut was returned.
var ErrTorn = errors.New("recording is cut off")

// Kind says what a Record is. The numbers are part of the dump form.
type Kind uint8

const (
	// KindSource describes a source. It comes before the source's first message.
	KindSource Kind = iota + 1
	// KindMessage is one published batch as received.
	KindMessage
	// KindRequest is a request that an engine ran, with the engine's own count of cached tokens.
	KindRequest
	// KindNote tells something that happened outside the stream, for people.
	KindNote
	// KindReplayRequest is what a replay client sent.
	KindReplayRequest
	// KindReplayReply is one message that a replay client got.
	KindReplayReply
)

// kindHeader opens a dump; it is no Record.
const kindHeader Kind = 0

var kindNames = [...]string{"header", "source", "message", "request", "note", "replay_request", "replay_reply"}

// String is the name of k in the JSON form.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// parseKind is the inverse of String for the kinds of records.
func parseKind(s string) (Kind, bool) {
	for i, name := range kindNames {
		if name == s && Kind(i) != kindHeader {
			return Kind(i), true
		}
	}
	return 0, false
}

// Record is one entry of a recording. A Record that Next returned belongs to the caller.
type Record struct {
	Kind Kind
	// Time is when it was received or sent, in Unix nanoseconds. Times may be equal; the order of the file counts.
	Time int64
	// Source is "worker/rank"; of a request, the source that ran it. Empty in notes.
	Source string
	// Info describes the source (KindSource); its ID is Source.
	Info *events.Source
	// Frames are as on the wire (KindMessage: topic, sequence, payload; KindReplayRequest and KindReplayReply: as that
	// client's socket sent or got them). An empty frame is not nil when read.
	Frames [][]byte
	// Request is set for KindRequest.
	Request *Request
	// Text is what a note says.
	Text string
	// Client is the kind of socket of a replay client, DEALER or REQ.
	Client string
}

// Request is one prompt that an engine ran.
type Request struct {
	// After has the last sequence number seen of each source when the request was sent. A source not heard yet has
	// no entry: 0 is a sequence number.
	After map[string]uint64
	// Model, Adapter, CacheSalt, ExtraKey and LoraID are the cache namespace as sent; empty means not sent.
	Model, Adapter, CacheSalt, ExtraKey, LoraID string
	// Tokens are the prompt's ids, each below 2^31.
	Tokens []uint32
	// Features are the multimodal items in prompt order, that is, by offset.
	Features []Feature
	// Path and Body are the HTTP request as sent, byte for byte; empty where none was sent or kept.
	Path string
	Body []byte
	// PromptTokens and CachedTokens are the engine's own numbers.
	PromptTokens, CachedTokens int
	// HostCachedTokens is what the engine took from host memory beyond CachedTokens; HasHost tells 0 from not told.
	HostCachedTokens int
	HasHost          bool
	// ID is the engine's or the client's name of the request.
	ID string
	// Extra has what the JSON form told beyond these fields, such as "full_kv_hit_length".
	Extra map[string]string
}

// Feature is one multimodal item of a prompt, as the engine's renderer gave it.
type Feature struct {
	// Modality is "image", "video", "audio", ...; Hash is the engine's content hash of the item.
	Modality, Hash string
	// Offset and Length tell the place of its placeholder, in tokens.
	Offset, Length int
}

const (
	// maxRecord bounds one record or one line, in bytes.
	maxRecord = 64 << 20
	// maxItems bounds every list and map in a record.
	maxItems = 1 << 16
)

// check says what makes r unusable. It is the one gate of the writer and of both readers (invariant 6).
func (r *Record) check() error {
	for _, s := range []string{r.Source, r.Text, r.Client} {
		if !utf8.ValidString(s) {
			return errors.New("source, text or client is not UTF-8")
		}
	}
	if len(r.Frames) > maxItems {
		return fmt.Errorf("%d frames, at most %d are kept", len(r.Frames), maxItems)
	}
	if r.Source == "" && r.Kind != KindNote {
		return errors.New("source is missing")
	}
	if r.Info != nil && r.Kind != KindSource || r.Request != nil && r.Kind != KindRequest {
		return errors.New("a description or a request in a record of another kind")
	}
	switch r.Kind {
	case KindSource:
		return checkInfo(r.Source, r.Info)
	case KindRequest:
		return r.Request.check()
	case KindMessage, KindReplayRequest, KindReplayReply:
		if len(r.Frames) == 0 {
			return errors.New("frames are missing")
		}
		return nil
	case KindNote:
		return nil
	default:
		return fmt.Errorf("kind %d is unknown", r.Kind)
	}
}

func checkInfo(id string, info *events.Source) error {
	if info == nil {
		return errors.New("description of the source is missing")
	}
	if info.ID() != id {
		return fmt.Errorf("source %q is described as %q", id, info.ID())
	}
	if len(info.Unpublished) > maxItems {
		return fmt.Errorf("over %d entries in unpublished", maxItems)
	}
	texts := []string{info.Version, info.Model, info.Topic, info.Events, info.Replay}
	for _, s := range texts {
		if !utf8.ValidString(s) {
			return errors.New("description of the source is not UTF-8")
		}
	}
	return info.Validate()
}

func (q *Request) check() error {
	if q == nil {
		return errors.New("request is missing")
	}
	if len(q.After) > maxItems || len(q.Features) > maxItems || len(q.Extra) > maxItems {
		return fmt.Errorf("more than %d entries in after, features or extra", maxItems)
	}
	if !q.validUTF8() {
		return errors.New("text of the request is not UTF-8")
	}
	for _, n := range []int{q.PromptTokens, q.CachedTokens, q.HostCachedTokens} {
		if n < 0 {
			return fmt.Errorf("count of tokens %d is negative", n)
		}
	}
	for i, t := range q.Tokens {
		if t > math.MaxInt32 {
			return fmt.Errorf("token %d of %d is negative", i, len(q.Tokens))
		}
	}
	for i, f := range q.Features {
		if f.Offset < 0 || f.Length < 0 {
			return fmt.Errorf("feature %d has a negative offset or length", i)
		}
	}
	return nil
}

// validUTF8 looks at every text of q: the dump form keeps them as CBOR text.
func (q *Request) validUTF8() bool {
	ok := true
	for _, s := range []string{q.Model, q.Adapter, q.CacheSalt, q.ExtraKey, q.LoraID, q.Path, q.ID} {
		ok = ok && utf8.ValidString(s)
	}
	for _, f := range q.Features {
		ok = ok && utf8.ValidString(f.Modality) && utf8.ValidString(f.Hash)
	}
	for s := range q.After {
		ok = ok && utf8.ValidString(s)
	}
	for k, v := range q.Extra {
		ok = ok && utf8.ValidString(k) && utf8.ValidString(v)
	}
	return ok
}
