// Package routed credits workers with prompts that were just sent to them, before their engines announce the blocks.
//
// In: what a router reports (a source, a prompt, a time to live), and the index, in which events confirm it. Out: for a
// prompt, how many of its leading tokens were announced of each source that way.
//
// A credit is a store into a shadow index, which has the same rules of blocks, copies and namespaces as the real one; its
// end is the removal.
//
// Invariants:
//
//  1. What is credited is what the source will hold when its events confirm it, and no more: full blocks, up to the first
//     multimodal item, in the namespace of the prompt.
//  2. A source whose future cannot be told is not credited: several KV-cache groups or block sizes, windows or states, no
//     known block size, a namespace that its engine does not publish.
//  3. A credit ends when the source holds all of it, when its time to live has passed, or when the source leaves or its
//     engine starts again; Run sees that within two of its ticks.
//  4. Credits are bounded in number and in tokens (rule 17).
//
// Concurrency: a Book is safe for concurrent use. Predicted waits for nobody and costs one load of a counter while
// nothing is credited. Run is one goroutine of the caller's.
//
// It does not know what a credit is worth: that is package scorer's.
package routed
