// Package model proves the index against a model of it that is too simple to be wrong.
//
// The model (reference.go) is written from the rules of the design, not from the index's code: per source a multiset
// of copies by (namespace, block size, the whole prompt up to the block, tier, group), the meaning of each engine hash,
// and a list of stores that wait. It answers by comparing whole prefixes, which have numbers (prefix.go) so that prompts
// of thousands of blocks can be compared. It hashes nothing and shares nothing between sources.
//
// # Data in and out
//
//	seed -> script: what happens to each source, and what is asked after it
//	        kinds (generate): sources of every kind, stores, duplicates, removals, clears, tiers, orphans, groups, reports
//	        wide: up to hundreds of sources on prompts of up to thousands of blocks, with hashes that are shared, of
//	        their own, first the one and then the other, small numbers with other meanings elsewhere, or two for a block
//	script -> model, index and its twin with the plain structure
//	after each step every source's answer to several prompts is compared
//
// # Invariants that are tested
//
//  1. Held, Reusable, With and Covered of every source equal the model's after every step (rules 1 to 9 and 11).
//  2. Handles, resident blocks and waiting stores are counted exactly.
//  3. An index whose sources are closed holds nothing: no block, no scope, no holder (rule 17).
//  4. Beside writers, a reader never sees a source hold what it never held, nor less than what it held all the time
//     (rule 16).
//  5. What writers leave behind does not depend on how they ran beside one another (rule 8).
//  6. The index and its twin with the plain structure answer alike, bounds and holdings too, and have as many blocks and
//     scopes after every step.
//
// A failure prints its seed, which -model.seed=N repeats. Then the script is made smaller as long as it still fails, and
// written to a file that -model.replay=FILE plays; testdata keeps such files. make nightly draws seeds for hours.
//
// # Concurrency
//
// A reference model belongs to one goroutine. The concurrent test gives each source a goroutine and a model of its own.
//
// # What it is not
//
// It checks neither payload decoding nor the hidden namespaces of SGLang's dynamo format, and it knows no bounds: those
// have tests of their own in indexer and events.
package model
