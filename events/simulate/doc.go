// Package simulate is engines without engines: it runs requests against a real prefix cache and publishes, over real
// ZMQ with a replay endpoint, the bytes that vLLM or SGLang would publish. Only the model is missing.
//
// Data in: a [Config] per engine and [Request] values, from a caller or from [Traffic]. Data out: msgpack event batches
// on a PUB socket, the same batches again on a ROUTER socket, and for each request an [Outcome] with the number the
// engine itself would report (cached_tokens), which is what a prediction is checked against.
//
// Invariants, numbered for the tests that cite them:
//
//  1. Outcome.CachedTokens is what the cache held before the request ran: a multiple of the block size, at most
//     floor((n-1)/block)*block of n prompt tokens, since the last token is always computed.
//  2. What the events say and what the cache does never differ: every block that becomes findable is announced as
//     stored, every one that stops being findable as removed or cleared, in that order of time.
//  3. An eviction is announced before the store that needed the room, in the same batch. One engine step publishes one
//     batch, or none when nothing changed.
//  4. vLLM keeps copies: a block that is computed again is stored again, and each copy is removed by itself. SGLang keeps
//     one copy of a page per namespace.
//  5. Sequence numbers count from 0 in each process life without a hole, and the replay buffer holds the last
//     BufferSteps batches.
//  6. A subscriber that is connected gets every batch, or is cut off (and counted) when it is too far behind. Nothing is
//     dropped from the middle of a stream.
//  7. Payload bytes are those of the engine's own encoder: key order, smallest integers, float64 time, nil where the
//     engine writes nil, optional keys left out where it leaves them out.
//  8. Everything a peer sends is bounded before it is allocated.
//
// Concurrency: an [Engine] may be used by several goroutines; it runs one request at a time. A [Traffic] is for one
// goroutine. A [Fleet] runs in the goroutine that calls Run.
//
// It is not a performance model (steps take no time), not a tokenizer, and not a ZMQ library: the server side of ZMTP
// 3.1 with the NULL mechanism, written here so that the simulator shares no transport code with what it tests.
package simulate
