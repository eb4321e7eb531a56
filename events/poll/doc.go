// Package poll keeps up with a source whose events are polled by HTTP: /kv_cache_events of trtllm-serve.
//
// In: an events.Source whose Events is the URL. Out: calls of an events.Sink, all from one goroutine; each payload is one
// event as JSON, which an events.Decoder reads, under its place in the stream (events.BufferedOrder).
//
// The endpoint is a drain: it hands each event to one caller once. So there is no replay, and whoever else polls it takes
// events away. POST is asked (openai_server.py); an endpoint that refuses it is asked by GET from then on.
//
// Invariants:
//
//  1. Rule 8: an attention-DP rank numbers its events from 0 in steps of 1 (kvCacheEventManager.cpp), and they reach Apply
//     in that order. An answer may mix ranks.
//  2. Rule 11: a number that skips is told by Gap and Joined, one that does not rise by Reset: a drain repeats nothing, so
//     even an event with the content of an earlier one is a new life's.
//  3. Rule 13: history is complete only if the first number seen of each rank is 0, whose event says that the cache was
//     created. A poll that failed may have taken events with it, and another process may answer the next: until a number
//     shows what happened, the source is told as connecting.
//  4. Rule 12: a source whose last whole answer is older than StaleAfter is told as stale, at the latest when the poll
//     under way has timed out.
//  5. Rule 17: an event, an answer, the time of a poll and the ranks of a source are bounded. What is over the bound of
//     an event is left out, counted, and shows as a hole.
//  6. One stream polls an endpoint in a process; a second one errs with ErrTaken.
//  7. Behind a cursor (Resume) a number that follows goes on, any other one is a gap or a new life as ever, and until each rank
//     has told one the source is told as connecting. It is never proven the same.
//  8. No address is asked that the policy refuses, whatever name leads there, and no proxy.
//
// Concurrency: New may be called from anywhere, Run once. Run starts no goroutine but those of net/http, which end with it.
//
// It does not decode events, and follows no redirect.
package poll
