package profile_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kvscout/kvscout/render/profile"
	"github.com/kvscout/kvscout/render/pyval"
	"github.com/kvscout/kvscout/render/pyval/pyvaltest"
)

const probe = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% if m.tool_calls %}{{ m.tool_calls|tojson }}{% endif %}{% endfor %}{{ tools|tojson }}"

func chatText(t *testing.T, engine profile.Engine, body string) (string, error) {
	t.Helper()
	p, err := profile.Chat(context.Background(), engine, []byte(body), profile.ModelConfig{Template: parse(t, probe), ToolParser: true})
	if err != nil {
		return "", err
	}
	return p.Elements[0].Text, nil
}

// TestCase43_CompletionPrompts: texts and ids, one or several, no chat template.
func TestCase43_CompletionPrompts(t *testing.T) {
	for _, engine := range []profile.Engine{profile.VLLM, profile.SGLang, profile.TensorRTLLM} {
		for body, want := range map[string][]profile.Element{
			`{"prompt":"abc"}`: {{Text: "abc"}}, `{"prompt":["abc","def"]}`: {{Text: "abc"}, {Text: "def"}},
			`{"prompt":[1,2,3,4]}`: {{IDs: []uint32{1, 2, 3, 4}}}, `{"prompt":[[1,2],[5]]}`: {{IDs: []uint32{1, 2}}, {IDs: []uint32{5}}},
		} {
			p, err := profile.Completion(engine, []byte(body), profile.ModelConfig{})
			same := slices.EqualFunc(p.Elements, want, func(a, b profile.Element) bool {
				return a.Text == b.Text && slices.Equal(a.IDs, b.IDs)
			})
			if err != nil || !same || !p.AddSpecialTokens {
				t.Errorf("%s %s: %+v, %v", engine, body, p, err)
			}
		}
	}
}

// TestSGLang: what SGLang 0.5.23's source does, by hand (serving_chat.py, jinja_template_utils.py).
func TestSGLang(t *testing.T) {
	for body, want := range map[string]string{
		`{"messages":[{"role":"user","content":"a"}]}`:                                                                   "<user>anull",
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}`:               "<user>a bnull",
		`{"messages":[{"role":"SYSTEM","content":"s"},{"role":"user","content":"a"}]}`:                                   "<system>s<user>anull",
		`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`:                                "<user>a<user>bnull",
		`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null},{"role":"user","content":"c"}]}`: "<user>a<assistant><user>cnull",
		`{"messages":[{"role":"assistant","tool_calls":[{"id":"c","function":{"arguments":"{\"b\":1.0}","name":"f"}}]},{"role":"user","content":"c"}]}`: `<assistant>` +
			`[{"id": "c", "index": null, "type": "function", "function": {"name": "f", "arguments": {"b": 1.0}}}]<user>cnull`,
	} {
		if got, err := chatText(t, profile.SGLang, body); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", body, got, err, want)
		}
	}
}

// TestCase52_ArgumentsThatAreNoObject: vLLM takes them for an empty object, SGLang refuses the request.
func TestCase52_ArgumentsThatAreNoObject(t *testing.T) {
	for _, arguments := range []string{`[1]`, `not json`} {
		body := `{"messages":[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"` +
			arguments + `"}}]},{"role":"user","content":"q"}]}`
		if got, err := chatText(t, profile.VLLM, body); err != nil || !strings.Contains(got, `"arguments": {}`) {
			t.Errorf("vllm %s: %q, %v", arguments, got, err)
		}
		if _, err := chatText(t, profile.SGLang, body); !errors.Is(err, profile.ErrRefused) {
			t.Errorf("sglang %s: %v, want ErrRefused", arguments, err)
		}
	}
}

// TestRule14_NotExactIsNamed: what we cannot be sure of says why, for every engine.
func TestRule14_NotExactIsNamed(t *testing.T) {
	image := `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://x"}}]}]}`
	for _, engine := range []profile.Engine{profile.VLLM, profile.SGLang, profile.TensorRTLLM} {
		_, err := chatText(t, engine, image)
		var e *profile.Error
		if !errors.Is(err, profile.ErrNotExact) || !errors.As(err, &e) || e.Reason == "" {
			t.Errorf("%s: %v, want ErrNotExact with a reason", engine, err)
		}
		_, err = profile.Chat(context.Background(), engine, []byte(`{"messages":[{"role":"user","content":"q"}]}`),
			profile.ModelConfig{Template: parse(t, probe), ModelType: "kimi_k3"})
		if !errors.Is(err, profile.ErrNotExact) {
			t.Errorf("%s: a model with a renderer of its own: %v", engine, err)
		}
	}
	if _, err := chatText(t, profile.TensorRTLLM, `{"messages":[{"role":"user","content":"q"}],"cache_salt":"a"}`); !errors.Is(err, profile.ErrRefused) {
		t.Errorf("salt for TensorRT-LLM: %v, want ErrRefused", err)
	}
}

// TestTruncation: vLLM cuts from the left and keeps special tokens, as the golden "completion truncate" shows for
// llama3_1: [128000, 342, 305] of "a b c d e f g h".
func TestTruncation(t *testing.T) {
	encode := func(text string, special bool) ([]uint32, error) {
		ids := []uint32{64, 293, 272, 294, 384, 282, 342, 305}
		if special {
			return append([]uint32{128000}, ids...), nil
		}
		return ids, nil
	}
	for body, want := range map[string][]uint32{
		`{"prompt":"a b c d e f g h","truncate_prompt_tokens":3}`:                            {128000, 342, 305},
		`{"prompt":"a b c d e f g h","truncate_prompt_tokens":3,"add_special_tokens":false}`: {282, 342, 305},
		`{"prompt":"a b c d e f g h","truncate_prompt_tokens":2,"truncation_side":"right"}`:  {128000, 64},
		`{"prompt":[1,2,3,4],"truncate_prompt_tokens":2}`:                                    {3, 4},
	} {
		model := profile.ModelConfig{MaxModelLen: 2048}
		p, err := profile.Completion(profile.VLLM, []byte(body), model)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Tokens(p.Elements[0], encode); !slices.Equal(got, want) || err != nil {
			t.Errorf("%s: %v, %v, want %v", body, got, err, want)
		}
	}
	p, err := profile.Completion(profile.VLLM, []byte(`{"prompt":"x","max_tokens":1}`), profile.ModelConfig{MaxModelLen: 9})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Tokens(p.Elements[0], encode); !errors.Is(err, profile.ErrRefused) {
		t.Errorf("a prompt as long as the context: %v, want ErrRefused", err)
	}
}

// FuzzChat: no panic and errors of known kinds, whatever the body.
func FuzzChat(f *testing.F) {
	for _, c := range list(pyvaltest.Read(f, "testdata/oracle/vllm.json.zst"), "cases")[:400] {
		f.Add([]byte(str(c.(*pyval.Dict), "body")))
	}
	tmpl := parse(f, probe)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, engine := range []profile.Engine{profile.VLLM, profile.SGLang, profile.TensorRTLLM} {
			_, err := profile.Chat(context.Background(), engine, body, profile.ModelConfig{Template: tmpl, ToolParser: true})
			if err != nil && !errors.Is(err, profile.ErrRefused) && !errors.Is(err, profile.ErrNotExact) {
				t.Errorf("%s %q: %v is of no kind", engine, body, err)
			}
		}
	})
}

// TestCase67_ContentFormats: a text and its parts are alike for a template of texts, and stay parts for one of parts.
func TestCase67_ContentFormats(t *testing.T) {
	body := `{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}`
	for src, want := range map[string]string{
		"{% for m in messages %}{{ m.content }}{% endfor %}":                                            "a\nb",
		"{% for m in messages %}{% for p in m.content %}[{{ p.text }}]{% endfor %}{% endfor %}":         "[a][b]",
		"{% for m in messages %}{% for p in m['content'] %}{{ p|tojson }}{% endfor %}{% endfor %}":      `{"type": "text", "text": "a"}{"type": "text", "text": "b"}`,
		"{% for message in messages %}{{ message.content is string }}{{ message.content }}{% endfor %}": "Truea\nb",
	} {
		p, err := profile.Chat(context.Background(), profile.VLLM, []byte(body), profile.ModelConfig{Template: parse(t, src)})
		if err != nil || p.Elements[0].Text != want {
			t.Errorf("%s: %+v, %v, want %q", src, p.Elements, err, want)
		}
	}
}

// TestCase70_NoArguments: vLLM 0.32 takes an empty text for an empty object and refuses a call without the key.
func TestCase70_NoArguments(t *testing.T) {
	call := func(function string) string {
		return `{"messages":[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":` + function + `}]}]}`
	}
	empty, err := chatText(t, profile.VLLM, call(`{"name":"f","arguments":""}`))
	if err != nil {
		t.Fatal(err)
	}
	if object, err := chatText(t, profile.VLLM, call(`{"name":"f","arguments":"{}"}`)); object != empty || err != nil {
		t.Errorf("%q, %v, want %q", object, err, empty)
	}
	if _, err := chatText(t, profile.VLLM, call(`{"name":"f"}`)); !errors.Is(err, profile.ErrRefused) {
		t.Errorf("no arguments: %v, want ErrRefused", err)
	}
}
