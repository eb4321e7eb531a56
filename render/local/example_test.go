package local_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/kvscout/kvscout/render"
	"github.com/kvscout/kvscout/render/local"
)

// The directory of a model (here a toy of five letters) renders a body into the tokens that vLLM would run.
func Example() {
	dir, err := os.MkdirTemp("", "model")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{
		"tokenizer.json": `{"added_tokens": [], "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": null,
			"model": {"type": "BPE", "vocab": {"h": 0, "e": 1, "l": 2, "o": 3, "!": 4}, "merges": []}}`,
		"chat_template.jinja": `{% for m in messages %}{{ m.content }}!{% endfor %}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			log.Fatal(err)
		}
	}
	renderer, err := local.New(dir, local.Options{Profile: "vllm"})
	if err != nil {
		log.Fatal(err)
	}
	if err := renderer.Load(); err != nil {
		log.Fatal(err)
	}
	result, err := renderer.Render(context.Background(), render.Request{
		Path: render.PathChat, Body: []byte(`{"messages": [{"role": "user", "content": "hello"}]}`),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Prompts[0].Tokens)

	// What cannot be rendered exactly is refused.
	_, err = renderer.Render(context.Background(), render.Request{
		Path: render.PathChat, Body: []byte(`{"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}`),
	})
	fmt.Println(errors.Is(err, render.ErrNotExact))

	// Output:
	// [0 1 2 2 3 4]
	// true
}
