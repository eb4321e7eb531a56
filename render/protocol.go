package render

import (
	"slices"
	"strings"
)

// The protocols. They differ in paths and in the field that carries the ids.
const (
	// ProtocolVLLM is the render service of vLLM: "vllm launch render", or "vllm serve --enable-scale-out".
	ProtocolVLLM = "vllm-render"
	// ProtocolSGLang is sglang-renderer; a server without its routes, as SGLang's own, is asked by /v1/tokenize.
	ProtocolSGLang = "sglang-renderer"
	// ProtocolTRTLLM is trtllm-render (NVIDIA/TensorRT-LLM#19964), which also says when its ids are not to be trusted.
	ProtocolTRTLLM = "trtllm-render"
)

// pathTokenize is SGLang's route that takes a prompt or messages and answers tokens (entrypoints/openai/serving_tokenize.py).
const pathTokenize = "/v1/tokenize"

// protocol is what one kind of renderer speaks.
type protocol struct {
	// ids is the field that carries the ids. That of another protocol is told from a missing one.
	ids string
	// tokenizes: a server without render routes may have pathTokenize.
	tokenizes bool
	// lean: the renderer leaves media tensors out of its answer if the body says return_mm_kwargs false.
	lean bool
	// judged: answers say whether their ids are to be trusted, and under which fingerprint.
	judged bool
}

var protocols = map[string]protocol{
	ProtocolVLLM:   {ids: "token_ids", lean: true},
	ProtocolSGLang: {ids: "input_ids", tokenizes: true},
	ProtocolTRTLLM: {ids: "token_ids", judged: true},
}

// Protocols lists what Options.Protocol may be.
func Protocols() []string { return []string{ProtocolVLLM, ProtocolSGLang, ProtocolTRTLLM} }

func knownProtocols() string { return strings.Join(Protocols(), ", ") }

// form is how an answer looks.
type form struct {
	protocol
	// list: an array with one object per prompt (completions) instead of one object.
	list bool
	// copies is how often each prompt of a list is repeated: sglang-renderer answers prompts x n.
	copies int
	// tokens: the answer of pathTokenize.
	tokens bool
}

// merge takes the copies of each prompt for one. It errs unless they are equal.
func (f form) merge(prompts []Prompt) ([]Prompt, error) {
	if f.copies <= 1 {
		return prompts, nil
	}
	if len(prompts)%f.copies != 0 {
		return nil, contractf("%d prompts are no multiple of n %d", len(prompts), f.copies)
	}
	var out []Prompt
	for i := 0; i < len(prompts); i += f.copies {
		for j := i + 1; j < i+f.copies; j++ {
			if !slices.Equal(prompts[i].Tokens, prompts[j].Tokens) {
				return nil, contractf("prompts %d and %d are copies of one and differ", i, j)
			}
		}
		out = append(out, prompts[i])
	}
	return out, nil
}
