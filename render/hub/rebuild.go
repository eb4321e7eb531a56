package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kvscout/kvscout/render"
	"github.com/kvscout/kvscout/render/pyval"
)

// build is how a class makes a tokenizer of a vocabulary and merges: the parts of a tokenizer.json, as JSON.
type build struct {
	model           map[string]string
	normalizer, pre string
	// plain: the class puts no special tokens around a text, whatever the file says.
	plain bool
	// specials are the class's own defaults for special tokens that its configuration does not name.
	specials map[string]string
}

// Patterns of Qwen's classes (transformers/models/qwen2, qwen3_5).
const (
	qwen2Pattern  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen35Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

const nfc = `{"type":"NFC"}`

// builds are the classes that are known to build their own, each by its __init__ in transformers 5.19.
var builds = map[string]func(c *config) build{
	"LlamaTokenizer": func(c *config) build {
		scheme := "never"
		if c.truth("add_prefix_space", true) {
			scheme = "first"
			if c.truth("legacy", false) {
				scheme = "always"
			}
		}
		return build{
			model:      bpe("null", true, true),
			normalizer: "null",
			pre:        `{"type":"Metaspace","replacement":"▁","prepend_scheme":` + quote(scheme) + `,"split":false}`,
			specials:   map[string]string{"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"},
		}
	},
	"GemmaTokenizer": func(c *config) build {
		specials := map[string]string{
			"unk_token": "<unk>", "bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>", "mask_token": "<mask>",
		}
		return build{
			model:      bpe(quote(c.special("unk_token", specials)), true, true),
			normalizer: `{"type":"Replace","pattern":{"String":" "},"content":"▁"}`,
			pre:        `{"type":"Split","pattern":{"String":" "},"behavior":"MergedWithPrevious","invert":false}`,
			specials:   specials,
		}
	},
	"Qwen2Tokenizer":   func(c *config) build { return qwen(c, qwen2Pattern) },
	"Qwen3_5Tokenizer": func(c *config) build { return qwen(c, qwen35Pattern) },
	"GPT2Tokenizer": func(c *config) build {
		return build{
			model: bpe("null", false, false), normalizer: "null", pre: byteLevel(c, true),
			specials: map[string]string{"unk_token": endOfText, "bos_token": endOfText, "eos_token": endOfText},
		}
	},
	"GPTNeoXTokenizer": func(c *config) build {
		return build{
			model: bpe("null", false, false), normalizer: nfc, pre: byteLevel(c, true), plain: true,
			specials: map[string]string{"unk_token": endOfText, "bos_token": endOfText, "eos_token": endOfText, "pad_token": "<|padding|>"},
		}
	},
	"CohereTokenizer": func(c *config) build {
		return build{
			model: bpe("null", false, false), normalizer: nfc,
			pre: `{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},` + byteLevel(c, true) + `]}`,
			specials: map[string]string{
				"unk_token": "<UNK>", "bos_token": "<BOS_TOKEN>", "eos_token": "<|END_OF_TURN_TOKEN|>", "pad_token": "<PAD>",
				"cls_token": "<CLS>", "sep_token": "<SEP>", "mask_token": "<MASK_TOKEN>",
			},
		}
	},
}

const endOfText = "<|endoftext|>"

func qwen(c *config, pattern string) build {
	return build{
		model:      bpe("null", false, false),
		normalizer: nfc,
		pre: `{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":` + quote(pattern) +
			`},"behavior":"Isolated","invert":false},` + byteLevel(c, false) + `]}`,
		specials: map[string]string{"unk_token": endOfText, "eos_token": endOfText, "pad_token": endOfText},
	}
}

// bpe are the settings of a model that is made from scratch.
func bpe(unk string, fuse, fallback bool) map[string]string {
	return map[string]string{
		"unk_token": unk, "fuse_unk": fmt.Sprint(fuse), "byte_fallback": fmt.Sprint(fallback), "ignore_merges": "false",
		"dropout": "null", "continuing_subword_prefix": "null", "end_of_word_suffix": "null",
	}
}

func byteLevel(c *config, regex bool) string {
	return fmt.Sprintf(`{"type":"ByteLevel","add_prefix_space":%t,"trim_offsets":true,"use_regex":%t}`, c.truth("add_prefix_space", false), regex)
}

// quote is a text as JSON.
func quote(s string) string {
	text, _ := json.Marshal(s) // a string always can be
	return string(text)
}

// rebuild edits a tokenizer.json into what the class builds. Its other parts stay as they are, byte for byte.
func rebuild(tokenizer []byte, b *build) ([]byte, error) {
	set := map[string]json.RawMessage{
		"normalizer": json.RawMessage(b.normalizer), "pre_tokenizer": json.RawMessage(b.pre),
	}
	if b.plain {
		set["post_processor"] = json.RawMessage("null")
	}
	err := render.EachMember(tokenizer, func(m render.Member) error {
		if m.Name != "model" {
			return nil
		}
		kind := memberText(m.Value, "type")
		if kind != "BPE" && kind != "" {
			return fmt.Errorf("%w: model of type %.40q for a class that builds BPE", ErrUnsupported, kind)
		}
		inner := make(map[string]json.RawMessage)
		for name, value := range b.model {
			inner[name] = json.RawMessage(value)
		}
		var err error
		set["model"], err = render.Edit{Set: inner}.Apply(m.Value)
		return err
	})
	var out []byte
	if err == nil {
		out, err = render.Edit{Set: set}.Apply(tokenizer)
	}
	if errors.Is(err, render.ErrNoObject) {
		err = fmt.Errorf("%w: %s: %w", ErrBadFile, fileTokenizer, err)
	}
	return out, err
}

// memberText is the text of a member of an object; empty if there is none.
func memberText(object []byte, name string) string {
	text := ""
	// What is no object has no members; the tokenizer refuses it.
	_ = render.EachMember(object, func(m render.Member) error {
		if m.Name == name {
			text, _ = render.Text(m.Value)
		}
		return nil
	})
	return text
}

// config is a tokenizer_config.json.
type config struct{ *pyval.Dict }

// truth is bool(value) of a setting; missing and None are the default.
func (c *config) truth(name string, def bool) bool {
	v, ok := c.Get(name)
	if _, none := v.(pyval.None); !ok || none {
		return def
	}
	return pyval.Truth(v)
}

// text is a setting that is a text; empty otherwise.
func (c *config) text(name string) string {
	v, _ := c.Get(name)
	s, _ := v.(string)
	return s
}

// special is the text of a special token: that of the configuration, else the class's default. One that is None there is
// empty.
func (c *config) special(name string, defaults map[string]string) string {
	v, ok := c.Get(name)
	if !ok {
		return defaults[name]
	}
	return tokenText(v)
}

// tokenText is the text of a token, which may be written as an object.
func tokenText(v pyval.Value) string {
	switch v := v.(type) {
	case string:
		return v
	case *pyval.Dict:
		content, _ := v.Get("content")
		s, _ := content.(string)
		return s
	default:
		return ""
	}
}

// knownBuilds names the classes of builds, for errors.
func knownBuilds() string { return strings.Join(slices.Sorted(maps.Keys(builds)), ", ") }
