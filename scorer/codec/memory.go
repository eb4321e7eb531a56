package codec

import (
	"sync"
	"unicode/utf8"
	"unsafe"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

const (
	// maxKeptBytes is the largest memory of a prompt that is kept: some 235,000 tokens.
	maxKeptBytes = 1 << 20
	// maxKeptNames and maxKeptName bound the ids that are kept.
	maxKeptNames = 4096
	maxKeptName  = 256
)

// ScoreRequest is a request whose prompt and candidates are valid until Release.
type ScoreRequest struct {
	kvscoutv1.ScoreRequest
	tokens kvscoutv1.Tokens
	hashes kvscoutv1.BlockHashes
	memory *memory // nil before the first use and after Release
}

// Release gives the memory back. The message must not be used any more.
func (r *ScoreRequest) Release() {
	m := r.memory
	if m == nil {
		return
	}
	r.memory, r.Candidates, r.tokens.Packed, r.tokens.Ids, r.hashes.Packed = nil, nil, nil, nil, nil
	if cap(m.words)*8 <= maxKeptBytes && cap(m.ids)*8 <= maxKeptBytes && cap(m.names) <= maxKeptNames && !m.long {
		memories.Put(m)
	}
}

// ScoreBatchRequest is a batch whose requests are valid until Release.
type ScoreBatchRequest struct {
	kvscoutv1.ScoreBatchRequest
	requests []*ScoreRequest // those that have memory to give back
}

// Release gives the memory back. The message must not be used any more.
func (r *ScoreBatchRequest) Release() {
	for _, one := range r.requests {
		one.Release()
	}
	r.requests = nil
}

// ScoreStreamRequest is a message of a stream whose request is valid until Release.
type ScoreStreamRequest struct {
	kvscoutv1.ScoreStreamRequest
	one ScoreRequest
}

// Release gives the memory back. The message must not be used any more.
func (r *ScoreStreamRequest) Release() { r.one.Release() }

// ScoreResponse is an answer that is released once it is written.
type ScoreResponse struct {
	*kvscoutv1.ScoreResponse
	// Memory is where the answer lies; nil for memory of its own.
	Memory interface{ Release() }
}

// Release gives the memory back. The message must not be used any more.
func (r *ScoreResponse) Release() {
	if m := r.Memory; m != nil {
		r.Memory, r.ScoreResponse = nil, nil
		m.Release()
	}
}

// memory is what a request keeps its prompt and its candidates in.
type memory struct {
	words []uint64 // aligned, so that tokens and keys can be read in place
	used  bool     // words have the request's prompt
	// message is the request's message if that lies in words.
	message []byte
	ids     []int64  // the prompt as JSON has it
	names   []string // of this request's candidates, and behind them of earlier ones
	model   string   // of this request or an earlier one
	long    bool     // a name is too long to be kept
}

var memories = sync.Pool{New: func() any { return new(memory) }}

// mem is the request's memory, taken at its first use.
func (r *ScoreRequest) mem() *memory {
	if r.memory == nil {
		m := memories.Get().(*memory)
		m.names, m.used, m.message = m.names[:0], false, nil
		r.memory = m
	}
	return r.memory
}

// clone copies b, unless it lies in the request's memory already: the first of a request into words.
func (m *memory) clone(b []byte) []byte {
	switch {
	case len(b) == 0:
		return []byte{}
	case m.has(b):
		return b[:len(b):len(b)]
	}
	out := m.bytes(len(b))
	copy(out, b)
	return out
}

// bytes is n bytes, above 0: the first of a request of words.
func (m *memory) bytes(n int) []byte {
	if m.used {
		return make([]byte, n)
	}
	m.used = true
	if n := (n + 7) / 8; cap(m.words) < n {
		m.words = make([]uint64, n+n/8)
	}
	words := m.words[:cap(m.words)]
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n)
}

// addName adds a candidate's id, as the string that an earlier request had in its place if that is the same. It is false
// for what is no text.
func (m *memory) addName(b []byte) bool {
	if n := len(m.names); n < cap(m.names) {
		if m.names = m.names[:n+1]; m.names[n] != string(b) {
			m.names[n] = string(b)
		}
	} else {
		m.names = append(m.names, string(b))
	}
	m.long = m.long || len(b) > maxKeptName
	return utf8.Valid(b)
}

// setModel is the text of b, as the string that an earlier request had if that is the same. It is false for what is no
// text.
func (m *memory) setModel(b []byte) (string, bool) {
	if m.model != string(b) {
		m.model = string(b)
	}
	m.long = m.long || len(b) > maxKeptName
	return m.model, utf8.Valid(b)
}

// text is b as a string. It is false for what is no text.
func text(b []byte) (string, bool) { return string(b), utf8.Valid(b) }
