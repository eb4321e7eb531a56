// Package verify proves predictions against engines: it plays a recording, predicts each recorded request at its time,
// and compares the prediction with the number of cached tokens that the engine itself reported.
//
// In: recordings (package recording). Out: a Report per file, and each Prediction to whoever asks.
//
// Invariants:
//
//  1. An exact answer that differs from the engine's number is wrong. So is an upper bound under it, or a lower bound
//     over it. Nothing else is.
//  2. Messages and requests are taken in the order of the file; nothing after a request is used to predict it, but that
//     a source's first recorded batch is the first it ever published (then its history before it is known: empty).
//  3. A recording without requests is an error: it proves nothing.
//
// Concurrency: a verification runs on the caller's goroutine.
//
// It is not a player into a running service; that is kvscout replay.
package verify
