// Package ingest keeps the fleet: which workers there are, and a stream for each of their sources that feeds the index.
//
// In: descriptions of workers, from configuration or by RPC; batches, from ZMQ streams or pushed. Out: changes of an
// indexer.Index, and for lookups the workers, their roles and the names of their models.
//
// Invariants:
//
//  1. A worker is registered once: the same description again changes nothing, another one replaces it, and the ranks
//     that it describes otherwise drop what they held.
//  2. Once Deregister has returned, no lookup credits the worker, whatever its stream still delivers.
//  3. A source has one writer: its ZMQ stream, or pushes one at a time.
//  4. Lookups read a published view and wait for no registration (rule 16).
//  5. A worker that was registered by a call is the caller's: discovery neither changes it nor takes it out. One that was
//     deregistered by a call stays out until discovery describes it otherwise.
//
// Concurrency: one goroutine per source with an endpoint, ended by Deregister, replacement or Close, which wait for it.
// Lock order: Fleet.mu, then a source's push, then the index.
//
// It is not discovery: it is told what exists (package discover, RegisterWorker).
package ingest
