package token

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

// Bounds of the cache: 65536 words of up to 32 bytes, 14 MB at the worst and 6 MB for English.
const (
	cacheSlots = 1 << 16
	maxCached  = 32
	// cacheEntrySize is what a full entry takes, in bytes.
	cacheEntrySize = 48 + maxCached + 4*maxCached
)

// cache remembers the ids of short words: two places per hash, the older word of them goes. Readers and writers take no
// lock, and an entry is never changed; of two writers at one place, one is forgotten.
type cache struct {
	seed  maphash.Seed
	slots [cacheSlots / 2][2]atomic.Pointer[cacheEntry]
}

type cacheEntry struct {
	word string
	ids  []uint32
}

func newCache() *cache { return &cache{seed: maphash.MakeSeed()} }

// find returns the entry of word, or nil and where to put it.
func (c *cache) find(word string) (hit *cacheEntry, pair *[2]atomic.Pointer[cacheEntry]) {
	pair = &c.slots[maphash.String(c.seed, word)%uint64(len(c.slots))]
	for i := range pair {
		if e := pair[i].Load(); e != nil && e.word == word {
			return e, nil
		}
	}
	return nil, pair
}

func put(pair *[2]atomic.Pointer[cacheEntry], word string, ids []uint32) {
	pair[1].Store(pair[0].Load())
	pair[0].Store(newCacheEntry(word, ids))
}

func newCacheEntry(word string, ids []uint32) *cacheEntry {
	return &cacheEntry{strings.Clone(word), append(make([]uint32, 0, len(ids)), ids...)}
}

func (c *cache) size() int64 { return cacheSlots * (8 + cacheEntrySize) }
