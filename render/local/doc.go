// Package local renders in process: it is the render.Renderer of a directory of model files.
//
// # Data in and out
//
//	directory -> hub.Model -> token.Tokenizer, chat.Template -> model, put into use as a whole
//	render.Request -> profile: messages as the engine takes them -> template -> text -> tokenizer -> render.Result
//
// # Invariants
//
//  1. Exact or refused (rule 14): ErrBadRequest and ErrUnknownModel are what the engine refuses too, ErrNotExact what cannot
//     be rendered exactly here, ErrUnusable files of which no exact renderer can be made. There is no other result but the
//     engine's ids.
//  2. A model is put into use as a whole. If new files cannot be used, the old model stays, and Report says why.
//  3. Everything is bounded: files, bodies, prompts, tokens, the template's work, renders at once, and their time.
//  4. Error texts hold nothing of the body. What a template says by raise_exception is in Error.Message alone.
//
// # Concurrency
//
// A Renderer is safe for concurrent use. It starts no goroutine; Watch runs on the caller's.
//
// # What it is not
//
// It downloads nothing, runs no code of a model, and knows no workers and namespaces.
package local
