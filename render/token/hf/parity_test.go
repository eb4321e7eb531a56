//go:build hftokenizers

package hf

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/kvscout/kvscout/render/token"
	"github.com/kvscout/kvscout/test/tokenizers"
)

// engine is what both engines are to those who use them.
type engine interface {
	Encode(dst []uint32, text string, addSpecial bool) ([]uint32, error)
	TokenID(token string) (uint32, bool)
	Size() int64
}

var _ = [2]engine{(*token.Tokenizer)(nil), (*Tokenizer)(nil)}

func readZstd(t testing.TB, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if data, err = z.DecodeAll(data, nil); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// equal compares both engines on texts. Texts with a NUL are the library's to refuse; so are those it finds no ids for,
// where the other must find none either.
func equal(t *testing.T, own *token.Tokenizer, lib *Tokenizer, texts []string) {
	t.Helper()
	bad := 0
	for _, s := range texts {
		for _, special := range []bool{false, true} {
			want, err := lib.Encode(nil, s, special)
			if strings.Contains(s, "\x00") {
				if !errors.Is(err, token.ErrBadText) {
					t.Errorf("%q: got %v, want %v", s, err, token.ErrBadText)
				}
				continue
			}
			if err != nil && !errors.Is(err, ErrEncode) {
				t.Fatalf("%q: %v", s, err)
			}
			got, err := own.Encode(nil, s, special)
			if err != nil || !slices.Equal(got, want) {
				if bad++; bad < 4 {
					t.Errorf("special %v, %q: got %v, %v, the library has %v", special, s, got, err, want)
				}
			}
		}
	}
	if bad > 0 {
		t.Errorf("%d of %d differ", bad, 2*len(texts))
	}
}

// fresh are new random texts in every run; a failure prints what it needs.
func fresh(n int) []string {
	parts := []string{" ", "  ", "\n", "\r\n", "\t", "'s", "'S", "’ll", "'ſ", "the", "The", "TH", "é", "e\u0301", "\u0323", "가", "\u11a8", "日本", "ſ",
		"123", "٣", "½", "!", "...", "/", "_", "▁", "<|im_start|>", "<s>", "<unk>", "\u00a0", "\u200b", "\U0001F600", "a", "B", "ß", "ﬁ", "ǅ"}
	out := make([]string, n)
	for i := range out {
		var s strings.Builder
		for range 1 + rand.IntN(30) {
			if rand.IntN(3) > 0 {
				s.WriteString(parts[rand.IntN(len(parts))])
				continue
			}
			if r := rune(rand.IntN(0x20000)); r > 0 && (r < 0xD800 || r > 0xDFFF) {
				s.WriteRune(r)
			}
		}
		out[i] = s.String()
	}
	return out
}

// TestParity compares both engines on every oracle string and on fresh ones, for the tokenizers of real models.
func TestParity(t *testing.T) {
	var corpus, hostile struct{ Strings []string }
	readZstd(t, "../testdata/corpus.json.zst", &corpus)
	readZstd(t, "../testdata/hostile.json.zst", &hostile)
	if len(corpus.Strings) != 306 || len(hostile.Strings) != 20_000 {
		t.Fatalf("%d and %d strings", len(corpus.Strings), len(hostile.Strings))
	}
	for _, name := range tokenizers.Names {
		t.Run(name, func(t *testing.T) {
			own, err := token.Load(tokenizers.Dir(t, name))
			if err != nil {
				t.Fatal(err)
			}
			lib, err := Load(tokenizers.Dir(t, name))
			if err != nil {
				t.Fatal(err)
			}
			defer lib.Close() //nolint:errcheck // nothing to lose
			equal(t, own, lib, slices.Concat(corpus.Strings, hostile.Strings, fresh(2000)))
			sameIDs(t, own, lib, tokenizers.Dir(t, name))
		})
	}
}

// sameIDs compares TokenID on every token of a file.
func sameIDs(t *testing.T, own *token.Tokenizer, lib *Tokenizer, dir string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Added []struct {
			ID      uint32
			Content string
		} `json:"added_tokens"`
		Model struct{ Vocab map[string]uint32 }
	}
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	want := f.Model.Vocab
	for _, a := range f.Added {
		want[a.Content] = a.ID
	}
	for word, id := range want {
		a, ok := own.TokenID(word)
		b, also := lib.TokenID(word)
		if !ok || !also || a != id || b != id {
			t.Fatalf("%q: got %d %v and %d %v, want %d", word, a, ok, b, also, id)
		}
	}
	for _, word := range []string{"", "no such token, surely", "\xff"} {
		if id, ok := own.TokenID(word); ok {
			t.Errorf("%q has id %d", word, id)
		}
	}
}

// TestParity_Cases compares both engines on small tokenizers of every kind, on the strings of the cases and fresh ones.
func TestParity_Cases(t *testing.T) {
	var all struct {
		Strings []string
		Bases   map[string]map[string]json.RawMessage
		Cases   []struct {
			Name, Base string
			Parts      map[string]json.RawMessage
		}
	}
	readZstd(t, "../testdata/cases.json.zst", &all)
	texts := slices.Concat(all.Strings, fresh(100))
	for _, c := range all.Cases {
		t.Run(c.Name, func(t *testing.T) {
			parts := map[string]json.RawMessage{}
			for _, from := range []map[string]json.RawMessage{all.Bases[c.Base], c.Parts} {
				for k, v := range from {
					parts[k] = v
				}
			}
			data, err := json.Marshal(parts)
			if err != nil {
				t.Fatal(err)
			}
			own, err := token.Parse(data)
			if err != nil {
				t.Fatal(err)
			}
			lib, err := Parse(data)
			if err != nil {
				t.Fatal(err)
			}
			defer lib.Close() //nolint:errcheck // nothing to lose
			equal(t, own, lib, texts)
		})
	}
}
