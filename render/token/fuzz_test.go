package token

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kvscout/kvscout/test/tokenizers"
)

// FuzzEncode: Llama 3's tokenizer writes every text as tokens whose bytes are the text. It has all bytes and changes
// nothing, so this holds for any text.
func FuzzEncode(f *testing.F) {
	dir := tokenizers.Dir(f, "llama3")
	tk, err := Load(dir)
	if err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		f.Fatal(err)
	}
	var file struct {
		Added []addedToken `json:"added_tokens"`
		Model struct{ Vocab map[string]uint32 }
	}
	if err := json.Unmarshal(data, &file); err != nil {
		f.Fatal(err)
	}
	bytesOf := map[uint32][]byte{}
	for word, id := range file.Model.Vocab {
		raw, ok := fromByteLetters(nil, word)
		if !ok {
			f.Fatalf("%q is not of bytes", word)
		}
		bytesOf[id] = raw
	}
	for _, a := range file.Added {
		bytesOf[a.ID] = []byte(a.Content)
	}
	for _, s := range []string{"", "Hello, world's  \n\n x", "<|eot_id|>\r\n١٢٣ é e\u0301 日本\x00", "a\xff", strings.Repeat("a ", 200)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ids, err := tk.Encode(nil, s, false)
		if !utf8.ValidString(s) {
			if !errors.Is(err, ErrBadText) {
				t.Fatalf("got %v, want %v", err, ErrBadText)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		for _, id := range ids {
			got = append(got, bytesOf[id]...)
		}
		if string(got) != s {
			t.Fatalf("%q became %q", s, got)
		}
		if again, err := tk.Encode(nil, s, false); err != nil || !slices.Equal(again, ids) {
			t.Fatalf("got %v, %v, before %v", again, err, ids)
		}
	})
}

// FuzzParse: no file makes this panic or run away, and what loads encodes or errs.
func FuzzParse(f *testing.F) {
	var all parityCases
	readZstd(f, "testdata/cases.json.zst", &all)
	f.Add([]byte(small))
	for i, c := range all.Cases {
		if i%8 != 0 {
			continue
		}
		var file map[string]json.RawMessage
		if err := json.Unmarshal(all.file(f, c), &file); err != nil {
			f.Fatal(err)
		}
		file["model"] = json.RawMessage(model("")) // a short one, that more is tried
		data, err := json.Marshal(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tk, err := Parse(data)
		if err != nil {
			if !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrBadFile) {
				t.Fatalf("%v is of no kind", err)
			}
			return
		}
		if tk.Size() <= 0 {
			t.Error("no size")
		}
		for _, s := range []string{"", "a", "ab cab  \n", "é▁ <a>x", strings.Repeat("ab", 500), string(bytes.ToValidUTF8(data[:min(len(data), 2000)], nil))} {
			if _, err := tk.Encode(nil, s, true); err != nil && !errors.Is(err, ErrTooLong) && !errors.Is(err, ErrBadFile) {
				t.Fatalf("%q: %v", s, err)
			}
		}
	})
}

// plainPattern are the patterns that Go's regexp reads in the same way: no escapes, nested classes, intersections or
// intervals. Its matching is leftmost-first as Oniguruma's is.
var plainPattern = regexp.MustCompile(`^(?:[a-d .|()?*+ix:!-]|\[\^?[a-d!-]+\])*$`)

// FuzzPattern compares matches with those of Go's regexp on patterns that both read alike.
func FuzzPattern(f *testing.F) {
	for _, p := range []string{`a+b|a`, `(?:ab|a)(?:c|bcd)*`, `[^a]?b+|a`, `(?i:ab?)+c?`, `.+b`, `(a|ab)(c|bcd)(d*)`, `[a-c]+d|[b-d]`, `((a|b)+c)+|d`, `a?a?a?aaa`} {
		f.Add(p, "abcbcdd aabBCA!\nabab-abcd")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if !plainPattern.MatchString(pattern) || len(text) > 200 || len(pattern) > 60 {
			return
		}
		for _, r := range text {
			if r >= utf8.RuneSelf { // other code points fold and classify differently
				return
			}
		}
		p, err := compilePattern(pattern)
		if err != nil {
			return
		}
		want, err := regexp.Compile(pattern)
		if err != nil {
			return // possessive quantifiers and the like
		}
		m := newMatcher(len(text))
		for at := 0; at < len(text); {
			start, end, ok := m.find(p, text, at)
			if m.fuel < 0 {
				return
			}
			loc := want.FindStringIndex(text[at:])
			if ok != (loc != nil) || ok && (start != at+loc[0] || end != at+loc[1]) {
				t.Fatalf("%q on %q from %d: got %d %d %v, want %v", pattern, text, at, start, end, ok, loc)
			}
			if !ok {
				return
			}
			at = end
		}
	})
}
