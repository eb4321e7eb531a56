package hub

import (
	"errors"
	"testing"

	"github.com/kvscout/kvscout/render/token"
)

// FuzzOpen: no file makes a panic, and every error is one that callers match. What is opened is a JSON object still.
func FuzzOpen(f *testing.F) {
	f.Add([]byte(minimal), []byte(`{"tokenizer_class":"LlamaTokenizer","legacy":false,"bos_token":{"content":"<s>"}}`), []byte(`{"model_type":"llama"}`), []byte(`{}`))
	f.Add([]byte(minimal), []byte(`{"added_tokens_decoder":{"3":{"content":"x","special":true}},"chat_template":[{"name":"a","template":"b"}]}`), []byte(`{}`), []byte(`{"pad_token":"p"}`))
	f.Add([]byte(minimal), []byte(`{"tokenizer_class":"Qwen2Tokenizer","extra_special_tokens":{"image_token":"i"},"additional_special_tokens":["a",{"content":"b"},5]}`), []byte(`{}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, tokenizer, config, network, specials []byte) {
		m, err := Open(Files{fileTokenizer: tokenizer, fileConfig: config, fileModel: network, fileSpecials: specials})
		if err != nil {
			if !errors.Is(err, ErrBadFile) && !errors.Is(err, ErrUnsupported) {
				t.Fatalf("unknown error %v", err)
			}
			return
		}
		if _, err := token.Parse(m.Tokenizer); err != nil && !errors.Is(err, token.ErrBadFile) && !errors.Is(err, token.ErrUnsupported) {
			t.Fatalf("unknown error %v", err)
		}
	})
}
