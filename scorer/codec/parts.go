package codec

import (
	"bytes"
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
	for at := 0; ; {
		num, typ, n := protowire.ConsumeTag(b[at:])
		if n < 0 {
			return 0
		}
		at += n
		if typ == protowire.BytesType && (num == fieldTokens || num == fieldBlockHashes) {
			_, n := protowire.ConsumeVarint(b[at:])
			if n < 0 {
				return 0
			}
			return packedAt(b, at+n, num)
		}
		if n = protowire.ConsumeFieldValue(num, typ, b[at:]); n < 0 {
			return 0
		}
		at += n
	}
}

// packedAt is where the packed ids begin in a prompt's message that begins at b[at].
func packedAt(b []byte, at int, prompt protowire.Number) int {
	field := protowire.Number(1)
	if prompt == fieldBlockHashes {
		field = 2
	}
	for {
		num, typ, n := protowire.ConsumeTag(b[at:])
		if n < 0 {
			return 0
		}
		at += n
		if num == field && typ == protowire.BytesType {
			if _, n = protowire.ConsumeVarint(b[at:]); n < 0 {
				return 0
			}
			return at + n
		}
		if n = protowire.ConsumeFieldValue(num, typ, b[at:]); n < 0 {
			return 0
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
