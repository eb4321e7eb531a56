// Package client calls a kvscout server from Go: every method of its services, with a deadline, and with another try only
// where that is safe.
//
// In: the addresses of one or more servers that know the same (replicas), messages of package kvscoutv1. Out: their
// answers, or errors with a code (connect.CodeOf) and a reason (Reason).
//
// Invariants:
//
//  1. A call without a deadline gets Options.Timeout, all its tries together. Streams get none.
//  2. A call that changes something (ReportRouted, ReportOutcome, RegisterWorker, DeregisterWorker, ResetWorker, Publish,
//     Clear) is sent again only if nothing of it was sent, since no connection could be made. One that changes nothing
//     (Score, ScoreBatch, Render, ListWorkers, GetStats, Inspect) also after UNAVAILABLE and after RESOURCE_EXHAUSTED
//     with a RetryInfo, no earlier than that says. A stream is never begun again.
//  3. Tries are bounded: by Options.Retries per call, by the deadline (a pause that would outlast it is not begun), and
//     together by a budget that each success fills by a tenth of a try, so that a server in trouble is not called twice
//     as often. Pauses grow and are random.
//  4. Calls go to one server until it fails: score ids, and what ReportRouted has credited, are known to the server
//     that was asked. One to which no connection can be made, or that is UNAVAILABLE, is left for the next in the list.
//     To go on to a server at once after a connection that could not be made is free of invariant 3's budget.
//  5. An answer is read up to Options.ReadMaxBytes. Redirects are not followed, and no proxy is taken from the
//     environment: prompts go where the caller says.
//  6. A bearer token goes only over TLS, to loopback or over a unix socket, unless Options.PlaintextToken says otherwise.
//     Errors hold no token.
//
// Concurrency: a Client is safe for concurrent use and starts no goroutine of its own; those of its connections end with
// Close.
//
// It is not a balancer: give each caller the addresses in another order to spread load over replicas. A server that takes
// connections and answers nothing is not left: such calls end with their deadline.
package client
