package token

import (
	"encoding/json"
	"path/filepath"
	"strings"
)

// Rules say who makes the tokenizer out of the files of a model.
type Rules uint8

const (
	// RulesFile: Hugging Face's tokenizers library from tokenizer.json alone. Load and Parse do this, and so do
	// transformers 4 and SGLang's and TensorRT-LLM's renderers.
	RulesFile Rules = iota
	// RulesTransformers5: transformers 5 by the tokenizer_class of tokenizer_config.json, as vLLM 0.32 does. The class
	// LlamaTokenizer takes vocabulary, merges, added tokens and post-processor of the file but brings normalizer and
	// pre-tokenizer itself, also for byte-level files, whose spaces are then lost (later releases of transformers, as
	// 5.24, take byte-level files as they are). Other known classes make what their file says; unknown ones are refused.
	RulesTransformers5
)

// configName is the file that names the class.
const configName = "tokenizer_config.json"

// maxConfig bounds it, in bytes; Gemma 3's has 1.2 MB.
const maxConfig = 16 << 20

// LoadAs is Load by other rules. RulesTransformers5 also needs dir/tokenizer_config.json.
func LoadAs(dir string, rules Rules) (*Tokenizer, error) {
	if rules == RulesFile {
		return Load(dir)
	}
	data, err := readBounded(filepath.Join(dir, configName), maxConfig)
	if err != nil {
		return nil, err
	}
	c, err := parseConfig(data)
	if err != nil {
		return nil, err
	}
	if data, err = readBounded(filepath.Join(dir, fileName), MaxFile); err != nil {
		return nil, err
	}
	f, m, err := readFile(data)
	if err != nil {
		return nil, err
	}
	if err := c.apply(f, m); err != nil {
		return nil, err
	}
	return assemble(f, m)
}

// config is what RulesTransformers5 reads of a tokenizer_config.json.
type config struct {
	Class     string          `json:"tokenizer_class"`
	AutoMap   json.RawMessage `json:"auto_map"`
	Legacy    *bool           `json:"legacy"`
	AddPrefix *bool           `json:"add_prefix_space"`
	Split     bool            `json:"split_special_tokens"`
	Added     map[string]struct {
		Content    string `json:"content"`
		SingleWord bool   `json:"single_word"`
		LeftStrip  bool   `json:"lstrip"`
		RightStrip bool   `json:"rstrip"`
		Normalized bool   `json:"normalized"`
		Special    bool   `json:"special"`
	} `json:"added_tokens_decoder"`
}

func parseConfig(data []byte) (*config, error) {
	c := &config{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, badJSON(err)
	}
	if len(c.AutoMap) > 0 && string(c.AutoMap) != "null" {
		return nil, unsupported("%s has auto_map: the tokenizer is code of the model", configName)
	}
	if c.Split {
		return nil, unsupported("%s has split_special_tokens", configName)
	}
	return c, nil
}

// apply changes f and m to what the class makes of them.
func (c *config) apply(f *file, m *modelFile) error {
	have := make(map[string]addedToken, len(f.added))
	for _, t := range f.added {
		t.ID = 0
		have[t.Content] = t
	}
	for _, t := range c.Added { // transformers adds what the file lacks, or has with other flags
		if have[t.Content] != (addedToken{0, t.Content, t.SingleWord, t.LeftStrip, t.RightStrip, t.Normalized, t.Special}) {
			return unsupported("added token %.40q of %s is not the one of %s", t.Content, configName, fileName)
		}
	}
	switch class := strings.TrimSuffix(c.Class, "Fast"); class {
	case "PreTrainedTokenizer", "TokenizersBackend":
		return nil
	case "LlamaTokenizer":
		return c.llama(f, m)
	case "Qwen2Tokenizer":
		return c.same(f, class, qwen2Normalizer, qwen2PreTokenizer)
	case "GemmaTokenizer":
		return c.same(f, class, gemmaNormalizer, gemmaPreTokenizer)
	default:
		return unsupported("tokenizer_class %.40q", c.Class)
	}
}

// llama is the constructor of transformers 5's LlamaTokenizer (models/llama/tokenization_llama.py).
func (c *config) llama(f *file, m *modelFile) error {
	scheme := "first"
	if c.Legacy != nil && *c.Legacy {
		scheme = "always"
	}
	if c.AddPrefix != nil && !*c.AddPrefix {
		scheme = "never"
	}
	f.normalizer = nil
	f.pre = json.RawMessage(`{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "` + scheme + `", "split": false}`)
	yes, no := true, false
	m.FuseUnknown, m.ByteFallback, m.IgnoreMerges, m.Unknown = &yes, &yes, &no, nil
	return nil
}

// What the classes of Qwen and Gemma bring themselves.
const (
	qwen2Normalizer   = `{"type": "NFC"}`
	qwen2PreTokenizer = `{"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}, "behavior": "Isolated", "invert": false}, {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}]}`
	gemmaNormalizer   = `{"type": "Replace", "pattern": {"String": " "}, "content": "▁"}`
	gemmaPreTokenizer = `{"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": false}`
)

// same errs unless the file says what the class brings.
func (c *config) same(f *file, class, normalizer, pre string) error {
	for _, pair := range [][2]string{{string(f.normalizer), normalizer}, {string(f.pre), pre}} {
		got, err := canonical(pair[0])
		if err != nil {
			return err
		}
		if want, err := canonical(pair[1]); err != nil || got != want {
			return unsupported("tokenizer_class %q with a file of another kind", class)
		}
	}
	return nil
}

// canonical is JSON with sorted keys and no white space.
func canonical(s string) (string, error) {
	var v any
	if s == "" {
		s = "null"
	}
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		return "", badJSON(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return "", badJSON(err)
	}
	return string(out), nil
}
