package local

import (
	"errors"
	"testing"

	"github.com/kvscout/kvscout/render"
	"github.com/kvscout/kvscout/render/token"
)

// wordLevel is a kind of tokenizer that package token refuses.
const wordLevel = `{"added_tokens":[],"normalizer":null,"pre_tokenizer":{"type":"Whitespace"},"post_processor":null,"decoder":null,
 "model":{"type":"WordLevel","vocab":{"[UNK]":0,"a":1,"b":2},"unk_token":"[UNK]"}}`

func TestRenderer_FirstEngineRefuses(t *testing.T) {
	if _, err := token.Parse([]byte(wordLevel)); !errors.Is(err, token.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
	if second != nil {
		return // TestRenderer_SecondEngine has the rest
	}
	r, err := New(files(t, wordLevel, plain), Options{Profile: "vllm"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Load(); !errors.Is(err, render.ErrUnusable) {
		t.Errorf("got %v", err)
	}
}
