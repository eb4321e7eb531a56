package render

import (
	"context"
	"net/http"
	"time"
)

// The paths that can be rendered.
const (
	PathChat        = "/v1/chat/completions"
	PathCompletions = "/v1/completions"
)

// Renderer turns a request into prompt tokens. It errs with an *Error, or with the context's error if the caller
// cancelled. A nil error means at least one prompt, each of at least one token (rule 14).
type Renderer interface {
	Render(ctx context.Context, req Request) (Result, error)
}

// Checker is a Renderer that knows how it does.
type Checker interface {
	// Ready is nil, or why the next render would fail, as an *Error.
	Ready() error
}

// Request is a completion call as the engine would get it.
type Request struct {
	// Model is the model's name as kvscout knows it, which may be none that the body says. It chooses the renderer and is
	// not sent.
	Model string
	// Path is PathChat or PathCompletions.
	Path string
	// Body is the JSON body, used byte for byte. It may be anything: judging it is the renderer's work.
	Body []byte
	// Header holds what is to be forwarded, such as a tenant. Headers of the connection, of the body's form and of
	// authentication are left out: they belong to this hop, not to the caller's.
	Header http.Header
}

// Result is the answer to a Request.
type Result struct {
	// Prompts are in the body's order: one for a chat, one per prompt for completions.
	Prompts []Prompt
	// Renderer names what rendered, as "protocol@host:port" for a remote one.
	Renderer string
	// Fingerprint identifies the configuration that ids depend on; empty where the renderer states none (vLLM).
	Fingerprint string
	// Duration is how long the render took, waiting for a free slot included.
	Duration time.Duration
	// Cached: the result was at hand. Prompts of such a result are shared and must not be changed.
	Cached bool
}

// Prompt is one prompt in tokens.
type Prompt struct {
	// Tokens are the ids the engine will run, placeholders of multimodal items expanded. Never empty; each < 2^31.
	Tokens []uint32
	// Features are the multimodal items by offset; nil for text.
	Features []Feature
	// SkipsPrefixCache: the engine will not read its prefix cache for this prompt (prompt_logprobs and the like,
	// vllm-project/vllm#17251), whatever a worker holds.
	SkipsPrefixCache bool
}

// Feature is one multimodal item of a prompt. Items may overlap (audio inside of video).
type Feature struct {
	// Modality is the engine's word, such as "image".
	Modality string
	// Hash identifies the content, as the engine puts it into block keys. Not empty.
	Hash string
	// Offset and Length say which tokens are its placeholder. Length is at least 1, and all of it lies in the prompt.
	Offset, Length int
}
