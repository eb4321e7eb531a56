package profile_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/render/chat"
	"github.com/kvscout/kvscout/render/profile"
	"github.com/kvscout/kvscout/render/pyval"
	"github.com/kvscout/kvscout/render/pyval/pyvaltest"
)

func dict(d *pyval.Dict, key string) *pyval.Dict {
	v, _ := d.Get(key)
	return v.(*pyval.Dict)
}

func list(d *pyval.Dict, key string) []pyval.Value {
	v, _ := d.Get(key)
	return v.(*pyval.List).Items
}

func str(d *pyval.Dict, key string) string {
	v, _ := d.Get(key)
	s, _ := v.(string)
	return s
}

func parse(t testing.TB, src string) *chat.Template {
	t.Helper()
	tmpl, err := chat.Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

// testOracle holds every case of a file against an engine's answer: the same text, or an error for a refusal. What we
// cannot be sure of may be refused where the engine renders, but not more often than allowed.
func testOracle(t *testing.T, file string, engine profile.Engine, allowed int) {
	o := pyvaltest.Read(t, filepath.Join("testdata", "oracle", file))
	templates := map[string]*chat.Template{}
	for _, e := range dict(o, "templates").Entries() {
		templates[e.Key.(string)] = parse(t, e.Value.(string))
	}
	tokens := map[string]string{}
	for _, e := range dict(o, "special_tokens").Entries() {
		tokens[e.Key.(string)] = e.Value.(string)
	}
	rendered, unsure := 0, 0
	for _, c := range list(o, "cases") {
		want := c.(*pyval.Dict)
		name, body := str(want, "template"), str(want, "body")
		got, err := profile.Chat(context.Background(), engine, []byte(body), profile.ModelConfig{
			Names: []string{"m"}, Template: templates[name], SpecialTokens: tokens, MaxModelLen: 2048, ToolParser: true,
		})
		text, ok := want.Get("text")
		switch {
		case err != nil && !errors.Is(err, profile.ErrRefused) && !errors.Is(err, profile.ErrNotExact):
			t.Errorf("%s %s: %v is of no kind", name, body, err)
		case !ok && err == nil:
			t.Errorf("%s %s: no error, the engine says %s", name, body, str(want, "refused"))
		case !ok:
		case errors.Is(err, profile.ErrNotExact):
			unsure++
			t.Logf("%s %s: %v", name, body, err)
		case err != nil:
			t.Errorf("%s %s: %v, the engine renders %q", name, body, err, text)
		default:
			rendered++
			if diff := cmp.Diff(text.(string)+str(want, "prefix"), got.Elements[0].Text); diff != "" {
				t.Errorf("%s %s (-engine +go):\n%s", name, body, diff)
			}
		}
	}
	if unsure > allowed {
		t.Errorf("%d bodies refused as not exact that the engine renders, %d allowed", unsure, allowed)
	}
	t.Logf("%d rendered alike, %d not exact", rendered, unsure)
}

func TestVLLM(t *testing.T) { testOracle(t, "vllm.json.zst", profile.VLLM, 26) }

// TestVLLMContentFormat: what vLLM finds out about the content format of real templates (Case67).
func TestVLLMContentFormat(t *testing.T) {
	o := pyvaltest.Read(t, filepath.Join("testdata", "oracle", "vllm.json.zst"))
	g := pyvaltest.Read(t, filepath.Join("..", "chat", "testdata", "oracle", "goldens.json.zst"))
	for _, e := range dict(o, "formats").Entries() {
		name := e.Key.(string)
		src := str(dict(dict(g, "templates"), name), "src")
		want := e.Value == pyval.Value("openai")
		if got := parse(t, src).LoopsOverContent(); got != want {
			t.Errorf("%s: loops over content %v, want %v", name, got, want)
		}
	}
}
