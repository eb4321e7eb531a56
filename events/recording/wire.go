package recording

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"github.com/kvscout/kvscout/events"
)

const (
	magicText = "kvscout recording"
	version   = 1
)

// errUnknownKind is a record of a kind that a later version added.
var errUnknownKind = errors.New("unknown kind of record")

// The wire types are the tables of the package comment; change both or none.

type wireRecord struct {
	Kind    uint64       `cbor:"0,keyasint"`
	Time    int64        `cbor:"1,keyasint,omitempty"`
	Source  string       `cbor:"2,keyasint,omitempty"`
	Frames  [][]byte     `cbor:"3,keyasint,omitempty"`
	Text    string       `cbor:"4,keyasint,omitempty"`
	Client  string       `cbor:"5,keyasint,omitempty"`
	Info    *wireInfo    `cbor:"6,keyasint,omitempty"`
	Request *wireRequest `cbor:"7,keyasint,omitempty"`
	Magic   string       `cbor:"8,keyasint,omitempty"`
	Version uint64       `cbor:"9,keyasint,omitempty"`
}

type wireInfo struct {
	Engine           events.Engine   `cbor:"0,keyasint,omitempty"`
	Version          string          `cbor:"1,keyasint,omitempty"`
	Model            string          `cbor:"2,keyasint,omitempty"`
	BlockSize        int             `cbor:"3,keyasint,omitempty"`
	Events           string          `cbor:"4,keyasint,omitempty"`
	Replay           string          `cbor:"5,keyasint,omitempty"`
	Topic            string          `cbor:"6,keyasint,omitempty"`
	SpeculativeEAGLE bool            `cbor:"7,keyasint,omitempty"`
	PairKeys         bool            `cbor:"8,keyasint,omitempty"`
	ReuseReports     bool            `cbor:"9,keyasint,omitempty"`
	HashFormat       string          `cbor:"10,keyasint,omitempty"`
	Unpublished      []events.Hidden `cbor:"11,keyasint,omitempty"`
}

type wireRequest struct {
	After            map[string]uint64 `cbor:"0,keyasint,omitempty"`
	Model            string            `cbor:"1,keyasint,omitempty"`
	Adapter          string            `cbor:"2,keyasint,omitempty"`
	CacheSalt        string            `cbor:"3,keyasint,omitempty"`
	ExtraKey         string            `cbor:"4,keyasint,omitempty"`
	LoraID           string            `cbor:"5,keyasint,omitempty"`
	Tokens           []byte            `cbor:"6,keyasint,omitempty"`
	Features         []wireFeature     `cbor:"7,keyasint,omitempty"`
	Path             string            `cbor:"8,keyasint,omitempty"`
	Body             []byte            `cbor:"9,keyasint,omitempty"`
	PromptTokens     int               `cbor:"10,keyasint,omitempty"`
	CachedTokens     int               `cbor:"11,keyasint,omitempty"`
	HostCachedTokens *int              `cbor:"12,keyasint,omitempty"`
	ID               string            `cbor:"13,keyasint,omitempty"`
	Extra            map[string]string `cbor:"14,keyasint,omitempty"`
}

type wireFeature struct {
	Modality string `cbor:"0,keyasint,omitempty"`
	Hash     string `cbor:"1,keyasint,omitempty"`
	Offset   int    `cbor:"2,keyasint,omitempty"`
	Length   int    `cbor:"3,keyasint,omitempty"`
}

var (
	encMode = mustEncMode()
	decMode = mustDecMode()
)

func mustEncMode() cbor.UserBufferEncMode {
	mode, err := cbor.CanonicalEncOptions().UserBufferEncMode()
	if err != nil {
		panic(err) // constant options
	}
	return mode
}

func mustDecMode() cbor.DecMode {
	mode, err := cbor.DecOptions{
		DupMapKey:        cbor.DupMapKeyEnforcedAPF,
		IndefLength:      cbor.IndefLengthForbidden,
		TagsMd:           cbor.TagsForbidden,
		MaxNestedLevels:  16, // version 1 needs 4
		MaxArrayElements: maxItems,
		MaxMapPairs:      maxItems,
	}.DecMode()
	if err != nil {
		panic(err) // constant options
	}
	return mode
}

func (w *wireRecord) checkHeader() error {
	if w.Kind != uint64(kindHeader) || w.Magic != magicText {
		return fmt.Errorf("%w: no header", ErrFormat)
	}
	if w.Version == 0 || w.Version > version {
		return fmt.Errorf("%w: version %d, this program reads %d", ErrFormat, w.Version, version)
	}
	return nil
}

func toWire(r *Record) *wireRecord {
	w := &wireRecord{
		Kind: uint64(r.Kind), Time: r.Time, Source: r.Source, Frames: r.Frames, Text: r.Text, Client: r.Client,
		Info: toWireInfo(r.Info), Request: toWireRequest(r.Request),
	}
	for i, f := range w.Frames {
		if f == nil { // would be written as null
			w.Frames = append([][]byte(nil), w.Frames...)
			w.Frames[i] = []byte{}
		}
	}
	return w
}

func toWireInfo(s *events.Source) *wireInfo {
	if s == nil {
		return nil
	}
	return &wireInfo{
		Engine: s.Engine, Version: s.Version, Model: s.Model, BlockSize: s.BlockSize,
		Events: s.Events, Replay: s.Replay, Topic: s.Topic,
		SpeculativeEAGLE: s.SpeculativeEAGLE, PairKeys: s.PairKeys, ReuseReports: s.ReuseReports,
		HashFormat: s.HashFormat, Unpublished: s.Unpublished,
	}
}

func toWireRequest(q *Request) *wireRequest {
	if q == nil {
		return nil
	}
	w := &wireRequest{
		After: q.After, Model: q.Model, Adapter: q.Adapter, CacheSalt: q.CacheSalt, ExtraKey: q.ExtraKey,
		LoraID: q.LoraID, Tokens: packTokens(q.Tokens), Path: q.Path, Body: q.Body,
		PromptTokens: q.PromptTokens, CachedTokens: q.CachedTokens, ID: q.ID, Extra: q.Extra,
	}
	if q.HasHost {
		w.HostCachedTokens = &q.HostCachedTokens
	}
	for _, f := range q.Features {
		w.Features = append(w.Features, wireFeature(f))
	}
	return w
}

// record makes the Record that w stands for, checked. It errs with errUnknownKind for kinds of later versions.
func (w *wireRecord) record() (*Record, error) {
	if w.Kind > uint64(KindReplayReply) {
		return nil, fmt.Errorf("%w: %d", errUnknownKind, w.Kind)
	}
	r := &Record{Kind: Kind(w.Kind), Time: w.Time, Source: w.Source, Frames: w.Frames, Text: w.Text, Client: w.Client}
	for i, f := range r.Frames {
		if f == nil {
			r.Frames[i] = []byte{}
		}
	}
	var err error
	if w.Info != nil {
		if r.Info, err = w.Info.source(w.Source); err != nil {
			return nil, err
		}
	}
	if w.Request != nil {
		if r.Request, err = w.Request.request(); err != nil {
			return nil, err
		}
	}
	return r, r.check()
}

func (w *wireInfo) source(id string) (*events.Source, error) {
	worker, rank, err := events.ParseID(id)
	if err != nil {
		return nil, err
	}
	return &events.Source{
		Worker: worker, Rank: rank,
		Engine: w.Engine, Version: w.Version, Model: w.Model, BlockSize: w.BlockSize,
		Events: w.Events, Replay: w.Replay, Topic: w.Topic,
		SpeculativeEAGLE: w.SpeculativeEAGLE, PairKeys: w.PairKeys, ReuseReports: w.ReuseReports,
		HashFormat: w.HashFormat, Unpublished: w.Unpublished,
	}, nil
}

func (w *wireRequest) request() (*Request, error) {
	tokens, err := unpackTokens(w.Tokens)
	if err != nil {
		return nil, err
	}
	q := &Request{
		After: w.After, Model: w.Model, Adapter: w.Adapter, CacheSalt: w.CacheSalt, ExtraKey: w.ExtraKey,
		LoraID: w.LoraID, Tokens: tokens, Path: w.Path, Body: w.Body,
		PromptTokens: w.PromptTokens, CachedTokens: w.CachedTokens, ID: w.ID, Extra: w.Extra,
	}
	if w.HostCachedTokens != nil {
		q.HostCachedTokens, q.HasHost = *w.HostCachedTokens, true
	}
	for _, f := range w.Features {
		q.Features = append(q.Features, Feature(f))
	}
	return q, nil
}

func packTokens(tokens []uint32) []byte {
	if len(tokens) == 0 {
		return nil
	}
	b := make([]byte, 0, 4*len(tokens))
	for _, t := range tokens {
		b = binary.LittleEndian.AppendUint32(b, t)
	}
	return b
}

// unpackTokens reads little-endian int32; that none is negative is for Request.check to say.
func unpackTokens(b []byte) ([]uint32, error) {
	if len(b)%4 != 0 {
		return nil, fmt.Errorf("%d bytes of token ids are no multiple of 4", len(b))
	}
	if len(b) == 0 {
		return nil, nil
	}
	tokens := make([]uint32, len(b)/4)
	for i := range tokens {
		tokens[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return tokens, nil
}
