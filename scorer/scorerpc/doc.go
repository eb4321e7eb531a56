// Package scorerpc serves ScoreService and RenderService: it reads a request, has its prompt rendered if need be, asks the
// index, and rates the candidates.
//
//	ScoreRequest -> prompt -> indexer.Query -> matches -> candidates -> scorer.Rank -> ScoreResponse
//
// Invariants:
//
//  1. An error is never replaced by a zero, and every error has a reason of package indexrpc.
//  2. A candidate that the index does not know is listed as such, with a lower bound (rule 13).
//  3. A salted request that no engine of its model can answer is refused before anything is rendered (rule 15). Where
//     only some engines cannot, those are listed with zeros and a lower bound.
//  4. A body is scored in the namespace that its tenant header or the body itself names, or refused: never a salted one as
//     unsalted (rule 3). The renderer gets the body byte for byte, less the gateway's own members, with the base model in
//     place of an adapter.
//  5. Score takes no lock that a writer holds, and waits for nothing but the renderer and, among many others, its turn (rule 16).
//  6. Tokens, features, candidates and calls at once are bounded, and how long one waits for a processor (rule 17, package turn).
//  7. Salts, token ids and body text are in no answer and no log line. What a renderer says of a body goes to its
//     sender, and only there. return_tokens gives a caller the tokens of its own prompt.
//  8. Token ids that a body carries for its prompt are taken from trusted callers, else the body is refused.
//  9. Workers that render otherwise than the renderer are never rated as exact: refused, or flagged by setting.
//  10. A request of a batch or stream that fails, or panics, costs itself alone.
//  11. What reports announced is told apart from what is held, and bounds are of what is held (package routed).
//
// Concurrency: a Service is safe for concurrent use. Goroutines of a batch or stream end with its call, which waits for them.
// Run is one of the caller's.
//
// It is not a renderer, and it does not choose a worker: it tells what each holds.
package scorerpc
