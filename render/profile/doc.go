// Package profile turns request bodies into prompts as engines do: what each engine does to a body before and after the
// chat template.
//
// # Data in and out
//
// In: the body of /v1/chat/completions or /v1/completions, byte for byte, and a ModelConfig. Out: a Prompt, one or
// several texts or lists of token ids, with what the body says about their tokens. Prompt.Tokens makes the tokens with
// a tokenizer of the caller's.
//
//	body -> pyval.Parse -> engine's validation -> messages, tools, arguments of the template -> chat.Template -> Prompt
//
// # Engines
//
// VLLM follows vLLM 0.32 (vllm/entrypoints/openai, vllm/renderers), SGLang follows SGLang 0.5.23's Python server
// (sglang/srt/entrypoints/openai), TensorRTLLM what reference material says of TensorRT-LLM's renderer. The engines
// differ in what they keep of a message, in how they join parts of a content, in defaults and in what they refuse.
//
// # Invariants
//
//  1. Exact or refused (rule 14): a body is an error matching ErrRefused where the engine would refuse it, and one
//     matching ErrNotExact where we cannot be sure of the engine's tokens. Nothing else is an error of this package.
//  2. Nothing of the body is re-encoded: values keep key order, number form and duplicates' place (package pyval).
//  3. Errors name fields and reasons, never contents: Error.Detail holds no text of a prompt, no ids, no salts.
//  4. Everything is bounded: by the caller the bytes of the body, by pyval its nesting, by chat's limits the template.
//
// # Concurrency
//
// All functions are safe for concurrent use. A ModelConfig must not be changed while it is used.
//
// # What it is not
//
// It loads no files and knows no tokenizer. It does not resolve cache salts: they are only validated as engines do.
package profile
