// Package token turns text into the token ids of a model, exactly as Hugging Face's tokenizers library does for the
// model's tokenizer.json, or refuses the file. It is pure Go.
//
// # Data in and out
//
// In: a tokenizer.json (Load, Parse) and texts. Out: ids (Encode). It reads BPE models with byte-level words (GPT-2,
// Llama 3, Qwen, DeepSeek, gpt-oss and their kin) and with SentencePiece-style ones (Gemma, Llama 2, Mistral).
//
//	text -> added tokens -> normalizers -> normalized added tokens -> pre-tokenizers -> bpe, per word -> template -> ids
//	        added.go        normalize.go                             pretoken.go       model.go         template.go
//
// The names of the parts are those of the file; where a rule comes from is said with the file of the crate tokenizers
// 0.22.2 that has it.
//
// # Invariants
//
//  1. Exact or refused (rule 14). What is not known to be exact is ErrUnsupported at load and named: other models, unknown
//     normalizers and pre-tokenizers, unknown fields of known ones, constructs of patterns outside of the subset.
//  2. Characters are classified as the library does it, not as Go does: Oniguruma's classes of Unicode 16, normalization
//     of Unicode 9 (unicode.go). Texts that are not UTF-8 are an error.
//  3. Patterns are run by backtracking with Oniguruma's meaning (pattern.go), on a budget of steps per byte of text: on a
//     pattern that takes more, the text is ErrTooLong. Nothing here is quadratic in the text: a word of n characters
//     merges in n log n.
//  4. A word is cut only where nothing can merge across (bpe.joined), so long texts without other cuts stay fast.
//  5. Bounds: MaxFile, MaxText, maxNormalized and those of patterns, steps, added tokens and templates. The cache of words
//     has a fixed number of places. Size states all that is held.
//  6. Truncation and padding of a file are not applied: engines switch them off.
//  7. Errors hold no text that was to be encoded, and no ids of it.
//
// # Concurrency
//
// A Tokenizer is safe for concurrent use. All of it but the cache is only read once it is made; the cache has atomic
// places and takes no lock. No goroutine is started.
//
// # What it is not
//
// It does not decode, train, report offsets or apply chat templates. It does not know SentencePiece's tokenizer.model,
// tiktoken's or Mistral's tekken.json: the library does not either. Package hf beside it reads what is refused here.
package token
