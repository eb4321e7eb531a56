//go:build hftokenizers

package hf

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kvscout/kvscout/render/token"
)

// wordLevel is a small tokenizer of a kind that package token refuses.
const wordLevel = `{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
	"pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": null, "decoder": null,
	"model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "[UNK]": 2}, "unk_token": "[UNK]"}}`

func parse(t *testing.T, file string) *Tokenizer {
	t.Helper()
	tk, err := Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tk.Close() })
	return tk
}

func TestOtherKinds(t *testing.T) {
	if _, err := token.Parse([]byte(wordLevel)); !errors.Is(err, token.ErrUnsupported) {
		t.Errorf("package token: got %v, want %v", err, token.ErrUnsupported)
	}
	ids, err := parse(t, wordLevel).Encode([]uint32{7}, "a b c", false)
	if err != nil || !slices.Equal(ids, []uint32{7, 0, 1, 2}) {
		t.Errorf("got %v, %v", ids, err)
	}
}

func TestTexts(t *testing.T) {
	tk := parse(t, wordLevel)
	for text, want := range map[string]error{
		"a\x00b":                             token.ErrBadText,
		"a\xff":                              token.ErrBadText,
		" ":                                  ErrEncode,
		strings.Repeat("a", token.MaxText+1): token.ErrTooLong,
		"":                                   nil,
	} {
		ids, err := tk.Encode([]uint32{7}, text, false)
		if !errors.Is(err, want) || !slices.Equal(ids, []uint32{7}) {
			t.Errorf("%.20q: got %v, %v, want %v", text, ids, err, want)
		}
	}
}

func TestFiles(t *testing.T) {
	set := func(part, value string) string {
		var f map[string]json.RawMessage
		if err := json.Unmarshal([]byte(wordLevel), &f); err != nil {
			t.Fatal(err)
		}
		f[part] = json.RawMessage(value)
		out, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	for name, c := range map[string]struct {
		file string
		want error
	}{
		"empty":          {"", token.ErrBadFile},
		"no json":        {"{", token.ErrBadFile},
		"NUL":            {wordLevel + "\x00", token.ErrUnsupported},
		"escaped NUL":    {strings.Replace(wordLevel, `"b"`, `"\u0000"`, 1), token.ErrUnsupported},
		"not utf-8":      {strings.Replace(wordLevel, `"b"`, "\"\xff\"", 1), token.ErrBadFile},
		"too long":       {wordLevel + strings.Repeat(" ", token.MaxFile), token.ErrUnsupported},
		"unknown part":   {set("normalizer", `{"type": "Magic"}`), token.ErrBadFile},
		"charsmap":       {set("normalizer", `{"type": "Precompiled", "precompiled_charsmap": "!"}`), token.ErrBadFile},
		"short charsmap": {set("normalizer", `{"type": "Sequence", "normalizers": [{"type": "Precompiled", "precompiled_charsmap": "/////w=="}]}`), token.ErrBadFile},
		"no vocab":       {set("model", `{"type": "WordLevel"}`), token.ErrBadFile},
	} {
		if tk, err := Parse([]byte(c.file)); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, %v, want %v", name, tk, err, c.want)
		}
	}
	if _, err := Load(t.TempDir()); !errors.Is(err, token.ErrBadFile) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte(wordLevel), 0o600); err != nil {
		t.Fatal(err)
	}
	tk, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if tk.Size() <= 0 {
		t.Errorf("size %d", tk.Size())
	}
	if err := tk.Close(); err != nil {
		t.Error(err)
	}
	// Truncation to one token and padding to five: neither is applied.
	for part, value := range map[string]string{
		"truncation": `{"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}`,
		"padding":    `{"strategy": {"Fixed": 5}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "a"}`,
	} {
		ids, err := parse(t, set(part, value)).Encode(nil, "a b", false)
		if err != nil || !slices.Equal(ids, []uint32{0, 1}) {
			t.Errorf("%s: got %v, %v", part, ids, err)
		}
	}
}

// TestClose closes while others encode: each call gives the right ids or ErrClosed.
func TestClose(t *testing.T) {
	tk := parse(t, wordLevel)
	var all sync.WaitGroup
	started := make(chan struct{}, 4)
	for range 4 {
		all.Go(func() { // ends by itself once the tokenizer is closed; all waits
			for first := true; ; first = false {
				ids, err := tk.Encode(nil, "a b", false)
				if first {
					started <- struct{}{}
				}
				if errors.Is(err, ErrClosed) {
					return
				}
				if err != nil || !slices.Equal(ids, []uint32{0, 1}) {
					t.Errorf("got %v, %v", ids, err)
					return
				}
			}
		})
	}
	for range 4 {
		<-started
	}
	if err := tk.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
	if err := tk.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}
