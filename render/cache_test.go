package render

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// counted is a real client of a server that answers with a new id each time.
func counted(t *testing.T, opts CacheOptions) (*Cache, *atomic.Int32) {
	asked := new(atomic.Int32)
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		answering(200, fmt.Sprintf(`{"token_ids":[%d]}`, asked.Add(1)))(w, r)
	})
	return NewCache(client, opts), asked
}

func renderID(t *testing.T, r Renderer, req Request) (uint32, bool) {
	t.Helper()
	res, err := r.Render(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return res.Prompts[0].Tokens[0], res.Cached
}

// TestCache_Equality: a result is used again for the same bytes, model and header, and for nothing else.
func TestCache_Equality(t *testing.T) {
	c, _ := counted(t, CacheOptions{})
	base := Request{Path: PathChat, Model: "m", Body: []byte(`{"a": 1}`), Header: http.Header{"X-Tenant-Id": {"a"}}}
	requests := []Request{
		base,
		{Path: base.Path, Model: "m2", Body: base.Body, Header: base.Header},
		{Path: base.Path, Model: base.Model, Body: []byte(`{"a":1}`), Header: base.Header},
		{Path: base.Path, Model: base.Model, Body: base.Body, Header: http.Header{"X-Tenant-Id": {"b"}}},
		{Path: base.Path, Model: base.Model, Body: base.Body},
	}
	for range 2 {
		for i, req := range requests {
			if id, _ := renderID(t, c, req); id != uint32(i+1) {
				t.Errorf("request %d got the answer to %d", i, id-1)
			}
		}
	}
	if s := c.Stats(); s.Hits != 5 || s.Misses != 5 || s.Entries != 5 {
		t.Errorf("stats %+v", s)
	}
}

// TestCache_HashIsNoProof: two requests of one hash are not taken for each other.
func TestCache_HashIsNoProof(t *testing.T) {
	c, _ := counted(t, CacheOptions{})
	one := Request{Path: PathChat, Body: []byte(`{"a":1}`)}
	two := Request{Path: PathChat, Body: []byte(`{"a":2}`)}
	renderID(t, c, one)
	c.mu.Lock()
	e, _ := c.lru.Get(keyOf(one))
	c.lru.Add(keyOf(two), e) // as if the hashes were equal
	c.bytes += e.size
	c.mu.Unlock()
	if id, cached := renderID(t, c, two); id != 2 || cached {
		t.Errorf("got the answer of another request: %d, cached %v", id, cached)
	}
}

// TestRule17_CacheIsBounded: in bytes, and in time.
func TestRule17_CacheIsBounded(t *testing.T) {
	now := time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	c, asked := counted(t, CacheOptions{MaxBytes: 20_000, TTL: time.Minute})
	c.now = func() time.Time { return now }
	body := func(n int) Request {
		return Request{Path: PathChat, Body: fmt.Appendf(nil, `{"a":"%01000d"}`, n)}
	}
	for n := range 100 {
		renderID(t, c, body(n))
		if s := c.Stats(); s.Bytes > 20_000 {
			t.Fatalf("%d bytes are held", s.Bytes)
		}
	}
	if s := c.Stats(); s.Entries < 10 || s.Entries > 14 || s.Evicted != uint64(100-s.Entries) || s.Bytes < 15_000 {
		t.Errorf("stats %+v", s)
	}
	if _, cached := renderID(t, c, body(99)); !cached {
		t.Error("the newest is gone")
	}
	now = now.Add(time.Minute)
	if _, cached := renderID(t, c, body(99)); cached {
		t.Error("the result is too old")
	}
	big := Request{Path: PathChat, Body: fmt.Appendf(nil, `{"a":"%06000d"}`, 1)}
	before := asked.Load()
	renderID(t, c, big)
	renderID(t, c, big)
	if asked.Load() != before+2 {
		t.Error("a body over a quarter of the room was kept")
	}
}

// TestCache_Errors are not kept.
func TestCache_Errors(t *testing.T) {
	var well atomic.Bool
	c := NewCache(serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !well.Load() {
			answering(400, `{}`)(w, r)
			return
		}
		answering(200, `{"token_ids":[1]}`)(w, r)
	}), CacheOptions{})
	req := Request{Path: PathChat, Body: []byte(`{}`)}
	if _, err := c.Render(t.Context(), req); !errors.Is(err, ErrBadRequest) {
		t.Fatal(err)
	}
	well.Store(true)
	renderID(t, c, req)
}

// versioned is a renderer whose results change.
type versioned struct {
	Renderer
	version atomic.Uint64
}

func (v *versioned) Version() uint64 { return v.version.Load() }

// TestCache_Version: what a model's old files rendered is not used after a swap, and version 0 is never kept.
func TestCache_Version(t *testing.T) {
	inner, _ := counted(t, CacheOptions{MaxBytes: 1}) // keeps nothing
	v := &versioned{Renderer: inner}
	c := NewCache(v, CacheOptions{})
	req := Request{Path: PathChat, Body: []byte(`{}`)}
	for i, step := range []struct {
		version uint64
		want    uint32
	}{{1, 1}, {1, 1}, {2, 2}, {2, 2}, {0, 3}, {0, 4}, {2, 2}} {
		v.version.Store(step.version)
		if id, _ := renderID(t, c, req); id != step.want {
			t.Errorf("step %d: got %d, want %d", i, id, step.want)
		}
	}
}

func TestCache_Concurrent(t *testing.T) {
	c, _ := counted(t, CacheOptions{MaxBytes: 10_000})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() { // ends by itself, waited for below
			for n := range 50 {
				req := Request{Path: PathChat, Body: fmt.Appendf(nil, `{"a":%d}`, (n+g)%20)}
				if _, err := c.Render(t.Context(), req); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if s := c.Stats(); s.Hits+s.Misses != 400 {
		t.Errorf("stats %+v", s)
	}
}

// TestModels: each model has its renderer, others the common one, and no renderer is an error.
func TestModels(t *testing.T) {
	own := serve(t, answering(200, `{"token_ids":[1]}`))
	other := serve(t, answering(200, `{"token_ids":[2]}`))
	sick := serve(t, answering(500, ``), func(o *Options) { o.BreakAfter = 1 })
	m := &Models{ByModel: map[string]Renderer{"a": own, "sick": sick}}
	if _, err := m.Render(t.Context(), Request{Model: "b", Path: PathChat}); !errors.Is(err, ErrNoRenderer) || m.Serves("b") {
		t.Errorf("got %v, want ErrNoRenderer", err)
	}
	m.Other = NewCache(other, CacheOptions{})
	for model, want := range map[string]uint32{"a": 1, "b": 2} {
		if id, _ := renderID(t, m, Request{Model: model, Path: PathChat, Body: []byte(`{}`)}); id != want {
			t.Errorf("model %s was rendered by %d", model, id)
		}
	}
	if err := m.Ready(); err != nil {
		t.Error(err)
	}
	_, _ = m.Render(t.Context(), Request{Model: "sick", Path: PathChat})
	if err := m.Ready(); !errors.Is(err, ErrDown) {
		t.Errorf("ready says %v", err)
	}
	for model, r := range m.Reports() {
		if (r.Fault != nil) != (model == "sick") || r.Calls != 1 {
			t.Errorf("model %q: %+v", model, r)
		}
	}
	if r := m.Reports()[""]; r.Cache.Misses != 1 {
		t.Errorf("cache %+v", r.Cache)
	}
}
