package indexer

import (
	"encoding/binary"
	"math/bits"
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

// What XXH3 takes to mix 64 or 128 bytes: so many times its first prime, words of its secret, and the factor of its last step.
const (
	mix64     uint64 = 0x8dde6c617af2a1c0
	mix128    uint64 = 0x1bbcd8c2f5e54380
	mixFactor uint64 = 0x165667919e3779f9

	secret0  uint64 = 0xbe4ba423396cfeb8
	secret1  uint64 = 0x1cad21f72c81017c
	secret2  uint64 = 0xdb979083e96dd4de
	secret3  uint64 = 0x1f67b3b7a4a44072
	secret4  uint64 = 0x78e5c0cc4ee679cb
	secret5  uint64 = 0x2172ffcc7dd05a82
	secret6  uint64 = 0x8e2443f7744608b8
	secret7  uint64 = 0x4c263a81e69035e0
	secret8  uint64 = 0xcb00c391bb52283c
	secret9  uint64 = 0xa32e531b8b65d088
	secret10 uint64 = 0x4ef90da297486471
	secret11 uint64 = 0xd8acdea946ef1938
	secret12 uint64 = 0x3f349ce33f76faa8
	secret13 uint64 = 0x1d4f0bc7c7bbdcf9
	secret14 uint64 = 0x3159b4cd4be0518a
	secret15 uint64 = 0x647378d9c97e9fc8
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

// A keyer makes at most maxRun keys at once, and where blocks are not hashed side by side those of about runTokens tokens: keys
// that are made for nothing would cost more than a longer run saves.
const (
	maxRun    = 64
	runTokens = 256
)

// keyer computes the keys of one prompt's blocks, some at a time and only as deep as they are asked for.
// It is not safe for concurrent use.
type keyer struct {
	tokens   []uint32
	features []Feature // sorted by offset
	size     int
	window   int // tokens hashed per block: size, or size+1 with pair keys
	most     int // keys made at once
	seed     uint64
	buf      []byte
	media    []uint64
	given    []Key // keys from outside; then tokens are not known
	// made are the keys made last, those of the blocks from first on.
	made  []Key
	first int
	room  [maxRun]Key // in which made lies
}

func newKeyer(tokens []uint32, features []Feature, size int, pairs bool, seed uint64) *keyer {
	k := &keyer{}
	k.reset(tokens, features, size, pairs, seed)
	return k
}

// reset makes k a keyer of another prompt.
func (k *keyer) reset(tokens []uint32, features []Feature, size int, pairs bool, seed uint64) {
	k.tokens, k.features, k.given = tokens, features, nil
	k.size, k.window, k.seed, k.made = size, size, seed, nil
	if pairs {
		k.window++
	}
	k.most = maxRun
	if len(features) > 0 || !sideBySide(k.size, k.window) {
		k.most = max(4, min(maxRun, runTokens/size))
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
	return k.from(i, 1)[0]
}

// from is the keys of some blocks from i on: one at least and n at most, valid until the next call.
func (k *keyer) from(i, n int) []Key {
	if k.given != nil {
		return k.given[i : i+n]
	}
	if at := i - k.first; at >= 0 && at < len(k.made) {
		return k.made[at:min(at+n, len(k.made))]
	}
	k.first, k.made = i, k.room[:min(n, k.most)]
	if len(k.features) == 0 {
		tokenKeys(k.made, k.tokens[i*k.size:], k.size, k.window, k.seed)
		return k.made
	}
	for j := range k.made {
		k.made[j] = k.mixedKey(i + j)
	}
	return k.made
}

// mixedKey makes the key of block i of a prompt with features.
func (k *keyer) mixedKey(i int) (key Key) {
	start := i * k.size
	k.media = k.media[:0]
	for _, f := range k.features {
		if f.Offset >= start+k.size {
			break
		}
		if f.Offset+f.Length > start {
			k.media = append(k.media, mediaHash(f.Hash))
		}
	}
	key, k.buf = blockKey(k.buf, k.tokens[start:start+k.window], k.media, nil, k.seed)
	return key
}

// sideBySide says whether tokenKeys hashes such blocks side by side.
func sideBySide(size, window int) bool { return window == size && (size == 16 || size == 32) }

// tokenKeys fills keys with blockKey of the leading blocks of size tokens, of each window tokens alone.
func tokenKeys(keys []Key, tokens []uint32, size, window int, seed uint64) {
	switch {
	case sideBySide(size, window) && size == 16:
		tokenKeys16(keys, tokens, seed)
	case sideBySide(size, window):
		tokenKeys32(keys, tokens, seed)
	default:
		for i := range keys {
			keys[i] = tokenKey(tokens[i*size:i*size+window], seed)
		}
	}
}

// tokenKeys16 is tokenKeys for blocks of 16 tokens: XXH3 of 64 bytes each, written out, so that blocks are hashed side by side.
func tokenKeys16(keys []Key, tokens []uint32, seed uint64) {
	s := [8]uint64{
		secret0 + seed, secret1 - seed, secret2 + seed, secret3 - seed, secret4 + seed, secret5 - seed, secret6 + seed, secret7 - seed,
	}
	for i := range keys {
		b := (*[16]uint32)(tokens)
		tokens = tokens[16:]
		sum := mix64
		sum += mulFold(pair(b[0], b[1])^s[0], pair(b[2], b[3])^s[1])
		sum += mulFold(pair(b[4], b[5])^s[4], pair(b[6], b[7])^s[5])
		sum += mulFold(pair(b[8], b[9])^s[6], pair(b[10], b[11])^s[7])
		sum += mulFold(pair(b[12], b[13])^s[2], pair(b[14], b[15])^s[3])
		keys[i] = avalanche(sum)
	}
}

// tokenKeys32 is likewise for blocks of 32 tokens.
func tokenKeys32(keys []Key, tokens []uint32, seed uint64) {
	s := [16]uint64{
		secret0 + seed, secret1 - seed, secret2 + seed, secret3 - seed, secret4 + seed, secret5 - seed, secret6 + seed, secret7 - seed,
		secret8 + seed, secret9 - seed, secret10 + seed, secret11 - seed, secret12 + seed, secret13 - seed, secret14 + seed, secret15 - seed,
	}
	for i := range keys {
		b := (*[32]uint32)(tokens)
		tokens = tokens[32:]
		sum := mix128
		sum += mulFold(pair(b[0], b[1])^s[0], pair(b[2], b[3])^s[1])
		sum += mulFold(pair(b[4], b[5])^s[4], pair(b[6], b[7])^s[5])
		sum += mulFold(pair(b[8], b[9])^s[8], pair(b[10], b[11])^s[9])
		sum += mulFold(pair(b[12], b[13])^s[12], pair(b[14], b[15])^s[13])
		sum += mulFold(pair(b[16], b[17])^s[14], pair(b[18], b[19])^s[15])
		sum += mulFold(pair(b[20], b[21])^s[10], pair(b[22], b[23])^s[11])
		sum += mulFold(pair(b[24], b[25])^s[6], pair(b[26], b[27])^s[7])
		sum += mulFold(pair(b[28], b[29])^s[2], pair(b[30], b[31])^s[3])
		keys[i] = avalanche(sum)
	}
}

// avalanche is the last step.
func avalanche(sum uint64) Key {
	sum ^= sum >> 37
	sum *= mixFactor
	return Key(sum ^ sum>>32)
}

// pair is two tokens as the little-endian word that they are in the recipe.
func pair(low, high uint32) uint64 { return uint64(low) | uint64(high)<<32 }

func mulFold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
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
	for i := 0; i < len(out); {
		i += copy(out[i:], k.from(i, len(out)-i))
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
