// Package indexrpc serves IndexService: who is listened to, what is known of them, and batches by push. It also holds
// what it shares with the Score handler: prompts read from messages, enums of the API, errors with their reasons.
//
// In: requests as generated messages; a fleet and an index that others own. Out: answers as generated messages, and
// connect errors that carry a google.rpc.ErrorInfo with domain "kvscout" and a Reason, and a RetryInfo where waiting
// helps.
//
// Invariants:
//
//  1. Every error that a handler returns has a Reason; the reason alone decides its code.
//  2. Whatever a request makes us allocate is bounded first: tokens, features, ranks, names, batches, streams (rule 17).
//  3. Salts, extra keys and token ids are in no answer, no error text and no log line.
//  4. Of a call of Publish that is refused nothing was applied.
//  5. StreamStats answers at once and ends with its context, with that context's cause.
//
// Concurrency: a Service is safe for concurrent use and starts no goroutine. Counters are read while they are written.
//
// It is not the index, and it does not decide: it reads, bounds, asks and translates.
package indexrpc
