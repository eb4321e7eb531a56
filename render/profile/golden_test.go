package profile_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/kvscout/kvscout/render/profile"
	"github.com/kvscout/kvscout/render/pyval/pyvaltest"
)

// golden is a body that was sent to a real vLLM 0.32, and its answer.
type golden struct {
	Name     string     `json:"name"`
	Path     string     `json:"path"`
	Body     *string    `json:"body"`
	Base64   string     `json:"body_base64"`
	Status   int        `json:"status"`
	TokenIDs [][]uint32 `json:"token_ids"`
}

func goldens(t *testing.T, model string) []golden {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join("testdata", "goldens", "render-vllm-0.32-"+model+".jsonl.zst"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := zstd.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var out []golden
	lines := bufio.NewScanner(d)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var g golden
		if err := json.Unmarshal(lines.Bytes(), &g); err != nil {
			t.Fatal(err)
		}
		out = append(out, g)
	}
	return out
}

// TestVLLMGoldens takes every body of a real engine, as far as that goes without its tokenizer: what the engine refused
// is refused, what it rendered is not, ids in a body are the engine's, and texts are as many as the engine's prompts.
func TestVLLMGoldens(t *testing.T) {
	o := pyvaltest.Read(t, filepath.Join("..", "chat", "testdata", "oracle", "goldens.json.zst"))
	for _, model := range []string{"qwen3", "llama3_1", "deepseek_v3"} {
		def := dict(dict(o, "templates"), "npm-"+model)
		tokens := map[string]string{}
		for _, e := range dict(def, "vars").Entries() {
			tokens[e.Key.(string)] = e.Value.(string)
		}
		config := profile.ModelConfig{
			Names: []string{"tiny-" + model}, Template: parse(t, str(def, "src")), SpecialTokens: tokens, MaxModelLen: 2048, ToolParser: true,
		}
		all := goldens(t, model)
		for _, g := range all {
			checkGolden(t, model, g, config)
		}
		if len(all) != 94 {
			t.Errorf("%s: %d goldens, want 94", model, len(all))
		}
	}
}

func checkGolden(t *testing.T, model string, g golden, config profile.ModelConfig) {
	t.Helper()
	var body []byte
	if g.Body != nil {
		body = []byte(*g.Body)
	} else if b, err := base64.StdEncoding.DecodeString(g.Base64); err == nil {
		body = b
	}
	var p profile.Prompt
	var err error
	if g.Path == "/v1/completions" {
		p, err = profile.Completion(profile.VLLM, body, config)
	} else {
		p, err = profile.Chat(context.Background(), profile.VLLM, body, config)
	}
	if g.Name == "too long" { // found out by its tokens only
		_, err = p.Tokens(p.Elements[0], func(string, bool) ([]uint32, error) { return make([]uint32, 2049), nil })
	}
	switch {
	case g.Status == 200 && err != nil:
		t.Errorf("%s %q: %v, the engine rendered it", model, g.Name, err)
	case g.Status != 200 && err == nil:
		t.Errorf("%s %q: no error, the engine refused it", model, g.Name)
	case g.Status != 200 && !errors.Is(err, profile.ErrRefused) && !errors.Is(err, profile.ErrNotExact):
		t.Errorf("%s %q: %v is of no kind", model, g.Name, err)
	case g.Status == 200:
		if len(p.Elements) != len(g.TokenIDs) {
			t.Fatalf("%s %q: %d prompts, want %d", model, g.Name, len(p.Elements), len(g.TokenIDs))
		}
		for i, e := range p.Elements {
			if e.IDs != nil && !slices.Equal(e.IDs, g.TokenIDs[i]) {
				t.Errorf("%s %q: ids %v, want %v", model, g.Name, e.IDs, g.TokenIDs[i])
			}
		}
	}
}
