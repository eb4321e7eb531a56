package token

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"sync"
	"testing"

	"github.com/kvscout/kvscout/test/tokenizers"
)

// loaded are the tokenizers of real models, each loaded once.
var loaded = map[string]func(testing.TB) *Tokenizer{}

func init() {
	for _, name := range tokenizers.Names {
		var once sync.Once
		var tk *Tokenizer
		loaded[name] = func(t testing.TB) *Tokenizer {
			t.Helper()
			once.Do(func() {
				var err error
				if tk, err = Load(tokenizers.Dir(t, name)); err != nil {
					t.Error(err)
				}
			})
			if tk == nil {
				t.Fatalf("%s is not loaded", name)
			}
			return tk
		}
	}
}

// TestCorpus: 306 strings (unicode, code, white space, special tokens, random) by six real tokenizers, against ids of
// Hugging Face's library 0.22.2.
func TestCorpus(t *testing.T) {
	var corpus struct {
		Strings []string
		IDs     map[string][][]uint32 `json:"ids"`
	}
	readZstd(t, "testdata/corpus.json.zst", &corpus)
	if len(corpus.IDs) != 6 || len(corpus.Strings) != 306 {
		t.Fatalf("%d tokenizers, %d strings", len(corpus.IDs), len(corpus.Strings))
	}
	for name, want := range corpus.IDs {
		t.Run(name, func(t *testing.T) {
			tk := loaded[name](t)
			for i, s := range corpus.Strings {
				got, err := tk.Encode(nil, s, false)
				if err != nil || !slices.Equal(got, want[i]) {
					t.Errorf("%q: got %v, %v, want %v", s, got, err, want[i])
				}
			}
		})
	}
}

// TestHostile: 20,000 random hostile strings by seven real tokenizers (testdata/hostile.py).
func TestHostile(t *testing.T) {
	var hostile struct {
		Strings []string
		Digests map[string][]uint32
	}
	readZstd(t, "testdata/hostile.json.zst", &hostile)
	if len(hostile.Digests) != len(tokenizers.Names) || len(hostile.Strings) != 20_000 {
		t.Fatalf("%d tokenizers, %d strings", len(hostile.Digests), len(hostile.Strings))
	}
	if testing.Short() { // under the race detector
		hostile.Strings = hostile.Strings[:2000]
	}
	for name, want := range hostile.Digests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tk := loaded[name](t)
			var ids []uint32
			var raw []byte
			bad := 0
			for i, s := range hostile.Strings {
				var err error
				if ids, err = tk.Encode(ids[:0], s, true); err != nil {
					t.Fatalf("%q: %v", s, err)
				}
				raw = raw[:0]
				for _, id := range ids {
					raw = binary.LittleEndian.AppendUint32(raw, id)
				}
				if crc32.ChecksumIEEE(raw) != want[i] {
					if bad++; bad < 4 {
						t.Errorf("%q: got %v, whose digest is another", s, ids)
					}
				}
			}
			if bad > 0 {
				t.Errorf("%d of %d differ", bad, len(hostile.Strings))
			}
		})
	}
}
