package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events/simulate"
	"github.com/kvscout/kvscout/test/tokenizers"
)

func goldensOf(name string) string {
	return "../../test/testdata/render/render-vllm-0.32-" + name + ".jsonl"
}

func rendering(t *testing.T, name string, more ...string) []string {
	return append([]string{"render", "--profile", "vllm", "--tokenizer", tokenizers.Dir(t, name), "--served-model", "tiny-" + name,
		"--max-model-len", "2048"}, more...)
}

// tinyModel is a model's directory of two tokens, which loads at once.
func tinyModel(t *testing.T) string {
	t.Helper()
	dir := filepath.Dir(writeFile(t, "tokenizer.json", `{"added_tokens":[],"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":[]}}`))
	if err := os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte(`{{ messages[0].content }}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Every body that vLLM 0.32 rendered gives its ids, every body that it refused is refused.
func TestRenderCheck(t *testing.T) {
	names := []string{"qwen3", "llama3_1", "deepseek_v3"}
	if testing.Short() {
		names = names[:1]
	}
	for _, name := range names {
		got := okJSON(t, rendering(t, name, "--check", goldensOf(name), "--json")...)
		details, _ := got["details"].([]any)
		delete(got, "details")
		want := map[string]any{"cases": 94.0, "equal": 67.0, "errors_equal": 27.0, "refused": 0.0, "wrong": 0.0}
		if diff := cmp.Diff(want, got); diff != "" || len(details) != 94 {
			t.Errorf("%s: %d details (-want +got):\n%s", name, len(details), diff)
		}
	}
}

// A check that finds something wrong says what, and exits with 1.
func TestRenderCheckFindsFaults(t *testing.T) {
	line := func(name, body string, status int, ids string) string {
		return fmt.Sprintf(`{"name":%q,"path":"/v1/completions","body":%q,"status":%d,"token_ids":%s}`+"\n", name, body, status, ids)
	}
	file := writeFile(t, "g.jsonl", line("fine", `{"prompt":[1,2]}`, 200, "[[1,2]]")+
		line("other id", `{"prompt":[1,2]}`, 200, "[[1,3]]")+
		line("longer", `{"prompt":[1,2]}`, 200, "[[1,2,3]]")+
		line("two", `{"prompt":[1,2]}`, 200, "[[1,2],[3]]")+
		line("not refused", `{"prompt":[1,2]}`, 400, "null")+
		line("refused by us", `{"prompt":""}`, 200, "[[1]]")+
		line("both", `{"prompt":""}`, 400, "null")+
		`{"name":"image","path":"/v1/chat/completions","body":"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"x\"}}]}]}","status":200,"token_ids":[[1]]}`)
	dir := tinyModel(t)
	r := run(t, "render", "--tokenizer", dir, "--check", file)
	if r.code != exitFailed {
		t.Errorf("exits with %d", r.code)
	}
	wants(t, r.out, "8      1      1       1        5", "wrong: other id: prompt 0: token 1 is 2, the engine's 3", "wrong: longer: prompt 0: 2 tokens, the engine's 3",
		"wrong: two: 1 prompts, the engine made 2", "wrong: not refused", "wrong: refused by us", "refused: image", "remote renderer")
	wants(t, r.err, "wrong: 5 of 8 bodies")
	for text, want := range map[string]string{"": "no recorded bodies", "{": "line 1 is no recorded body", "{}": "has no path or no status"} {
		wants(t, run(t, "render", "--tokenizer", dir, "--check", writeFile(t, "x", text)).err, want)
	}
}

// The ids are those of the recorded bodies "user only" and its kin: by Python, from the goldens.
func TestRenderBody(t *testing.T) {
	body := writeFile(t, "b.json", `{"model": "tiny-qwen3", "prompt": ["Hello", "World"]}`)
	if got := ok(t, rendering(t, "qwen3", "--path", "/v1/completions", "--body", body)...); got != "[9707]\n[10134]\n" {
		t.Errorf("got %q", got)
	}
	got := ok(t, rendering(t, "qwen3", "--path", "/v1/completions", "--body", body, "--json")...)
	wants(t, got, `"token_ids":[9707]`, `"token_ids":[10134]`, `"renderer":"vllm@local"`, `"fingerprint":"kvscout:`)
	r := run(t, "render", "--tokenizer", tinyModel(t), "--served-model", "m", "--body", writeFile(t, "c.json", `{"model":"nope","messages":[]}`))
	if r.code != exitFailed || r.out != "" {
		t.Errorf("exits with %d, prints %q", r.code, r.out)
	}
	wants(t, r.err, "does not serve the model")
	wants(t, run(t, "render", "--tokenizer", t.TempDir(), "--body", body).err, "tokenizer.json: file is missing")
}

// From recorded bodies alone, rendered in process, every request of vLLM is predicted as from its recorded ids.
func TestVerifyRender(t *testing.T) {
	dir := tokenizers.Dir(t, "qwen3")
	var files []string
	for _, file := range []string{"vllm-0.32-base", "vllm-0.32-dp2-restart", "vllm-0.32-eagle", "vllm-0.32-multimodal"} {
		files = append(files, filepath.Join(recordings, file+".kvrec"))
	}
	r := run(t, append([]string{"verify", "--render", "--profile", "vllm", "--tokenizer", dir, "--json"}, files...)...)
	if r.code != exitOK {
		t.Errorf("exits with %d: %s", r.code, r.err)
	}
	reports, _ := parseJSON(t, r.out)["files"].([]any)
	for i, requests := range []float64{221, 105, 90, 7} {
		report, _ := reports[i].(map[string]any)
		if report["requests"] != requests || report["equal"] != requests || report["rendered"] != requests || report["wrong"] != 0.0 {
			t.Errorf("%s: %v", files[i], report)
		}
	}
	// Images need a remote renderer: their requests are left out. The 7 without are rendered.
	wants(t, r.err, "68 requests are left out")
	wants(t, r.out, `"unrendered":68`)
	if testing.Short() {
		return
	}
	// With another model's tokenizer the ids differ, and that is wrong even where the prediction happens to fit.
	r = run(t, "verify", "--render", "--tokenizer", tokenizers.Dir(t, "llama3_1"), "--verbose", filepath.Join(recordings, "vllm-0.32-base.kvrec"))
	if r.code != exitFailed {
		t.Errorf("another tokenizer: exits with %d\n%s", r.code, r.out)
	}
	wants(t, r.err, "rendered to other tokens than it ran")
}

// A model's files render its bodies; without files that can be used the model is refused, and the log says why. Files that
// come later are put into use.
func TestServeRendersInProcess(t *testing.T) {
	e := startEngine(t, simulate.Config{Worker: "w0", Model: "m"})
	other := startEngine(t, simulate.Config{Worker: "w1", Model: "other"})
	dir := filepath.Join(t.TempDir(), "model")
	address, log := startServe(t, "--listen", "127.0.0.1:0", "--source", spec(e), "--source", spec(other),
		"--render-model", "model=m,tokenizer="+dir+",max-model-len=2048", "--render-reload-interval", "5ms")
	if _, err := e.Serve(simulate.Request{Tokens: tokens(100, 40)}); err != nil {
		t.Fatal(err)
	}
	listed(t, address, "live #0")
	ids := strings.Join(strings.Fields(fmt.Sprint(tokens(100, 40))), ",")
	body := writeFile(t, "b.json", `{"model":"m","prompt":`+ids+`}`)
	score := []string{"score", "--server", address, "--path", "/v1/completions", "--body", body}

	wants(t, run(t, score...).err, "RENDERER_UNUSABLE", "no such file")
	wants(t, log.String(), "model files cannot be used")
	wants(t, ok(t, "stats", "--server", address), "vllm@local", "false", "unusable 1", "no such file")
	wants(t, run(t, append(score, "--model", "other")...).err, "NO_RENDERER")

	if err := os.Symlink(tinyModel(t), dir); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the files are put into use", func() bool { return strings.Contains(log.String(), "model files loaded") })
	wants(t, ok(t, score...), "prompt 40 tokens", "rendered by vllm@local", " 32    32 ")
	wants(t, run(t, "score", "--server", address, "--body", writeFile(t, "i.json", `{"model":"m","messages":[{"role":"user","content":[{"type":"input_audio"}]}]}`)).err,
		"RENDER_NOT_EXACT", "remote renderer")
}
