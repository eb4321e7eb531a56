package token

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kvscout/kvscout/test/tokenizers"
)

// goldenBody is what the golden requests used here say, and nothing else.
type goldenBody struct {
	Model    string  `json:"model"`
	Prompt   *string `json:"prompt"`
	Max      int     `json:"max_tokens"`
	Special  *bool   `json:"add_special_tokens"`
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
}

// deepseekChat is DeepSeek V3's template for texts of systems, users and assistants.
func deepseekChat(b *goldenBody) (string, bool) {
	system, rest := []string(nil), ""
	for _, m := range b.Messages {
		switch m.Role {
		case "system":
			system = append(system, m.Content)
		case "user":
			rest += "<｜User｜>" + m.Content
		case "assistant":
			rest += "<｜Assistant｜>" + m.Content + "<｜end▁of▁sentence｜>"
		default:
			return "", false
		}
	}
	return "<｜begin▁of▁sentence｜>" + strings.Join(system, "\n\n") + rest + "<｜Assistant｜>", true
}

// TestTransformers5 compares with ids that vLLM 0.32 gave (test/testdata/render): completions of three tokenizers, and
// DeepSeek's chats, whose spaces transformers 5 loses.
func TestTransformers5(t *testing.T) {
	for name, least := range map[string]int{"qwen3": 4, "llama3_1": 4, "deepseek_v3": 15} {
		t.Run(name, func(t *testing.T) {
			tk, err := LoadAs(tokenizers.Dir(t, name), RulesTransformers5)
			if err != nil {
				t.Fatal(err)
			}
			f, err := os.Open("../../test/testdata/render/render-vllm-0.32-" + name + ".jsonl")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close() //nolint:errcheck // read only
			compared := 0
			lines := bufio.NewScanner(f)
			lines.Buffer(nil, 1<<20)
			for lines.Scan() {
				var g struct {
					Name, Body string
					Status     int
					IDs        [][]uint32 `json:"token_ids"`
				}
				if err := json.Unmarshal(lines.Bytes(), &g); err != nil {
					t.Fatal(err)
				}
				text, special, ok := goldenText(g.Body, name)
				if g.Status != 200 || !ok {
					continue
				}
				compared++
				got, err := tk.Encode(nil, text, special)
				if err != nil || !slices.Equal(got, g.IDs[0]) {
					t.Errorf("%s: got %v, %v, want %v", g.Name, got, err, g.IDs[0])
				}
			}
			if err := lines.Err(); err != nil || compared < least {
				t.Errorf("%d compared, want %d at least: %v", compared, least, err)
			}
		})
	}
}

// goldenText is the text that a golden request is for, if it is one of those used here.
func goldenText(body, name string) (text string, special, ok bool) {
	var b goldenBody
	d := json.NewDecoder(strings.NewReader(body))
	d.DisallowUnknownFields()
	if d.Decode(&b) != nil {
		return "", false, false
	}
	if b.Prompt != nil {
		return *b.Prompt, b.Special == nil || *b.Special, true
	}
	if name != "deepseek_v3" || b.Messages == nil {
		return "", false, false
	}
	text, ok = deepseekChat(&b)
	return text, false, ok
}

func TestTransformers5_Refused(t *testing.T) {
	added := `[{"id": 3, "content": "x", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}]`
	for name, c := range map[string]struct {
		config string
		want   error
	}{
		"class":      {`{"tokenizer_class": "XLNetTokenizer"}`, ErrUnsupported},
		"no class":   {`{}`, ErrUnsupported},
		"code":       {`{"tokenizer_class": "PreTrainedTokenizerFast", "auto_map": {"AutoTokenizer": ["x.X", null]}}`, ErrUnsupported},
		"split":      {`{"tokenizer_class": "PreTrainedTokenizerFast", "split_special_tokens": true}`, ErrUnsupported},
		"new token":  {`{"tokenizer_class": "PreTrainedTokenizerFast", "added_tokens_decoder": {"4": {"content": "y"}}}`, ErrUnsupported},
		"other flag": {`{"tokenizer_class": "PreTrainedTokenizerFast", "added_tokens_decoder": {"3": {"content": "x", "special": true, "lstrip": true}}}`, ErrUnsupported},
		"other pipe": {`{"tokenizer_class": "Qwen2TokenizerFast"}`, ErrUnsupported},
		"gemma":      {`{"tokenizer_class": "GemmaTokenizer"}`, ErrUnsupported},
		"no json":    {`{`, ErrBadFile},
		"as it is":   {`{"tokenizer_class": "PreTrainedTokenizerFast", "added_tokens_decoder": {"3": {"content": "x", "special": true}}}`, nil},
	} {
		dir := t.TempDir()
		for file, content := range map[string]string{configName: c.config, fileName: with(t, "added_tokens", added)} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := LoadAs(dir, RulesTransformers5); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		if _, err := LoadAs(dir, RulesFile); err != nil {
			t.Errorf("%s, by the file: %v", name, err)
		}
	}
	if _, err := LoadAs(t.TempDir(), RulesTransformers5); !errors.Is(err, ErrBadFile) {
		t.Errorf("no files: got %v", err)
	}
}
