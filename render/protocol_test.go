package render

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The answers of the reference's wire examples: sgl-project/sglang#36718, NVIDIA/TensorRT-LLM#19964.
const (
	sglangChat = `{"rid":"chatcmpl-ce9d6172-0","model":"zai-org/GLM-5.2-FP8","input_ids":[154822,154824,154826],"require_reasoning":false,
 "sampling_params":{"max_new_tokens":null,"stop":[],"temperature":1.0,"top_p":0.95,"top_k":1073741824,"n":1},
 "stream":false,"return_logprob":false,"logprob_start_len":0,"top_logprobs_num":0,"return_hidden_states":false}`
	trtllmChat = `{"schema_version":1,"kind":"chat","fingerprint":{"digest":"9f86d081884c7d65","compared":{"version":2,"model_type":"qwen3"},"info":{"tool_parser":null,"reasoning_parser":null}},
 "token_ids":[151644,872,198],"tokens_trusted":true,"untrusted_reason":null,
 "context":{"prompt_tokens_excluded_from_usage":0,"resolved_thinking":null},"request":{"model":"m","messages":[{"role":"user","content":"Hi","token_ids":[9]}]}}`
	trtllmUntrusted = `{"schema_version":1,"fingerprint":{"digest":"9f86"},"token_ids":[1],"tokens_trusted":false,"untrusted_reason":"named_tool_choice"}`
)

func speaking(protocol string) func(*Options) { return func(o *Options) { o.Protocol = protocol } }

// TestClient_Protocols: each protocol reads its own field, and another engine's answer is no answer.
func TestClient_Protocols(t *testing.T) {
	sglangList := "[" + strings.Replace(sglangChat, "154822", "1", 1) + "," + strings.Replace(sglangChat, "154822", "1", 1) + "," + sglangChat + "," + sglangChat + "]"
	for name, c := range map[string]struct {
		protocol, path, body, answer string
		want                         [][]uint32
		fingerprint                  string
		err                          error
	}{
		"sglang":               {ProtocolSGLang, PathChat, `{}`, sglangChat, [][]uint32{{154822, 154824, 154826}}, "", nil},
		"sglang, prompts x n":  {ProtocolSGLang, PathCompletions, `{"n":3,"n":2}`, sglangList, [][]uint32{{1, 154824, 154826}, {154822, 154824, 154826}}, "", nil},
		"sglang, copies":       {ProtocolSGLang, PathCompletions, `{"n":4}`, sglangList, nil, "", ErrContract},
		"sglang, odd copies":   {ProtocolSGLang, PathCompletions, `{"n":3}`, sglangList, nil, "", ErrContract},
		"sglang by vllm":       {ProtocolVLLM, PathChat, `{}`, sglangChat, nil, "", ErrContract},
		"sglang by trtllm":     {ProtocolTRTLLM, PathChat, `{}`, sglangChat, nil, "", ErrContract},
		"vllm by sglang":       {ProtocolSGLang, PathChat, `{}`, `{"token_ids":[1]}`, nil, "", ErrContract},
		"vllm by trtllm":       {ProtocolTRTLLM, PathChat, `{}`, `{"token_ids":[1]}`, nil, "", ErrContract},
		"trtllm":               {ProtocolTRTLLM, PathChat, `{}`, trtllmChat, [][]uint32{{151644, 872, 198}}, "9f86d081884c7d65", nil},
		"trtllm, list":         {ProtocolTRTLLM, PathCompletions, `{}`, "[" + trtllmChat + "]", [][]uint32{{151644, 872, 198}}, "9f86d081884c7d65", nil},
		"trtllm by vllm":       {ProtocolVLLM, PathChat, `{}`, trtllmChat, nil, "", ErrContract},
		"trtllm, not trusted":  {ProtocolTRTLLM, PathChat, `{}`, trtllmUntrusted, nil, "", ErrUntrusted},
		"trtllm, trust a text": {ProtocolTRTLLM, PathChat, `{}`, `{"token_ids":[1],"tokens_trusted":"true"}`, nil, "", ErrUntrusted},
		"trtllm, two prints":   {ProtocolTRTLLM, PathCompletions, `{}`, "[" + trtllmChat + `,{"token_ids":[1],"tokens_trusted":true,"fingerprint":{"digest":"other"}}]`, nil, "", ErrContract},
		"trtllm, empty":        {ProtocolTRTLLM, PathChat, `{}`, `{"token_ids":[],"tokens_trusted":true}`, nil, "", ErrContract},
	} {
		t.Run(name, func(t *testing.T) {
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != c.path+"/render" {
					t.Errorf("path %s", r.URL.Path)
				}
				answering(200, c.answer)(w, r)
			}, speaking(c.protocol))
			res, err := client.Render(t.Context(), Request{Path: c.path, Body: []byte(c.body)})
			if !errors.Is(err, c.err) {
				t.Fatalf("got %v, want %v", err, c.err)
			}
			if diff := cmp.Diff(c.want, ids(res.Prompts)); diff != "" || res.Fingerprint != c.fingerprint {
				t.Errorf("fingerprint %q, ids (-want +got):\n%s", res.Fingerprint, diff)
			}
		})
	}
}

// TestClient_Tokenize: SGLang's own server has no render routes but /v1/tokenize, which takes the same bodies. Its form
// is that of OpenAIServingTokenize.
func TestClient_Tokenize(t *testing.T) {
	var asked []string
	var answer atomic.Pointer[string]
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		if r.URL.Path != pathTokenize {
			answering(404, `{"detail":"Not Found"}`)(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		if string(body) != `{"a": 1.0}` {
			t.Errorf("body %q", body)
		}
		_, _ = io.WriteString(w, *answer.Load())
	}, speaking(ProtocolSGLang))
	for _, c := range []struct {
		path, answer string
		want         [][]uint32
		err          error
	}{
		{PathChat, `{"tokens":[1,2,3],"count":3,"max_model_len":4096}`, [][]uint32{{1, 2, 3}}, nil},
		{PathCompletions, `{"tokens":[[1],[2,3]],"count":[1,2],"max_model_len":4096}`, [][]uint32{{1}, {2, 3}}, nil},
		{PathChat, `{"tokens":[],"count":0}`, nil, ErrContract},
		{PathChat, `{"tokens":[[]],"count":0}`, nil, ErrContract},
		{PathChat, `{"tokens":[1,[2]]}`, nil, ErrContract},
		{PathChat, `{"tokens":[[1],2]}`, nil, ErrContract},
		{PathChat, `{"tokens":[1],"tokens":[1]}`, nil, ErrContract},
		{PathChat, `{"count":3}`, nil, ErrContract},
		{PathChat, `{"tokens":[-1]}`, nil, ErrContract},
	} {
		answer.Store(&c.answer)
		res, err := client.Render(t.Context(), Request{Path: c.path, Body: []byte(`{"a": 1.0}`)})
		if !errors.Is(err, c.err) {
			t.Errorf("%s: got %v, want %v", c.answer, err, c.err)
		}
		if diff := cmp.Diff(c.want, ids(res.Prompts)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.answer, diff)
		}
	}
	if asked[0] != PathChat+"/render" || asked[1] != pathTokenize || asked[2] != pathTokenize {
		t.Errorf("the route was not kept: %q", asked)
	}
}

// TestClient_TokenizeIsSGLangs: no other protocol has another route.
func TestClient_TokenizeIsSGLangs(t *testing.T) {
	for _, protocol := range []string{ProtocolVLLM, ProtocolTRTLLM} {
		var asked atomic.Int32
		client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			answering(404, `{"detail":"Not Found"}`)(w, r)
		}, speaking(protocol))
		if _, err := chat(t, client); !errors.Is(err, ErrNoRoute) || asked.Load() != 1 {
			t.Errorf("%s: %v after %d requests", protocol, err, asked.Load())
		}
	}
}

// TestClient_Lean: media tensors are not asked for, and nothing else of the body changes.
func TestClient_Lean(t *testing.T) {
	const media = `{ "messages":[{"content":[{"image_url":{"url":"x"}}]}], "n" : 1e0}`
	for _, c := range []struct{ protocol, body, want string }{
		{ProtocolVLLM, media, `{ "return_mm_kwargs":false,"messages":[{"content":[{"image_url":{"url":"x"}}]}], "n" : 1e0}`},
		{ProtocolVLLM, strings.Replace(media, `"n" : 1e0`, `"return_mm_kwargs" : true`, 1), strings.Replace(media, `"n" : 1e0`, `"return_mm_kwargs" : false`, 1)},
		{ProtocolVLLM, strings.Replace(media, "image_url", "text", 1), strings.Replace(media, "image_url", "text", 1)},
		{ProtocolVLLM, media + " no json", media + " no json"},
		{ProtocolSGLang, media, media},
	} {
		client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if got, _ := io.ReadAll(r.Body); string(got) != c.want {
				t.Errorf("%s: got  %s\nwant %s", c.protocol, got, c.want)
			}
			answering(400, `{}`)(w, r)
		}, speaking(c.protocol))
		if _, err := client.Render(t.Context(), Request{Path: PathChat, Body: []byte(c.body)}); !errors.Is(err, ErrBadRequest) {
			t.Error(err)
		}
	}
}
