// Package codec reads and writes the messages of Score: what every request to a router waits for.
//
// In and out: bytes of a transport, messages of package kvscoutv1. Proto and JSON are codecs of connect; both leave every
// other message to protobuf.
//
// Invariants:
//
//  1. What is read and written is what protobuf reads and writes: the same messages, the same refusals. Requests of unusual
//     form are left to protobuf altogether. Fields that this version does not know are kept in requests and never written.
//  2. A ScoreRequest, ScoreBatchRequest or ScoreStreamRequest of this package keeps prompts and ids of candidates in memory that is used again
//     after Release, and so does a ScoreResponse, which is released once it is written. Nothing points into a transport's buffer once Unmarshal has returned.
//  3. Memory that is kept for later use is bounded: larger prompts get memory of their own (rule 17).
//
// Concurrency: codecs may be used from anywhere; a message belongs to one goroutine at a time.
//
// It is not a place where requests are judged: what a prompt may be is for the handler to say.
package codec
