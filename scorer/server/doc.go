// Package server puts both services on one port: gRPC, gRPC-Web and Connect over HTTP/1.1 and HTTP/2, with TLS or in
// clear, and gRPC health and reflection.
//
// In: handlers of the services, a listener, a context. Out: answers on the wire, each with its request id, and one line per call.
//
// Invariants:
//
//  1. A message is read, and inflated, up to Options.ReadMaxBytes; a larger one is RESOURCE_EXHAUSTED before any
//     handler runs (rule 17). Errors that arise before a handler runs have a code and no ErrorInfo.
//  2. A unary call is cut after Options.CallTimeout, slow readers and writers included. Streams are not: they end with
//     their caller, or when the server shuts down; of a stream of scores what was read by then is answered.
//  3. A panic of a handler ends its call with INTERNAL and nothing else. It is logged without request data.
//  4. Lines about calls hold method, code, reason and duration: nothing of a request and no error text.
//  5. Serve returns after health has said NOT_SERVING, streams have ended, and calls in flight have finished or
//     Options.Grace has passed.
//  6. Until Options.Ready says so, health says NOT_SERVING of ScoreService and of the whole.
//  7. One port takes every protocol. A connection whose first request comes right from a gRPC library is answered by
//     grpc-go's transport; one of plain unary calls by Connect over HTTP/1.1 by package plain, until it carries anything
//     else; and any other by net/http's. In the first two Score and ScoreBatch have handlers of their own,
//     and everything else becomes an HTTP request; guard, records, limits and errors are the same, and what differs is speed only.
//
// Concurrency: Serve may be called once. It starts goroutines for its transports, for each connection until it is known
// what it speaks, and one with Options.Ready, and waits for them.
//
// Who may call, TLS and cross-origin calls are access.Guard's, which is asked before anything of a call is read.
package server
