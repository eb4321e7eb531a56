package token

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestCase87_WordsSeenBefore: whatever parts of a text were encoded before, by this tokenizer or by others, with the tokens around
// a text or without, its ids are those of Hugging Face's library.
func TestCase87_WordsSeenBefore(t *testing.T) {
	var corpus struct {
		Strings []string
		IDs     map[string][][]uint32 `json:"ids"`
	}
	readZstd(t, "testdata/corpus.json.zst", &corpus)
	r := rand.New(rand.NewPCG(8, 7))
	for i, s := range corpus.Strings {
		runes := []rune(s)
		for range 2 { // both sides of a seam
			at := r.IntN(len(runes) + 1)
			for name := range corpus.IDs {
				tk := loaded[name](t)
				for _, part := range []string{string(runes[:at]), string(runes[at:])} {
					if _, err := tk.Encode(nil, part, r.IntN(2) == 0); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		for name, want := range corpus.IDs {
			if got, err := loaded[name](t).Encode(nil, s, false); err != nil || !slices.Equal(got, want[i]) {
				t.Errorf("%s, %q: got %v, %v, want %v", name, s, got, err, want[i])
			}
		}
	}
}

// TestCase158_MemoryLevelsOff: the memory that a tokenizer takes is the same after ever more words that it has not seen before.
func TestCase158_MemoryLevelsOff(t *testing.T) {
	tk := loaded["llama3"](t)
	next := 0
	held := func(texts int) int64 {
		var ids []uint32
		for range texts {
			var b strings.Builder
			for range 2000 {
				fmt.Fprintf(&b, " w%xq", next*7919)
				next++
			}
			var err error
			if ids, err = tk.Encode(ids[:0], b.String(), true); err != nil {
				t.Fatal(err)
			}
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what pools held
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	full := held(100) // 200,000 words, three times what the cache has room for
	if more := held(200) - full; more > 4<<20 {
		t.Errorf("400,000 more words took %d bytes", more)
	}
	runtime.KeepAlive(tk)
}
