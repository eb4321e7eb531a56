package local

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/kvscout/kvscout/render"
	"github.com/kvscout/kvscout/test/tokenizers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// golden is one request body and what vLLM 0.32 answered to it.
type golden struct {
	Name     string     `json:"name"`
	Path     string     `json:"path"`
	Body     *string    `json:"body"`
	Base64   []byte     `json:"body_base64"`
	Status   int        `json:"status"`
	TokenIDs [][]uint32 `json:"token_ids"`
}

func (g golden) request() render.Request {
	body := g.Base64
	if g.Body != nil {
		body = []byte(*g.Body)
	}
	return render.Request{Path: g.Path, Body: body}
}

// models are those of the recorded bodies, served as tiny-NAME with 2048 tokens.
var models = []string{"qwen3", "llama3_1", "deepseek_v3"}

func goldens(t testing.TB, name string) []golden {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "test", "testdata", "render", "render-vllm-0.32-"+name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var list []golden
	for dec := json.NewDecoder(bytes.NewReader(data)); dec.More(); {
		var g golden
		if err := dec.Decode(&g); err != nil {
			t.Fatal(err)
		}
		list = append(list, g)
	}
	if len(list) != 94 {
		t.Fatalf("%d goldens, want 94", len(list))
	}
	return list
}

// load loads a renderer; edit may change its options.
func load(t testing.TB, dir string, edit ...func(*Options)) *Renderer {
	t.Helper()
	opts := Options{Profile: "vllm"}
	for _, e := range edit {
		e(&opts)
	}
	r, err := New(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Load(); err != nil {
		t.Fatal(err)
	}
	return r
}

// recorded opens the renderer of a recorded model.
func recorded(t testing.TB, name string) *Renderer {
	t.Helper()
	return load(t, tokenizers.Dir(t, name), func(o *Options) { o.Served, o.MaxModelLen = []string{"tiny-" + name}, 2048 })
}

// letters is a tokenizer.json in which each letter of "abcdefghijklmnopqrstuvwxyz" and the blank is a token: a is 0.
func letters() string {
	var vocab []string
	for i, c := range "abcdefghijklmnopqrstuvwxyz " {
		vocab = append(vocab, fmt.Sprintf("%q:%d", string(c), i))
	}
	return `{"added_tokens":[],"normalizer":null,"pre_tokenizer":null,"post_processor":null,"decoder":null,
 "model":{"type":"BPE","vocab":{` + strings.Join(vocab, ",") + `},"merges":[]}}`
}

// files writes a model's directory.
func files(t testing.TB, tokenizer, template string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "tokenizer.json", tokenizer)
	write(t, dir, "chat_template.jinja", template)
	return dir
}

// write replaces a file as a whole, as tools that deliver models do.
func write(t testing.TB, dir, name, text string) {
	t.Helper()
	fresh := filepath.Join(dir, name+".new")
	if err := os.WriteFile(fresh, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

// plain prints the content of every message.
const plain = `{% for m in messages %}{{ m.content }}{% endfor %}`

func saying(content string) render.Request {
	return render.Request{Path: render.PathChat, Body: fmt.Appendf(nil, `{"messages":[{"role":"user","content":%q}]}`, content)}
}
