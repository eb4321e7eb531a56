package render

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Defaults of CacheOptions.
const (
	DefaultCacheBytes = 64 << 20
	DefaultCacheTTL   = time.Minute
)

// CacheOptions configure a Cache. Zero means the default.
type CacheOptions struct {
	// MaxBytes bounds what the cache holds: bodies, tokens and their bookkeeping.
	MaxBytes int64
	// TTL is how long a result may be used. It bounds how long a template that prints the date shows yesterday's, and how
	// long a remote renderer that was replaced is not noticed.
	TTL time.Duration
}

// Versioned is a Renderer whose results may change though the requests do not.
type Versioned interface {
	// Version grows whenever results may differ from those before, and is 0 while they must not be kept at all.
	Version() uint64
}

// Cache keeps the results of another renderer for requests that come again, byte for byte. It is safe for concurrent use.
type Cache struct {
	next Renderer
	opts CacheOptions
	now  func() time.Time

	hits, misses, evicted atomic.Uint64

	mu sync.Mutex // guards lru and bytes
	// lru holds results by hash of their request. Two requests of one hash take turns.
	lru   *simplelru.LRU[uint64, *cached]
	bytes int64
}

// cached is a result and what it was the answer to.
type cached struct {
	path, model string
	header      http.Header
	body        []byte
	version     uint64
	until       time.Time
	result      Result
	size        int64
}

var (
	_ Renderer = (*Cache)(nil)
	_ Checker  = (*Cache)(nil)
)

// maxCacheEntries bounds how many results are held, however small; an entry costs some 400 bytes besides its contents.
const (
	maxCacheEntries = 1 << 20
	cacheEntryBytes = 400
)

// NewCache puts a cache before a renderer.
func NewCache(next Renderer, opts CacheOptions) *Cache {
	opts.MaxBytes = orDefault(opts.MaxBytes, DefaultCacheBytes)
	opts.TTL = orDefault(opts.TTL, DefaultCacheTTL)
	c := &Cache{next: next, opts: opts, now: time.Now}
	// It errs for a size that is not positive.
	c.lru, _ = simplelru.NewLRU(maxCacheEntries, func(_ uint64, e *cached) { c.bytes -= e.size })
	return c
}

// Render returns the result at hand, else that of the renderer behind. Errors are not kept.
func (c *Cache) Render(ctx context.Context, req Request) (Result, error) {
	version, keep := uint64(0), true
	if v, ok := c.next.(Versioned); ok {
		version = v.Version()
		keep = version != 0
	}
	if !keep {
		return c.next.Render(ctx, req)
	}
	start := c.now()
	key := keyOf(req)
	if result, ok := c.find(key, req, version, start); ok {
		c.hits.Add(1)
		result.Cached, result.Duration = true, c.now().Sub(start)
		return result, nil
	}
	c.misses.Add(1)
	result, err := c.next.Render(ctx, req)
	if err == nil {
		c.keep(key, req, version, start, result)
	}
	return result, err
}

func keyOf(req Request) uint64 {
	var d xxhash.Digest
	d.Reset()
	for _, s := range []string{req.Path, req.Model} {
		_, _ = d.WriteString(s)
		_, _ = d.Write([]byte{0})
	}
	for _, name := range slices.Sorted(maps.Keys(req.Header)) {
		_, _ = d.WriteString(name)
		for _, v := range req.Header[name] {
			_, _ = d.Write([]byte{0})
			_, _ = d.WriteString(v)
		}
		_, _ = d.Write([]byte{1})
	}
	_, _ = d.Write(req.Body)
	return d.Sum64()
}

// answers says whether e is the answer to req: the same path, model, header and bytes, not only the same hash.
func (e *cached) answers(req Request, version uint64) bool {
	return e.version == version && e.path == req.Path && e.model == req.Model && bytes.Equal(e.body, req.Body) &&
		maps.EqualFunc(e.header, req.Header, slices.Equal[[]string])
}

func (c *Cache) find(key uint64, req Request, version uint64, now time.Time) (Result, bool) {
	c.mu.Lock()
	e, ok := c.lru.Get(key)
	c.mu.Unlock()
	if !ok || !now.Before(e.until) || !e.answers(req, version) {
		return Result{}, false
	}
	return e.result, true
}

func (c *Cache) keep(key uint64, req Request, version uint64, now time.Time, result Result) {
	e := &cached{
		path: req.Path, model: req.Model, header: req.Header.Clone(), body: bytes.Clone(req.Body),
		version: version, until: now.Add(c.opts.TTL), result: result,
	}
	e.size = e.weigh()
	if e.size > c.opts.MaxBytes/4 { // it would push out too much
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lru.Remove(key)
	c.bytes += e.size
	if c.lru.Add(key, e) {
		c.evicted.Add(1)
	}
	for c.bytes > c.opts.MaxBytes {
		c.lru.RemoveOldest()
		c.evicted.Add(1)
	}
}

func (e *cached) weigh() int64 {
	n := int64(cacheEntryBytes + len(e.path) + len(e.model) + len(e.body))
	for name, values := range e.header {
		n += int64(len(name)) + 64
		for _, v := range values {
			n += int64(len(v)) + 16
		}
	}
	for _, p := range e.result.Prompts {
		n += int64(4*cap(p.Tokens)) + 64
		for _, f := range p.Features {
			n += int64(len(f.Hash)+len(f.Modality)) + 64
		}
	}
	return n
}

// Ready is that of the renderer behind.
func (c *Cache) Ready() error { return readyOf(c.next) }

// CacheStats counts what a Cache did since it was made.
type CacheStats struct {
	Hits, Misses, Evicted uint64
	// Entries and Bytes are held now.
	Entries int
	Bytes   int64
}

// Stats returns the counters.
func (c *Cache) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CacheStats{
		Hits: c.hits.Load(), Misses: c.misses.Load(), Evicted: c.evicted.Load(), Entries: c.lru.Len(), Bytes: c.bytes,
	}
}

// readyOf is what r says of itself; a renderer that says nothing is ready.
func readyOf(r Renderer) error {
	if c, ok := r.(Checker); ok {
		return c.Ready()
	}
	return nil
}
