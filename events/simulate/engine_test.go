package simulate

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events"
)

// kinds names the events of a payload by the first letter after "Block" or "All": S, R, C.
func kinds(t *testing.T, payload []byte) string {
	t.Helper()
	out := ""
	for _, e := range decode(t, payload) {
		out += map[string]string{"BlockStored": "S", "BlockRemoved": "R", "AllBlocksCleared": "C"}[e.kind]
	}
	return out
}

// Invariants 1 and 4: an exact-multiple prompt run twice (engines.md 3, points 1 and 5). vLLM stores the last block again, and each
// copy is removed by itself; SGLang has one.
func TestExactMultipleTwice(t *testing.T) {
	for _, form := range Forms() {
		t.Run(string(form), func(t *testing.T) {
			e := newEngine(t, Config{Form: form, BlockSize: 4, Blocks: 8})
			r := Request{Tokens: span(0, 8)}
			if out := serve(t, e, r); out.CachedTokens != 0 {
				t.Errorf("first: %d cached", out.CachedTokens)
			}
			if out := serve(t, e, r); out.CachedTokens != 4 { // not 8: the last token is always computed
				t.Errorf("second: %d cached, want 4", out.CachedTokens)
			}
			all := payloads(e)
			first := decode(t, all[0])
			stored := first[len(first)-1].hashes
			if e.source.Engine == events.EngineSGLang {
				if len(all) != 1 {
					t.Fatalf("%d batches, want 1: SGLang keeps one copy", len(all))
				}
				return
			}
			again := decode(t, all[1])
			if len(again) != 1 || again[0].kind != "BlockStored" || again[0].parent != stored[0] ||
				!cmp.Equal(again[0].hashes, stored[1:]) || !cmp.Equal(again[0].tokens, span(4, 8)) {
				t.Fatalf("second batch %+v, want the last block of %d again", again, stored)
			}
			serve(t, e, Request{Tokens: span(100, 132)}) // needs every block
			removed := map[uint64]int{}
			for _, ev := range decode(t, payloads(e)[2]) {
				if ev.kind == "BlockRemoved" {
					if len(ev.hashes) != 1 {
						t.Errorf("removal of %d hashes, want one for each block", len(ev.hashes))
					}
					removed[ev.hashes[0]]++
				}
			}
			if want := map[uint64]int{stored[0]: 1, stored[1]: 2}; !cmp.Equal(removed, want) {
				t.Errorf("removed %v, want %v", removed, want)
			}
		})
	}
}

// Salt in the extra keys of the first block only, adapter in every block and in lora_name (engines.md 3, point 4); a
// later store with a parent carries no salt.
func TestNamespacesOnTheWire(t *testing.T) {
	e := newEngine(t, Config{BlockSize: 4, Blocks: 32})
	base := Request{Tokens: span(0, 9)}
	salted, adapted := base, base
	salted.CacheSalt, salted.Output = "tenant-a", 8
	adapted.Adapter, adapted.CacheSalt = "ad1", "tenant-a"
	seen := map[uint64]bool{}
	for _, r := range []Request{base, salted, adapted} {
		if out := serve(t, e, r); out.CachedTokens != 0 {
			t.Errorf("%+v hit %d tokens of another namespace", r, out.CachedTokens)
		}
	}
	var got []string
	for _, p := range payloads(e) {
		ev := decode(t, p)[0]
		got = append(got, fmt.Sprintf("%v %s %v", ev.extras, ev.lora, ev.loraID))
		for _, h := range ev.hashes {
			if seen[h] {
				t.Errorf("hash %d in two namespaces", h)
			}
			seen[h] = true
		}
	}
	want := []string{
		"[<nil> <nil>]  <nil>", "[[tenant-a] <nil>]  <nil>", "[<nil>]  <nil>", "[<nil>]  <nil>", "[[ad1 tenant-a] [ad1]] ad1 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("extra keys, lora_name and lora_id of the batches (-want +got):\n%s", diff)
	}
}

// Invariants 2 and 3: counting what the events say gives, at the end of every request, exactly what the cache holds;
// a store's parent is held, and no batch stores before it removes, but for copies of the same step.
func TestEventsTellTheCache(t *testing.T) {
	for _, form := range Forms() {
		t.Run(string(form), func(t *testing.T) {
			cfg := DefaultTraffic()
			if !formTraits[form].adapters {
				cfg.Adapters = nil
			}
			cfg.MaxTokens, cfg.Conversations = 600, 12
			e := newEngine(t, Config{Form: form, Blocks: 120})
			traffic, held, next := NewTraffic(7, cfg), map[uint64]int{}, uint64(0)
			evicted := 0
			for n := range 300 {
				if n == 200 {
					if err := e.Reset(); err != nil {
						t.Fatal(err)
					}
				}
				serve(t, e, traffic.Next())
				for _, b := range e.stream.since(next) {
					if b.seq != next {
						t.Fatalf("batch %d after %d", b.seq, next)
					}
					next++
					evicted += count(t, held, b.payload)
				}
				if diff := cmp.Diff(contents(e.cache), held); diff != "" {
					t.Fatalf("after request %d (-cache +events):\n%s", n, diff)
				}
			}
			if evicted == 0 {
				t.Error("nothing was evicted")
			}
		})
	}
}

// count applies a batch to the copies held and returns how many it removed.
func count(t *testing.T, held map[uint64]int, payload []byte) (removed int) {
	t.Helper()
	stored := false
	for _, e := range decode(t, payload) {
		switch e.kind {
		case "AllBlocksCleared":
			clear(held)
		case "BlockRemoved":
			if stored {
				t.Fatal("a removal after a store in one batch")
			}
			for _, h := range e.hashes {
				if held[h]--; held[h] < 0 {
					t.Fatalf("%d removed but not held", h)
				} else if held[h] == 0 {
					delete(held, h)
				}
				removed++
			}
		case "BlockStored":
			stored = true
			if len(e.tokens) != len(e.hashes)*e.blockSize {
				t.Fatalf("%d tokens for %d blocks of %d", len(e.tokens), len(e.hashes), e.blockSize)
			}
			if e.parent != nil && held[e.parent.(uint64)] == 0 {
				t.Fatalf("parent %d is not held", e.parent)
			}
			for _, h := range e.hashes {
				held[h]++
			}
		}
	}
	return removed
}

// contents counts the copies in a cache by published hash.
func contents(c cache) map[uint64]int {
	out := map[uint64]int{}
	switch c := c.(type) {
	case *pool:
		for _, b := range c.blocks {
			if b.cached {
				out[vllmWire(b.digest).Lo]++
			}
		}
	case *radix:
		var walk func(n *radixNode)
		walk = func(n *radixNode) {
			for _, d := range n.digests {
				out[n.root.hash.wire(d).Lo]++
			}
			for _, child := range n.children {
				walk(child)
			}
		}
		for _, r := range c.roots {
			walk(&r.radixNode)
		}
	}
	return out
}

// SGLang joins removals in a row into one event, but for another adapter (as recorded); within a node pages go forward.
func TestSGLangRemovalsAreJoined(t *testing.T) {
	e := newEngine(t, Config{Form: FormSGLang, BlockSize: 4, Blocks: 8})
	var stored [][]uint64
	for _, r := range []Request{
		{Tokens: span(0, 8)}, {Tokens: span(100, 108), CacheSalt: "s"}, {Tokens: span(200, 208), Adapter: "a"},
	} {
		serve(t, e, r)
		all := decode(t, payloads(e)[len(stored)])
		stored = append(stored, all[len(all)-1].hashes)
	}
	serve(t, e, Request{Tokens: span(300, 331)})
	got := decode(t, payloads(e)[3])
	want := [][]uint64{append(append([]uint64{}, stored[0]...), stored[1]...), stored[2]}
	if len(got) != 3 || !cmp.Equal([][]uint64{got[0].hashes, got[1].hashes}, want) || got[2].kind != "BlockStored" {
		t.Errorf("batch %+v, want removals %d and a store", got, want)
	}
}

// One batch a step: the prompt's, then one for each output block that fills, less the last token (engines.md 3, point 2).
func TestOutputIsCached(t *testing.T) {
	for _, form := range Forms() {
		t.Run(string(form), func(t *testing.T) {
			e := newEngine(t, Config{Form: form, BlockSize: 4, Blocks: 32})
			prompt := span(0, 6)
			out := serve(t, e, Request{Tokens: prompt, Output: 7}) // 12 tokens computed: 3 blocks
			next := append(append([]uint32{}, prompt...), Generate(prompt, 7)...)
			if got := serve(t, e, Request{Tokens: next}).CachedTokens; got != 12 {
				t.Errorf("continuation of %d tokens: %d cached, want 12", len(next), got)
			}
			want, last := []string{"S", "S", "S"}, uint64(2) // prompt, then tokens 8 and 12
			if e.source.Engine == events.EngineSGLang {
				want, last = []string{"CS", "S"}, 1 // prompt, then the end
			}
			var got []string
			for _, p := range payloads(e)[:last+1] {
				got = append(got, kinds(t, p))
			}
			if !cmp.Equal(got, want) || out.Sequence != last || !out.Published {
				t.Errorf("batches %q up to %d, want %q up to %d", got, out.Sequence, want, last)
			}
		})
	}
}

// engines.md 3, point 3: a vLLM reset leaves with the next step, an SGLang one at once; SGLang's sequence 0 clears.
func TestReset(t *testing.T) {
	for _, form := range Forms() {
		t.Run(string(form), func(t *testing.T) {
			e := newEngine(t, Config{Form: form, BlockSize: 4, Blocks: 32, Rank: 2})
			r := Request{Tokens: span(0, 9)}
			serve(t, e, r)
			if err := e.Reset(); err != nil {
				t.Fatal(err)
			}
			if out := serve(t, e, r); out.CachedTokens != 0 {
				t.Errorf("%d cached after a reset", out.CachedTokens)
			}
			want := []string{"S", "CS"}
			if e.source.Engine == events.EngineSGLang {
				want = []string{"CS", "C", "S"}
			}
			var got []string
			for _, p := range payloads(e) {
				got = append(got, kinds(t, p))
				if rank := decode(t, p)[0].rank; rank != 2 {
					t.Errorf("rank %d, want 2", rank)
				}
			}
			if !cmp.Equal(got, want) {
				t.Errorf("batches %q, want %q", got, want)
			}
		})
	}
}

// A restart is a new life: sequence 0, empty cache and buffer, the same endpoints; vLLM's hashes change, SGLang's do not.
func TestRestart(t *testing.T) {
	for _, form := range Forms() {
		t.Run(string(form), func(t *testing.T) {
			e := newEngine(t, Config{Form: form, BlockSize: 4, Blocks: 32})
			r := Request{Tokens: span(0, 9), Output: 12}
			serve(t, e, r)
			before, source := payloads(e), e.Source()
			if err := e.Restart(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(source, e.Source()); diff != "" {
				t.Errorf("source changed: %s", diff)
			}
			if out := serve(t, e, r); out.CachedTokens != 0 {
				t.Errorf("%d cached after a restart", out.CachedTokens)
			}
			after := payloads(e)
			if len(after) != len(before) {
				t.Fatalf("%d batches in the new life, want %d", len(after), len(before))
			}
			a, b := decode(t, before[1])[0], decode(t, after[1])[0]
			if same := cmp.Equal(a.hashes, b.hashes); same != (e.source.Engine == events.EngineSGLang) {
				t.Errorf("hashes %d, then %d", a.hashes, b.hashes)
			}
			if !cmp.Equal(a.tokens, b.tokens) {
				t.Errorf("tokens %d, then %d", a.tokens, b.tokens)
			}
		})
	}
}

func TestBadRequests(t *testing.T) {
	e := newEngine(t, Config{Form: FormSGLangArray, BlockSize: 4, Blocks: 4})
	for _, r := range []Request{
		{}, {Tokens: span(0, 17)}, {Tokens: span(0, 16), Output: 2}, {Tokens: span(0, 1), Output: -1},
		{Tokens: span(0, 1), Output: 1 << 62}, {Tokens: span(0, 1), Adapter: "a"},
	} {
		if _, err := e.Serve(r); !errors.Is(err, ErrRequest) {
			t.Errorf("%d tokens, output %d, adapter %q: %v, want ErrRequest", len(r.Tokens), r.Output, r.Adapter, err)
		}
	}
	if out := serve(t, e, Request{Tokens: span(0, 16), Output: 1}); out.Sequence != 0 || !out.Published {
		t.Errorf("%+v: a rejected request published something", out)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Serve(Request{Tokens: span(0, 1)}); !errors.Is(err, ErrClosed) {
		t.Errorf("Serve after Close: %v", err)
	}
	if err := errors.Join(e.Reset(), e.Restart()); !errors.Is(err, ErrClosed) {
		t.Errorf("Reset and Restart after Close: %v", err)
	}
}

func TestBadConfigs(t *testing.T) {
	for _, c := range []Config{
		{}, {Worker: "w", Form: "tgi"}, {Worker: "w", Rank: -1}, {Worker: "w", BlockSize: -1}, {Worker: "w", Blocks: 1 << 30},
		{Worker: "w", BufferSteps: -1}, {Worker: "w", Events: "tcp://127.0.0.1"}, {Worker: "w", Replay: "udp://x:1"},
	} {
		if e, err := New(c); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v, want ErrConfig", c, err)
			_ = e.Close()
		}
	}
}
