package local

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/kvscout/kvscout/render"
	"github.com/kvscout/kvscout/test/tokenizers"
)

// conversation is a body of about 25 KB: a system prompt, tools, and turns of prose, code and other scripts.
func conversation(b *testing.B) []byte {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	messages := []message{{"system", strings.Repeat("You are a careful assistant that answers in full sentences. ", 20)}}
	for i := 0; len(messages) < 40; i++ {
		messages = append(messages,
			message{"user", fmt.Sprintf("Question %d: how would one rewrite `for i := range %d { fmt.Println(i) }` in Python, naïvely? 数据 %s", i, i*7, strings.Repeat("Take your time and think. ", 14))},
			message{"assistant", fmt.Sprintf("Here is answer %d:\n\n```python\nfor i in range(%d):\n    print(i)\n```\n%s", i, i*7, strings.Repeat("That prints each number on a line of its own. ", 12))})
	}
	body, err := json.Marshal(map[string]any{"model": "m", "messages": messages})
	if err != nil {
		b.Fatal(err)
	}
	if len(body) < 24_000 || len(body) > 32_000 {
		b.Fatalf("the body has %d bytes", len(body))
	}
	return body
}

// BenchmarkRender is the target of the design: 25 KB in less than 2 ms, for each of the recorded models.
func BenchmarkRender(b *testing.B) {
	body := conversation(b)
	for _, name := range models {
		b.Run(name, func(b *testing.B) {
			r := load(b, tokenizers.Dir(b, name))
			req := render.Request{Path: render.PathChat, Body: body}
			tokens := 0
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				res, err := r.Render(b.Context(), req)
				if err != nil {
					b.Fatal(err)
				}
				tokens = len(res.Prompts[0].Tokens)
			}
			b.ReportMetric(float64(tokens), "tokens")
		})
	}
}
