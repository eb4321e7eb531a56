package codec

import (
	"bytes"
	"slices"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// UnmarshalParts reads a request from a message that came in parts, which it copies once: into the request's memory, in which
// its prompt then lies where it is read.
func (c Proto) UnmarshalParts(parts [][]byte, r *ScoreRequest) error {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	if size == 0 {
		return c.Unmarshal(nil, r)
	}
	m := r.mem()
	shift := -promptAt(parts[0]) & 7
	region := m.bytes(shift + size)
	m.message = region[shift:shift]
	for _, p := range parts {
		m.message = append(m.message, p...)
	}
	if r.read(m.message) {
		return nil
	}
	whole := bytes.Clone(m.message) // the memory is given back before it is read again
	r.Release()
	return unmarshal(whole, &r.ScoreRequest)
}

// promptAt is where the packed prompt begins in a message of which this is the first part; 0 if that is not seen.
func promptAt(b []byte) int {
	prompt, at := bytesAt(b, 0, fieldTokens, fieldBlockHashes)
	switch prompt {
	case fieldTokens:
		_, at = bytesAt(b, at, 1)
	case fieldBlockHashes:
		_, at = bytesAt(b, at, 2)
	}
	return at
}

// bytesAt finds the first of these fields, which hold bytes, among the fields from b[at] on, and where its bytes begin; zeros
// if that is not seen.
func bytesAt(b []byte, at int, these ...protowire.Number) (protowire.Number, int) {
	for {
		num, typ, n := protowire.ConsumeTag(b[at:])
		if n < 0 {
			return 0, 0
		}
		at += n
		if typ == protowire.BytesType && slices.Contains(these, num) {
			if _, n = protowire.ConsumeVarint(b[at:]); n < 0 {
				return 0, 0
			}
			return num, at + n
		}
		if n = protowire.ConsumeFieldValue(num, typ, b[at:]); n < 0 {
			return 0, 0
		}
		at += n
	}
}

// has says whether b lies in the request's message where words can be read in place.
func (m *memory) has(b []byte) bool {
	if len(m.message) == 0 {
		return false
	}
	at, from := uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(unsafe.Pointer(unsafe.SliceData(m.message)))
	return at >= from && at < from+uintptr(len(m.message)) && at%8 == 0
}
