package events

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// Hash is an engine's own id of a block: an opaque handle that means something inside one source only (rule 2).
//
// Engines send integers of any width and sign, or digests of any length. An integer is kept by its 64 bits (two's
// complement), so -3 and 18446744073709551613 are one id. Of a digest Lo keeps the last 8 bytes, big-endian, which is
// what vLLM sends as the integer form of the same digest, and Hi stands for the bytes before them, so digests that
// differ anywhere stay apart.
type Hash struct {
	Hi, Lo uint64
}

// HashInt is the id announced as the integer whose 64 bits are v.
func HashInt(v uint64) Hash { return Hash{Lo: v} }

// HashBytes is the id announced as the byte string b. Eight bytes or fewer are the integer they spell big-endian.
func HashBytes(b []byte) Hash {
	if len(b) <= 8 {
		var v uint64
		for _, c := range b {
			v = v<<8 | uint64(c)
		}
		return Hash{Lo: v}
	}
	cut := len(b) - 8
	// The lowest bit keeps Hi from being 0, which would make a digest look like an integer.
	return Hash{Hi: xxhash.Sum64(b[:cut]) | 1, Lo: binary.BigEndian.Uint64(b[cut:])}
}

// Digest says whether the id was announced as a byte string longer than 8 bytes.
func (h Hash) Digest() bool { return h.Hi != 0 }

func (h Hash) String() string {
	if h.Hi == 0 {
		return fmt.Sprintf("%016x", h.Lo)
	}
	return fmt.Sprintf("%016x:%016x", h.Hi, h.Lo)
}
