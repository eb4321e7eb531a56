// Package discover finds out which workers there are and how each is to be listened to.
//
// In: what discoverers say, each about the workers it knows (a file, flags, an API server), and what workers answer for
// themselves over HTTP. Out: the whole list of workers, merged, each time it changes; and the health of each.
//
// Invariants:
//
//  1. A report is whole: it replaces what its discoverer said before. A discoverer that fails reports nothing, so what it
//     said stays, and the failure is counted and shown.
//  2. Discoverers may name one worker: what an earlier one states goes first, and what it leaves open the next one fills
//     in, field by field. What the worker answers for itself comes last.
//  3. A failed question never wipes what a worker answered before, and an answer that leaves something open, or says
//     null, does not either.
//  4. A wildcard host in a worker's answer is the worker's own host. An answer can make us dial no address that the
//     policy refuses: no link-local one, no metadata service, nothing on this machine's file system.
//  5. Every answer is bounded, in bytes and in time; redirects are not followed and no proxy is asked.
//  6. A worker whose description has no endpoint or no model yet is pending, and shown with the reason.
//  7. When Run returns, no goroutine of it is left.
//  8. A worker is told unhealthy while its orchestrator calls it unready or its serving port fails, once Apply has named it,
//     and again when it is named anew.
//
// Concurrency: Run calls back from one goroutine at a time. Discoverers report from any goroutine.
//
// It is not the fleet: it opens no event stream and knows nothing of the index. Package kubernetes below is a Discoverer of its own.
package discover
