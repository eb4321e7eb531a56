// Package scorer rates workers by what they hold of a prompt.
//
// In: the matches that an indexer found, the length of the prompt, what each tier is worth. Out: a number between 0 and
// 1 for each, in a fixed order.
//
//	score = sum over tiers of weight(tier) x tokens newly covered by the tier / prompt tokens
//
// Invariants:
//
//  1. A score is a pure function of match, prompt length and weights: no lock, no I/O, no clock.
//  2. Only tokens of the leading match count, each once, at its fastest tier (rules 1 and 5).
//  3. A stale source scores 0, whatever it last held (rule 12).
//  4. Order is total: score, then worker, then rank.
//  5. What a router announced never lifts a score above what events could confirm.
//
// Concurrency: none; everything may be called from anywhere.
//
// It needs no server: see the example, and docs/embedding.md.
//
// It is not a load balancer: how busy a worker is does not enter.
package scorer
