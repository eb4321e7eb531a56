package events

import (
	"crypto/sha256"
	"encoding/binary"
)

// scheme is how an engine makes its block hashes, as far as they were reproduced.
type scheme uint8

const (
	schemeUnknown scheme = iota
	// schemeV1 is v1_block_key of the C++ manager (BlockKeyHasher; runtime/kv_cache_hash.py).
	schemeV1
	// schemeV2 and schemeV2Old are the SHA-256 chains of the V2 manager, whole or cut to 64 bits: with and without
	// the byte that says which parts of a reuse scope follow.
	schemeV2
	schemeV2Old
)

// prove says whether h is the hash that the scheme gives a prompt's first block of these tokens when neither adapter nor
// salt is mixed in.
func (s scheme) prove(tokens []uint32, h Hash) bool {
	switch s {
	case schemeV1:
		return h == HashInt(v1BlockHash(0, tokens))
	case schemeV2, schemeV2Old:
		root := sha256.Sum256(nil)
		if s == schemeV2 {
			root = sha256.Sum256([]byte{0})
		}
		digest := v2BlockHash(root, tokens)
		return h == HashBytes(digest[:]) || h == HashInt(binary.BigEndian.Uint64(digest[:8]))
	default:
		return false
	}
}

// v1BlockHash is TensorRT-LLM's BlockKeyHasher for text tokens, parent 0 being the root.
func v1BlockHash(parent uint64, tokens []uint32) uint64 {
	seed := uint64(len(tokens)) ^ parent*0xbf58476d1ce4e5b9
	for _, t := range tokens {
		t = (t>>16 ^ t) * 0x45d9f3b
		t = (t>>16 ^ t) * 0x45d9f3b
		t = (t>>16 ^ t) + 0x9e3779b9
		seed ^= uint64(t) + seed<<6 + seed>>2
	}
	return seed
}

// v2BlockHash is the digest of one block in the V2 manager's chain.
func v2BlockHash(parent [sha256.Size]byte, tokens []uint32) [sha256.Size]byte {
	buf := make([]byte, 0, sha256.Size+8*len(tokens))
	buf = append(buf, parent[:]...)
	for _, t := range tokens {
		buf = binary.LittleEndian.AppendUint64(buf, uint64(t))
	}
	return sha256.Sum256(buf)
}

// witness tells by the engine's own hashes whether a prompt's first block belongs to a namespace that its event hides:
// TensorRT-LLM serialises no adapter and, before cache_salt was added, no salt, but mixes both into the hash. It says
// nothing until one hash was reproduced, since how an engine hashes is not known before.
type witness struct{ proved scheme }

// hides says whether the block of these tokens has a hash that only a hidden namespace explains.
func (w *witness) hides(tokens []uint32, h Hash) bool {
	if w.proved != schemeUnknown {
		return !w.proved.prove(tokens, h)
	}
	for s := schemeV1; s <= schemeV2Old; s++ {
		if s.prove(tokens, h) {
			w.proved = s
			break
		}
	}
	return false
}
