// Package events is the vocabulary of KV-cache events, and the reader of what inference engines send: the one place
// that knows their wire formats.
//
// # Data in and out
//
// In come the frames of a live message or of a replay reply (ParseFrames, ParseReply), whose sequence numbers a Tracker
// judges, and payloads in msgpack, which a Decoder turns into a Batch of Events. It takes every form that vLLM, SGLang,
// TensorRT-LLM and the publishers that imitate them were seen to send: arrays of any length, maps in any order, integers
// of any width, digests, bigrams, events packed twice. TensorRT-LLM's buffered events are JSON, which the same Decoder
// tells by its first byte (buffered_decode.go). A Source describes the stream they come from, a Sink takes what
// one delivers. The sub-packages bring payloads from somewhere (zmq, recordings, ...); package indexer applies batches.
//
// # Invariants
//
// The numbers are those of the project's rules.
//
//	Rule 2.  A Hash is a handle of one source. It keeps the 64 bits of an integer whatever its width and sign, and
//	         tells digests apart that differ in any byte. Nothing here computes or compares identities of blocks.
//	Rule 3.  An event whose namespace cannot be read is rejected, never handed on as an unsalted one of the base
//	         model. Adapter names, salts and extra keys stay in fields of their own; an empty one is none. A block of
//	         a buffered event whose hash only a hidden adapter or salt explains matches no request.
//	Rule 5.  An event that names no medium means the device. An unheard-of medium is TierUnknown, and a copy
//	         that is not the worker's own is TierShared.
//	Rule 8.  A Tracker calls a message next, duplicate, gap or reset by its number and content; in order and exactly
//	         once is what its caller makes of that.
//	Rule 10. What is wrong with one event costs that event and leaves a Reason in the batch. Only when the msgpack
//	         itself breaks off, so that no later event can be found, is the rest of a payload lost, with an error.
//	Rule 17. Limits bound a payload and every list in it. A length is held against the bytes that follow before
//	         anything is allocated from it, nesting costs no stack, and buffers that one large payload needed are
//	         given back.
//
// A token id that does not fit in 32 bits without a sign rejects its event: no value is wrapped into another.
//
// # Concurrency
//
// Values are plain data. A Decoder and a Tracker belong to one source and one goroutine: of buffered events a Decoder
// remembers windows, block size and the blocks off the device, within bounds. The slices of a Batch are valid
// until the next Decode; its strings are copies and stay.
//
// # What it is not
//
// It does not judge whether an event makes sense: parents that nobody announced, stores that do not fill their blocks,
// block sizes of 0, repeated hashes and copies pass through to the index, which knows what came before. It opens no
// connection and keeps no state of a cache.
package events
