package token

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// small is a tokenizer.json of a few tokens; tests replace its parts.
const small = `{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
	"pre_tokenizer": null, "post_processor": null, "decoder": null,
	"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "c": 3}, "merges": [["a", "b"]]}}`

// with is small with parts replaced: name, value, name, value.
func with(t testing.TB, pairs ...string) string {
	t.Helper()
	var f map[string]json.RawMessage
	if err := json.Unmarshal([]byte(small), &f); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(pairs); i += 2 {
		f[pairs[i]] = json.RawMessage(pairs[i+1])
	}
	out, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func splitBy(regex string) string {
	quoted, _ := json.Marshal(regex)
	return `{"type": "Split", "pattern": {"Regex": ` + string(quoted) + `}, "behavior": "Isolated", "invert": false}`
}

func model(rest string) string {
	return `{"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]` + rest + `}`
}

// refusedFiles have one thing each that cannot be exact: a part of small, what the error is and what it must name.
var refusedFiles = map[string]struct {
	part, value string
	want        error
	names       string
}{
	"WordPiece":             {"model", `{"type": "WordPiece", "vocab": {}, "unk_token": "x"}`, ErrUnsupported, "WordPiece"},
	"Unigram":               {"model", `{"type": "Unigram", "vocab": [["a", 0.5]]}`, ErrUnsupported, "Unigram"},
	"dropout":               {"model", model(`, "dropout": 0.1`), ErrUnsupported, "dropout 0.1"},
	"prefix":                {"model", model(`, "continuing_subword_prefix": "##"`), ErrUnsupported, "continuing_subword_prefix"},
	"suffix":                {"model", model(`, "end_of_word_suffix": "</w>"`), ErrUnsupported, "end_of_word_suffix"},
	"new model field":       {"model", model(`, "superbpe": true`), ErrUnsupported, "superbpe"},
	"id twice":              {"model", `{"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []}`, ErrUnsupported, "id 0"},
	"word twice":            {"model", `{"type": "BPE", "vocab": {"a": 0, "a": 1}, "merges": []}`, ErrUnsupported, `"a"`},
	"huge id":               {"model", `{"type": "BPE", "vocab": {"a": 4000000000}, "merges": []}`, ErrBadFile, `"a"`},
	"negative id":           {"model", `{"type": "BPE", "vocab": {"a": -1}, "merges": []}`, ErrBadFile, `"a"`},
	"id with a fraction":    {"model", `{"type": "BPE", "vocab": {"a": 1.5}, "merges": []}`, ErrBadFile, `"a"`},
	"vocab is a list":       {"model", `{"type": "BPE", "vocab": ["a"], "merges": []}`, ErrBadFile, "'{'"},
	"no merges":             {"model", `{"type": "BPE", "vocab": {"a": 0}}`, ErrBadFile, "merges"},
	"merge of three":        {"model", `{"type": "BPE", "vocab": {"a": 0}, "merges": ["a a a"]}`, ErrBadFile, "a a a"},
	"pair of three":         {"model", `{"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "a", "a"]]}`, ErrBadFile, "merges"},
	"pair of one":           {"model", `{"type": "BPE", "vocab": {"a": 0}, "merges": [["a"]]}`, ErrBadFile, "merges"},
	"merges of two forms":   {"model", `{"type": "BPE", "vocab": {"a": 0, "aa": 1}, "merges": [["a", "a"], "a a"]}`, ErrBadFile, "two forms"},
	"merge out of vocab":    {"model", `{"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": [["a", "b"]]}`, ErrBadFile, `"ab"`},
	"no type":               {"normalizer", `{"strip_left": true, "strip_right": true}`, ErrUnsupported, "strip_left"},
	"no type of post":       {"post_processor", `{"sep": ["a", 0], "cls": ["b", 1]}`, ErrUnsupported, "sep"},
	"version":               {"version", `"2.0"`, ErrBadFile, "2.0"},
	"Lowercase":             {"normalizer", `{"type": "Lowercase"}`, ErrUnsupported, "Lowercase"},
	"Precompiled":           {"normalizer", `{"type": "Precompiled", "precompiled_charsmap": ""}`, ErrUnsupported, "Precompiled"},
	"unknown normalizer":    {"normalizer", `{"type": "Sequence", "normalizers": [{"type": "Magic"}]}`, ErrUnsupported, "Magic"},
	"field of NFC":          {"normalizer", `{"type": "NFC", "version": 17}`, ErrUnsupported, "version"},
	"long replacement":      {"normalizer", `{"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaaaaaaaaaaa"}`, ErrUnsupported, "Replace"},
	"both patterns":         {"normalizer", `{"type": "Replace", "pattern": {"String": "a", "Regex": "a"}, "content": "b"}`, ErrUnsupported, "pattern"},
	"unknown pre":           {"pre_tokenizer", `{"type": "BertPreTokenizer"}`, ErrUnsupported, "BertPreTokenizer"},
	"field of Split":        {"pre_tokenizer", `{"type": "Split", "pattern": {"String": "a"}, "behavior": "Isolated", "invert": false, "limit": 1}`, ErrUnsupported, "limit"},
	"behavior":              {"pre_tokenizer", `{"type": "Split", "pattern": {"String": "a"}, "behavior": "Eaten", "invert": false}`, ErrBadFile, "Eaten"},
	"empty text":            {"pre_tokenizer", `{"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated", "invert": false}`, ErrUnsupported, "pattern"},
	"Metaspace scheme":      {"pre_tokenizer", `{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "last"}`, ErrBadFile, "last"},
	"Metaspace text":        {"pre_tokenizer", `{"type": "Metaspace", "replacement": "▁▁"}`, ErrBadFile, "▁▁"},
	"Metaspace contradicts": {"pre_tokenizer", `{"type": "Metaspace", "replacement": "▁", "add_prefix_space": false, "prepend_scheme": "always"}`, ErrBadFile, "always"},
	"unknown post":          {"post_processor", `{"type": "Magic"}`, ErrUnsupported, "Magic"},
	"two templates":         {"post_processor", `{"type": "Sequence", "processors": [{"type": "BertProcessing", "sep": ["a", 0], "cls": ["b", 1]}, {"type": "BertProcessing", "sep": ["a", 0], "cls": ["b", 1]}]}`, ErrUnsupported, "two"},
	"template without":      {"post_processor", `{"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x", "type_id": 0}}], "pair": [], "special_tokens": {}}`, ErrBadFile, `"x"`},
	"second text":           {"post_processor", `{"type": "TemplateProcessing", "single": [{"Sequence": {"id": "B", "type_id": 0}}], "pair": [], "special_tokens": {}}`, ErrUnsupported, "template"},
	"added twice":           {"added_tokens", `[{"id": 3, "content": "x"}, {"id": 4, "content": "x", "lstrip": true}]`, ErrUnsupported, `"x"`},
	"lone surrogate":        {"normalizer", `{"type": "Prepend", "prepend": "\ud800"}`, ErrBadFile, "surrogate"},
}

// TestRule14_Refused: the error is of the right kind and names the cause.
func TestRule14_Refused(t *testing.T) {
	for name, c := range refusedFiles {
		t.Run(name, func(t *testing.T) {
			file := with(t, c.part, c.value)
			if name == "lone surrogate" {
				file = strings.Replace(file, "�", `\ud800`, 1) // Marshal does not keep it
			}
			tk, err := Parse([]byte(file))
			if !errors.Is(err, c.want) || tk != nil {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if !strings.Contains(err.Error(), c.names) {
				t.Errorf("%q does not name %q", err, c.names)
			}
		})
	}
}

// TestRule14_RefusedPatterns: constructs whose meaning is not reproduced.
func TestRule14_RefusedPatterns(t *testing.T) {
	for _, regex := range []string{
		``, `a*`, `a|`, `(?:)`, `a?`, `a|b*`, // may match nothing
		`^a`, `$`, `(?:$)+a`, `\ba`, `\Aa`, `a\z`, `\Ga`, `(a)\1`, `(?<n>a)\k<n>`, `\h`, `\R`, `\X`, `\K`, `\101`, `\Qa`, `\cA`,
		`a+?`, `a*?b`, `a??b`, `a{1,2}?`, `a{2}++`, `a{1,2}+?`, `a++?`, `a**`, `a{,2}`, `a{x}`, `a{`, `a{2,1}`, `a{0}b`, `{1}`, `*a`,
		`[`, `[]`, `[]a]`, `[^]a]`, `[[:alpha:]]`, `[a`, `[\w-z]`, `[z-a]`, `[a-\d]`, `[a-b-c]`, `[\b]`, `a]`,
		`(a`, `a)`, `(?#c)a`, `(?=a)`, `(?m:a)`, `(?x)a`, `a(?i)b`, `(?<=ab)c`, `(?<!a|b)c`,
		`\p{Nope}`, `\pL`, `\p`, `\p{L`, `\p{}`, `\x{110000}`, `\xE4`, `\x4`, `\uD800`, `\u12`, `\`, `(?i:ss)`, `(?i:st)`, `(?i:ffi)`,
		`(?i:é)`, `(?i:\p{Lu})`, `(?i:[^a])`, `(?i:ß)`, `(?:a?)+b`, `(?:ab){65}`,
		strings.Repeat("(", 40) + "a" + strings.Repeat(")", 40), strings.Repeat("a", maxPattern+1),
		strings.Repeat("(?:(?:(?:ab){60}){60}){60}", 1),
	} {
		_, err := Parse([]byte(with(t, "pre_tokenizer", splitBy(regex))))
		if !errors.Is(err, ErrUnsupported) {
			t.Errorf("%.60q: got %v, want %v", regex, err, ErrUnsupported)
		}
	}
}

func TestBadFiles(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want error
	}{
		"nothing":       {"", ErrBadFile},
		"half":          {small[:100], ErrBadFile},
		"no object":     {"[]", ErrBadFile},
		"no model":      {`{"version": "1.0"}`, ErrBadFile},
		"not utf-8":     {strings.Replace(small, `"c"`, "\"\xff\"", 1), ErrBadFile},
		"too long":      {small + strings.Repeat(" ", MaxFile), ErrUnsupported},
		"model is text": {with(t, "model", `"BPE"`), ErrBadFile},
		"white space":   {strings.ReplaceAll(small, "null", " null \n\t"), nil},
		"type is none":  {with(t, "normalizer", `{"type": 1}`), ErrBadFile},
	} {
		if _, err := Parse([]byte(c.file)); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if _, err := Load(t.TempDir()); !errors.Is(err, ErrBadFile) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, fileName), []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err != nil {
		t.Error(err)
	}
}
