package simulate

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"github.com/kvscout/kvscout/events"
)

// digest is a full SHA-256 block digest. Only 8 bytes of it travel.
type digest = [sha256.Size]byte

// canonical is the encoding of Python's cbor2 with canonical=True.
var canonical = func() cbor.EncMode {
	mode, err := cbor.CanonicalEncOptions().EncMode()
	if err != nil {
		panic(err) // the options are the library's own
	}
	return mode
}()

// vllmBlock is what vLLM hashes for one block: (parent digest, token ids, extra keys).
type vllmBlock struct {
	_      struct{} `cbor:",toarray"`
	Parent []byte
	Tokens []uint32
	Extra  []any
}

// vllmNone is NONE_HASH, the parent of every first block: the hash of the seed as a string.
func vllmNone(seed string) digest { return sha256.Sum256(mustCBOR(seed)) }

// vllmNext is vLLM's sha256_cbor digest of the block after parent. extra holds strings and pairs, nil for none.
func vllmNext(parent digest, tokens []uint32, extra []any) digest {
	return sha256.Sum256(mustCBOR(vllmBlock{Parent: parent[:], Tokens: tokens, Extra: extra}))
}

func mustCBOR(v any) []byte {
	b, err := canonical.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("cbor of %T: %v", v, err)) // strings, bytes and integers always encode
	}
	return b
}

// vllmWire is the integer form that vLLM publishes: the last 8 bytes.
func vllmWire(d digest) events.Hash { return events.HashInt(binary.BigEndian.Uint64(d[len(d)-8:])) }

// sglangSpace hashes the pages of one namespace as SGLang does.
type sglangSpace struct {
	start []byte // takes the place of the digest before the first page; empty when unsalted
	seed  []byte // mixed into what is published; nil when the default format does not
}

// newSGLangSpace prepares the default hash format. loraID is the engine's own random id of the adapter, empty for none.
func newSGLangSpace(loraID, salt string) sglangSpace {
	var s sglangSpace
	if salt != "" {
		d := sha256.Sum256([]byte("sglang-cache-salt-v1\x00" + salt))
		s.start = d[:]
	}
	if loraID != "" {
		text := []byte("sglang-kv-event-namespace-v1")
		text = appendPart(text, loraID)
		text = appendPart(text, salt)
		d := sha256.Sum256(text)
		s.seed = d[:]
	}
	return s
}

// appendPart writes 0 for none, or 1, the length as 8 bytes little-endian, and the bytes.
func appendPart(b []byte, s string) []byte {
	if s == "" {
		return append(b, 0)
	}
	b = append(b, 1)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}

// next is the digest of a page after previous, which is empty for the first page of the namespace.
func (s sglangSpace) next(previous []byte, page []uint32) digest {
	if len(previous) == 0 {
		previous = s.start
	}
	b := append(make([]byte, 0, len(previous)+4*len(page)), previous...)
	for _, t := range page {
		b = binary.LittleEndian.AppendUint32(b, t)
	}
	return sha256.Sum256(b)
}

// wire is the published form of a page's digest: the bits of a signed 64-bit integer.
func (s sglangSpace) wire(d digest) events.Hash {
	if s.seed != nil {
		d = sha256.Sum256(append(append(make([]byte, 0, len(s.seed)+8), s.seed...), d[:8]...))
	}
	return events.HashInt(binary.BigEndian.Uint64(d[:8]))
}
