// Package bench puts load on a running server's Score and tells how fast the right answers come.
//
// # Data in and out
//
//	in:  a Workload (prompts, and how much of each every worker holds) and a server that was filled with it (Fill)
//	out: a Report: requests a second, p50 and p99, errors by reason, processor time of both sides
//
// # Workload
//
// Prompts of the same length. The first quarter of their blocks is the same in all of them, as a system prompt is; the rest is
// each one's own. Of prompt p of P, worker w of W holds blocks x (1 + (w + p x W/P) mod W) / W leading blocks: every depth
// occurs once in a prompt, exactly one worker holds all of it, and that is another worker for another prompt. Since every
// worker holds a long part of some prompt, it holds of all the others the shared part too, as far as its longest one reaches.
//
// # What is timed
//
// A call of a Caller: from handing over the request to having read and checked the answer. Requests are made before. In a closed
// loop each caller has one call under way. In an open loop each caller's calls are due at times of a Poisson process; one that
// begins late is timed from when it was due, so that a slow answer is not hidden by what it kept from being asked.
//
// Lean callers write bytes made before to a socket of their own and read the answer with few allocations, so that what is
// measured is the server. On Linux, without TLS, one thread drives them all in an open loop: Go's timers are late by up to a millisecond
// and call in bunches what is due by chance, and goroutines that wait for sockets wake processors that the server needs.
// Stock callers are the clients that people use: connect-go and grpc-go.
//
// Engines publish over ZMQ, when that is asked for, batches that were made before, at times that come by chance, from a
// thread of their own. What became of them is asked of the server: blocks applied, and how long after the writing of a batch
// a Score shows it. An ingest that lost anything is an error.
//
// # Invariants
//
//  1. Every answer is checked: its best worker, and what it holds, are those that the workload says. The first answers of a
//     caller and every 64th are checked whole: each worker is listed with what it holds and its score. A wrong answer is
//     an error, WRONG_ANSWER.
//  2. Only calls that end within the measured time count. An error counts as an error and in no percentile.
//  3. Percentiles are those of a histogram of 3 significant digits.
//
// # Concurrency
//
// A Caller is for one goroutine. Run starts one for each, or one for all, and waits for them.
//
// # What it is not
//
// It compares nothing: test/bench/wire does.
package bench
