package indexer

import (
	"encoding/binary"
	"slices"
	"strconv"
	"unsafe"

	"github.com/zeebo/xxh3"
)

// Key is the 64-bit content hash of one block: its tokens, the multimodal content that overlaps it, and the namespace.
// It is not chained: the tree gives a block its place. The recipe is the one that Dynamo's router publishes
// (kv-router protocols.rs), so keys may come from outside (ScoreRequest.block_hashes).
type Key uint64

// Seeds of the recipe. chainSeed chains sequence hashes; the inner seeds keep equal strings of different meaning apart.
// extraSeed is ours: the recipe knows no third namespace.
const (
	chainSeed     = 1337
	adapterSeed   = 0
	saltSeed      = 1
	extraSeed     = 2
	opaqueSeed    = 3
	mediaNameSeed = 0
)

// Namespace isolates caches from one another. Each part is apart from the others; the zero value is the common cache.
type Namespace struct {
	// Salt is the cache salt or tenant.
	Salt string
	// Adapter is the name of the LoRA adapter.
	Adapter string
	// Extra is an engine-specific key (SGLang's extra_key).
	Extra string
}

// Seed is the seed under which blocks of the namespace are hashed.
func (n Namespace) Seed() uint64 {
	seed := uint64(chainSeed)
	if n.Adapter != "" {
		seed += xxh3.HashStringSeed(n.Adapter, adapterSeed)
	}
	if n.Salt != "" {
		seed += xxh3.HashStringSeed(n.Salt, saltSeed)
	}
	if n.Extra != "" {
		seed += xxh3.HashStringSeed(n.Extra, extraSeed)
	}
	return seed
}

// Feature is one multimodal item of a prompt: an image, a clip. Offset and Length are its placeholder tokens.
type Feature struct {
	Hash           string
	Offset, Length int
}

// keyer computes the keys of one prompt's blocks, one at a time and only as deep as they are asked for.
// It is not safe for concurrent use.
type keyer struct {
	tokens   []uint32
	features []Feature // sorted by offset
	size     int
	window   int // tokens hashed per block: size, or size+1 with pair keys
	seed     uint64
	buf      []byte
	media    []uint64
	given    []Key // keys from outside; then tokens are not known
	last     int   // the block asked for last, -1 for none
	lastKey  Key
}

func newKeyer(tokens []uint32, features []Feature, size int, pairs bool, seed uint64) *keyer {
	k := &keyer{}
	k.reset(tokens, features, size, pairs, seed)
	return k
}

// reset makes k a keyer of another prompt.
func (k *keyer) reset(tokens []uint32, features []Feature, size int, pairs bool, seed uint64) {
	k.tokens, k.features, k.given = tokens, features, nil
	k.size, k.window, k.seed, k.last = size, size, seed, -1
	if pairs {
		k.window++
	}
}

// blocks is the number of full blocks.
func (k *keyer) blocks() int {
	if k.given != nil {
		return len(k.given)
	}
	return max(0, (len(k.tokens)-(k.window-k.size))/k.size)
}

// at is the key of block i.
func (k *keyer) at(i int) Key {
	if k.given != nil {
		return k.given[i]
	}
	if i == k.last {
		return k.lastKey
	}
	start := i * k.size
	if len(k.features) == 0 {
		k.last, k.lastKey = i, tokenKey(k.tokens[start:start+k.window], k.seed)
		return k.lastKey
	}
	k.media = k.media[:0]
	for _, f := range k.features {
		if f.Offset >= start+k.size {
			break
		}
		if f.Offset+f.Length > start {
			k.media = append(k.media, mediaHash(f.Hash))
		}
	}
	k.last = i
	k.lastKey, k.buf = blockKey(k.buf, k.tokens[start:start+k.window], k.media, nil, k.seed)
	return k.lastKey
}

// tokenKey is blockKey of tokens alone.
func tokenKey(tokens []uint32, seed uint64) Key {
	if len(tokens) == 0 || !littleEndian {
		key, _ := blockKey(nil, tokens, nil, nil, seed)
		return key
	}
	return Key(xxh3.HashSeed(unsafe.Slice((*byte)(unsafe.Pointer(&tokens[0])), 4*len(tokens)), seed))
}

// littleEndian says whether tokens lie in memory as the recipe hashes them.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// blockKey hashes one block. media are the content hashes of the items that overlap it, in prompt order; opaque is
// anything else the engine mixed in, which no request can reproduce. buf is scratch, returned for reuse.
//
// The recipe sorts media, so two items of one block in either order would be one key. Where the prompt's order is
// not the sorted one it is appended again: equal keys then mean equal content.
func blockKey(buf []byte, tokens []uint32, media []uint64, opaque []byte, seed uint64) (Key, []byte) {
	buf = buf[:0]
	for _, t := range tokens {
		buf = binary.LittleEndian.AppendUint32(buf, t)
	}
	if len(media) > 0 {
		sorted := slices.Sorted(slices.Values(media))
		for _, m := range sorted {
			buf = binary.LittleEndian.AppendUint64(buf, m)
		}
		if !slices.Equal(sorted, media) {
			for _, m := range media {
				buf = binary.LittleEndian.AppendUint64(buf, m)
			}
		}
	}
	key := xxh3.HashSeed(buf, seed)
	if len(opaque) > 0 {
		buf = binary.LittleEndian.AppendUint64(buf[:0], key)
		buf = append(buf, opaque...)
		key = xxh3.HashSeed(buf, opaqueSeed)
	}
	return Key(key), buf
}

// mediaHash folds an item's identifier to 64 bits: 64 hex digits are a digest, of which the first 16 count.
func mediaHash(id string) uint64 {
	if isHexDigest(id) {
		if v, err := strconv.ParseUint(id[:16], 16, 64); err == nil {
			return v
		}
	}
	return xxh3.HashStringSeed(id, mediaNameSeed)
}

func isHexDigest(s string) bool {
	if len(s) != 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}

// Keys returns the keys of a prompt's full blocks of size tokens. features must be sorted by offset.
func Keys(tokens []uint32, features []Feature, size int, pairs bool, ns Namespace) []Key {
	k := newKeyer(tokens, features, size, pairs, ns.Seed())
	out := make([]Key, k.blocks())
	for i := range out {
		out[i] = k.at(i)
	}
	return out
}

// SequenceHashes chains keys into the recipe's sequence hashes: entry i stands for blocks 0..i.
func SequenceHashes(keys []Key) []uint64 {
	out := make([]uint64, len(keys))
	var buf [16]byte
	for i, k := range keys {
		if i == 0 {
			out[i] = uint64(k)
			continue
		}
		binary.LittleEndian.PutUint64(buf[:8], out[i-1])
		binary.LittleEndian.PutUint64(buf[8:], uint64(k))
		out[i] = xxh3.HashSeed(buf[:], chainSeed)
	}
	return out
}
