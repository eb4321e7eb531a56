// Package calls follows each call from its first header to its last byte: it gives it a request id, logs it, and tells its
// duration and code to whoever counts.
//
// In: HTTP requests of known methods, and calls of them that came otherwise (Begin). Out: the header X-Request-Id of every answer, one log line a call, a Done for Options.Observe,
// a span for Options.Tracer, and attributes of log lines that are written for a call.
//
// Invariants:
//
//  1. Every answer has a request id, refusals and errors too: the caller's if it is sane and of at most MaxID bytes, else one
//     that is made.
//  2. A duration is that of the whole call: reading, decoding, handling, encoding, writing. A call that ends before a handler
//     runs is counted as well, by the code that its answer has.
//  3. Methods are those of Options.Methods; every other path is MethodOther. So are spans and metrics bounded.
//  4. Lines, spans and what is observed hold method, code, reason, ids of request and trace, and duration: nothing else of a
//     request and no error text.
//  5. Without a Tracer no call costs an allocation for traces. A caller's traceparent is kept for the log all the same, and
//     for renderers that are asked.
//
// Concurrency: a Recorder is safe for concurrent use. It starts no goroutine.
//
// It is not a place that refuses calls.
package calls
