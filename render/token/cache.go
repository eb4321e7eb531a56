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

// cache remembers the ids of short words: one place per hash, the newest word stays. Readers and writers take no lock;
// an entry is never changed.
type cache struct {
	seed  maphash.Seed
	slots [cacheSlots]atomic.Pointer[cacheEntry]
}

type cacheEntry struct {
	word string
	ids  []uint32
}

func newCache() *cache { return &cache{seed: maphash.MakeSeed()} }

func (c *cache) slot(word string) *atomic.Pointer[cacheEntry] {
	return &c.slots[maphash.String(c.seed, word)%cacheSlots]
}

func newCacheEntry(word string, ids []uint32) *cacheEntry {
	return &cacheEntry{strings.Clone(word), append(make([]uint32, 0, len(ids)), ids...)}
}

func (c *cache) size() int64 { return cacheSlots * (8 + cacheEntrySize) }
