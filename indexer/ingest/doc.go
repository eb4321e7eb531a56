// Package ingest keeps the fleet: which workers there are, and a stream for each of their sources that feeds the index.
//
// In: descriptions of workers, from configuration or by RPC; batches, from ZMQ streams, polled, pushed, or from a log. Out:
// changes of an indexer.Index, and for lookups the workers, their roles and the names of their models. In and out: the
// snapshot.
//
// Invariants:
//
//  1. A worker is registered once: the same description again changes nothing, another one replaces it, and the ranks
//     that it describes otherwise drop what they held.
//  2. Once Deregister has returned, no lookup credits the worker, whatever its stream still delivers.
//  3. A source has one writer: its stream, or pushes one at a time.
//  4. What a Keeper has restored is credited as a bound until the publisher is proven to be the one before (package stream).
//  5. Lookups read a published view and wait for no registration (rule 16).
//  6. A worker that was registered by a call is the caller's: discovery neither changes it nor takes it out, but that the
//     caller left it to be asked, and it tells otherwise by now. One that was deregistered by a call stays out until discovery
//     describes it otherwise.
//  7. Of a source that is followed in a log, a snapshot has the books and the record up to which they are, as of one moment.
//     Records up to that one change nothing once it is restored, and each one behind it is read, or its loss is told.
//  8. A registration that fails changes nothing: whether every rank can be opened is looked at before any is dropped. A rank that
//     is described has a stream of its own, and what the batches of another rank's stream say of it does not count.
//  9. What a snapshot has of a worker that discovery had found is in no answer until discovery names it again, for a bounded time
//     in which every snapshot hands it on.
//
// Concurrency: one goroutine per source with an endpoint, ended by Deregister, replacement or Close, which wait for it.
// Lock order: Fleet.mu, then a source's push, then the index; a snapshot's file is read under a lock taken after
// Fleet.mu.
//
// It needs no server: see the example, and docs/embedding.md.
//
// It is not discovery: it is told what exists (package discover, RegisterWorker).
package ingest
