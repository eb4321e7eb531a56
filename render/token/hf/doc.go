// Package hf turns texts into token ids by Hugging Face's own library, for tokenizer.json files that render/token refuses
// (WordPiece, Unigram, rare normalizers). It is empty unless built with the tag hftokenizers.
//
// The library is Rust, linked through github.com/daulet/tokenizers and cgo: tools/libtokenizers.sh builds it, `make
// test-hftokenizers` builds and tests this package. Such a binary needs glibc, libstdc++ and libgcc_s.
//
// # Data in and out
//
// As package token: a tokenizer.json in, ids out.
//
// # Invariants
//
//  1. What the library would get wrong without a word is an error: a text with a NUL (it cuts it there), a text that is
//     not UTF-8, and no ids for a text that has characters (it has no way to say that it failed).
//  2. What would end the process is refused at load: NUL in a file, a precompiled charsmap that does not decode.
//  3. Truncation and padding of a file are taken out before it is loaded: engines switch them off.
//  4. Files and texts are bounded by token.MaxFile and token.MaxText before the library sees them. A call into it cannot
//     be cancelled.
//  5. After Close every call is ErrClosed. Close waits for the calls that run.
//
// # Concurrency
//
// A Tokenizer is safe for concurrent use, Close included. Closing it twice is harmless. Nothing is freed without Close.
//
// # What it is not
//
// It is not faster (2 to 4 MB per CPU second), and not for files from strangers: the library may end the process on a
// file in ways not known here.
package hf
