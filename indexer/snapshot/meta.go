package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

// streamMeta is the small part of a stream's section.
type streamMeta struct {
	Source  events.Source `json:"source"`
	Cursor  cursorMeta    `json:"cursor"`
	Partial bool          `json:"partial,omitempty"`
	Note    []byte        `json:"note,omitempty"`

	Buffered []events.BufferedRank `json:"buffered,omitempty"`
}

type cursorMeta struct {
	Seq   uint64 `json:"seq"`
	Sum   uint64 `json:"sum"`
	Epoch []byte `json:"epoch,omitempty"`
	Lossy bool   `json:"lossy,omitempty"`
	At    int64  `json:"at"` // Unix nanoseconds
}

// maxMeta bounds the small part of a stream or a book. A few hundred bytes are usual.
const maxMeta = 1 << 16

// ErrTooLarge is a stream whose description does not fit a file.
var ErrTooLarge = errors.New("description is too large")

func metaOf(s *indexer.Saved) streamMeta {
	return streamMeta{
		Source: s.Source, Partial: s.Partial, Note: s.Note, Buffered: s.Buffered,
		Cursor: cursorMeta{
			Seq: s.Cursor.Seq, Sum: s.Cursor.Sum, Epoch: []byte(s.Cursor.Epoch), Lossy: s.Cursor.Lossy, At: s.Cursor.At.UnixNano(),
		},
	}
}

// fill is the inverse of metaOf.
func (m *streamMeta) fill(s *indexer.Saved) {
	s.Source, s.Partial, s.Note, s.Buffered = m.Source, m.Partial, m.Note, m.Buffered
	s.Cursor = events.Cursor{
		Seq: m.Cursor.Seq, Sum: m.Cursor.Sum, Epoch: string(m.Cursor.Epoch), Lossy: m.Cursor.Lossy, At: time.Unix(0, m.Cursor.At),
	}
}

// readMeta reads one small part.
func readMeta(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("meta: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("meta: more than one value")
	}
	return nil
}
