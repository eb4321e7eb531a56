// Package admin is the listener of operators, apart from that of callers: metrics, profiles, liveness and readiness over
// plain HTTP/1.1.
//
// In: a listener, a handler of metrics, a function that tells how ready the service is. Out: the paths that / lists.
//
// Invariants:
//
//  1. It answers from before the service is ready until after its calls have ended, so that a start and a shutdown can be
//     watched: until SetReady is called /readyz says "starting".
//  2. A request is bounded in bytes and time, and at most MaxRequests are answered at once; more get 503 (rule 17).
//  3. Nothing it answers has a salt, token ids, a credential, or the command line in it.
//  4. On loopback it answers only requests that name an address or localhost as their host, so that no name which somebody
//     points at 127.0.0.1 lets a browser's page read it.
//
// Concurrency: Serve may be called once, SetReady at any time. Serve starts one goroutine and waits for it.
//
// It is not a place for TLS or rights: whoever reaches it may read it. It changes nothing.
package admin
