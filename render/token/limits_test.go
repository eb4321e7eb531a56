package token

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kvscout/kvscout/test/tokenizers"
)

func mustParse(t testing.TB, file string) *Tokenizer {
	t.Helper()
	tk, err := Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return tk
}

// TestTexts: what cannot be encoded is an error, and dst comes back as it was.
func TestTexts(t *testing.T) {
	tk := mustParse(t, small)
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"over MaxText":  {strings.Repeat("a", MaxText+1), ErrTooLong},
		"not utf-8":     {"a\xff", ErrBadText},
		"half a rune":   {"a\xe2\x96", ErrBadText},
		"surrogate":     {"\xed\xa0\x80", ErrBadText},
		"empty":         {"", nil},
		"nothing known": {"xyz", nil}, // the library drops what it does not know where there is no unk_token
	} {
		dst := []uint32{7, 8}
		got, err := tk.Encode(dst, c.text, true)
		if !errors.Is(err, c.want) || !slices.Equal(got, dst) {
			t.Errorf("%s: got %v, %v, want %v, %v", name, got, err, dst, c.want)
		}
	}
	if got, err := tk.Encode([]uint32{7}, "abc\x00ab", false); err != nil || !slices.Equal(got, []uint32{7, 2, 3, 2}) {
		t.Errorf("NUL is a character as others: got %v, %v", got, err)
	}
}

// TestRule14_UnknownToken: the library fails on a text that needs an unk_token which is not in the vocabulary.
func TestRule14_UnknownToken(t *testing.T) {
	tk := mustParse(t, with(t, "model", model(`, "unk_token": "<unk>"`)))
	if got, err := tk.Encode(nil, "aba", false); err != nil || !slices.Equal(got, []uint32{2, 0}) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := tk.Encode(nil, "abz", false); !errors.Is(err, ErrBadFile) || got != nil {
		t.Errorf("got %v, %v, want %v", got, err, ErrBadFile)
	}
}

// TestRule17_Patterns: a pattern that takes too many steps, or too deep a stack, ends with an error and soon.
func TestRule17_Patterns(t *testing.T) {
	for regex, text := range map[string]string{
		`(?:a+)+b|c`:            strings.Repeat("a", 40),
		`(?:a|a)+b|c`:           strings.Repeat("a", 5000),
		`a+a+a+b|c`:             strings.Repeat("a", 100_000),
		`(?:ab)+|a`:             strings.Repeat("ab", MaxText/2),
		`(?=(?:a+)+b)a|[^a]|ac`: strings.Repeat("a", 60),
	} {
		for _, pre := range []string{splitBy(regex), strings.Replace(splitBy(regex), "Isolated", "Removed", 1)} {
			tk := mustParse(t, with(t, "pre_tokenizer", pre))
			began := time.Now()
			got, err := tk.Encode(nil, text, false)
			if !errors.Is(err, ErrTooLong) || got != nil {
				t.Errorf("%s: got %d ids, %v, want %v", regex, len(got), err, ErrTooLong)
			}
			if spent := time.Since(began); spent > 20*time.Second {
				t.Errorf("%s: %v", regex, spent)
			}
		}
	}
}

// TestRule17_Growth: a normalizer cannot make a text much longer.
func TestRule17_Growth(t *testing.T) {
	grow := `{"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaa"}`
	tk := mustParse(t, with(t, "normalizer", `{"type": "Sequence", "normalizers": [`+grow+","+grow+","+grow+`]}`))
	if _, err := tk.Encode(nil, strings.Repeat("a", 1000), false); err != nil {
		t.Error(err)
	}
	if _, err := tk.Encode(nil, strings.Repeat("a", MaxText), false); !errors.Is(err, ErrTooLong) {
		t.Errorf("got %v, want %v", err, ErrTooLong)
	}
}

// bestTime of three runs of f: other work on the machine only adds.
func bestTime(f func()) time.Duration {
	least := time.Duration(1<<63 - 1)
	for range 3 {
		began := time.Now()
		f()
		least = min(least, time.Since(began))
	}
	return least
}

// TestLinear: 16 times the text takes about 16 times as long, also for one word without an end.
func TestLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("measures time")
	}
	for _, name := range []string{"qwen3", "gemma3"} {
		tk := loaded[name](t)
		for _, unit := range []string{"a", " ", "\n", "e\u0301", "日", "1", "!", "▁", "\u0301", "<|im_", "'s"} {
			text := func(bytes int) string { return strings.Repeat(unit, bytes/len(unit)) }
			encode := func(s string) func() {
				return func() {
					if _, err := tk.Encode(nil, s, false); err != nil {
						t.Errorf("%s, %q: %v", name, unit, err)
					}
				}
			}
			// n log n is 20 times, a square 256 times. A busy machine may spoil a measurement, not all of them.
			var short, long time.Duration
			for range 10 {
				short, long = bestTime(encode(text(1<<14))), bestTime(encode(text(1<<18)))
				if long <= 60*short+50*time.Millisecond {
					break
				}
			}
			if long > 60*short+50*time.Millisecond {
				t.Errorf("%s, %q: 16 KB take %v, 256 KB %v", name, unit, short, long)
			}
		}
	}
}

// TestConcurrent encodes the same texts in many goroutines, with a cold cache that they fill together.
func TestConcurrent(t *testing.T) {
	var hostile struct{ Strings []string }
	readZstd(t, "testdata/hostile.json.zst", &hostile)
	texts := hostile.Strings[:1000]
	one, err := Load(tokenizers.Dir(t, "llama2"))
	if err != nil {
		t.Fatal(err)
	}
	want := make([][]uint32, len(texts))
	for i, s := range texts {
		if want[i], err = one.Encode(nil, s, true); err != nil {
			t.Fatal(err)
		}
	}
	shared, err := Load(tokenizers.Dir(t, "llama2"))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() { // ends by itself; all waits
			var ids []uint32
			for k := range texts {
				i := (k + 100*g) % len(texts)
				var err error
				if ids, err = shared.Encode(ids[:0], texts[i], true); err != nil || !slices.Equal(ids, want[i]) {
					t.Errorf("%q: got %v, %v, want %v", texts[i], ids, err, want[i])
				}
			}
		})
	}
	all.Wait()
}

// TestSize: Size is no less than what loading takes, and not much more than that and the cache.
func TestSize(t *testing.T) {
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what pools held
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for _, name := range []string{"deepseek_v3", "llama2"} {
		tables() // shared by all tokenizers
		before := heap()
		tk, err := Load(tokenizers.Dir(t, name))
		if err != nil {
			t.Fatal(err)
		}
		took := heap() - before
		if size := tk.Size(); size < took || size > took+cacheSlots*cacheEntrySize+took/2 {
			t.Errorf("%s: size %d, loading took %d", name, size, took)
		}
		runtime.KeepAlive(tk)
	}
}

// TestAllocations: into a buffer that is long enough, with known words, encoding allocates nothing where nothing is
// rewritten.
func TestAllocations(t *testing.T) {
	tk := loaded["llama3"](t)
	text := strings.Repeat("The quick brown fox doesn't jump over 12345 lazy dogs.\n", 50)
	ids := make([]uint32, 0, 4096)
	n := testing.AllocsPerRun(100, func() {
		if _, err := tk.Encode(ids, text, false); err != nil {
			t.Error(err)
		}
	})
	if n > 8 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkEncode(b *testing.B) {
	text := strings.Repeat("The quick brown fox doesn't jump over 12,345 lazy dogs.\nfunc main() {\n\tfmt.Println(x)\n}\n", 300)[:25_000]
	for _, name := range tokenizers.Names {
		tk := loaded[name](b)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			var ids []uint32
			for b.Loop() {
				var err error
				if ids, err = tk.Encode(ids[:0], text, true); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
