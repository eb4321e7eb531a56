// Package recording keeps event streams and the requests beside them in files, and reads them back.
//
// A recording holds, in the order of time, what a source published, which requests ran, and what the engine itself
// said it took from its cache. It is what `kvscout verify` measures predictions against.
//
// # Data in and out
//
//	in:  *Record -> Writer -> dump file
//	out: dump, raw CBOR sequence or JSON lines -> Reader -> *Record
//
// # The dump form (.kvrec)
//
// A dump is a CBOR sequence (RFC 8742) cut into Zstandard frames (RFC 8878). Each frame carries a checksum and holds
// whole records, so it can be read without the frames before or after it. Decompressed with `zstd -d` a dump is a raw
// CBOR sequence, which reads alike. Dumps may be joined with `cat`, in the order of time. A frame over 72 MiB, such as
// `zstd` makes of a large file in one go, is refused.
//
// Each item is a map with small unsigned keys in RFC 7049 canonical form: definite lengths, shortest integers, sorted
// keys, no tags, no duplicate keys. A field that is empty or zero is left out, except the kind. A reader skips keys
// that it does not know, and counts and skips records of a kind that it does not know.
//
//	key  type            record
//	 0   uint            kind: 0 header, 1 source, 2 message, 3 request, 4 note, 5 replay_request, 6 replay_reply
//	 1   int             time in Unix nanoseconds
//	 2   text            source, "worker/rank"
//	 3   array of bytes  frames as on the wire (kinds 2, 5, 6)
//	 4   text            what happened (kind 4)
//	 5   text            client socket, DEALER or REQ (kinds 5, 6)
//	 6   map             source description (kind 1)
//	 7   map             request (kind 3)
//	 8   text            "kvscout recording" (kind 0)
//	 9   uint            version of this form, 1 (kind 0)
//
// The first item is a header; further headers may follow where dumps were joined.
//
//	key  type            source description; worker and rank are those of key 2
//	 0   text            engine: vllm, sglang, trtllm
//	 1   text            version of the engine
//	 2   text            model
//	 3   uint            block size in tokens
//	 4   text            events endpoint
//	 5   text            replay endpoint
//	 6   text            topic
//	 7   bool            vLLM runs EAGLE
//	 8   bool            SGLang keys by pairs
//	 9   bool            reuse is reported as stores
//	10   text            hash format
//	11   array of text   what the engine does without telling
//
//	key  type            request
//	 0   map text: uint  last sequence seen of each source when it was sent; no entry for a source not heard yet
//	 1   text            model
//	 2   text            adapter
//	 3   text            cache salt
//	 4   text            extra key
//	 5   text            LoRA id
//	 6   bytes           token ids, little-endian int32, none negative
//	 7   array of map    features: 0 modality (text), 1 hash (text), 2 offset (uint), 3 length (uint), both in tokens
//	 8   text            HTTP path
//	 9   bytes           HTTP body, exactly as sent
//	10   uint            prompt tokens, the engine's number
//	11   uint            cached tokens, the engine's number
//	12   uint            more tokens from host memory; left out when the engine told none
//	13   text            request id
//	14   map text: text  fields of the JSON form that have no key here
//
// # The JSON-lines form
//
// One object a line, with the member "kind" (the names above) and "t"; frames and token_ids are base64, null is absent,
// member names are exact. Unknown members of a request are kept in Request.Extra: a string as its text, anything else
// as its JSON. Unknown members of other records are ignored: nothing of their kinds has ever been seen.
//
// # TensorRT-LLM's buffered events
//
// What get_kv_cache_events or polls of /kv_cache_events returned, kept as it came: lists, one after another, or one event a
// line, are read as a recording of the source "trtllm/0" without times, requests and block size.
//
// # Invariants
//
//  1. What was written before a Flush is read back whole, however the file is cut after it. A cut costs the frame it
//     hits and nothing before; it is reported once, with its place, as ErrTorn.
//  2. Nothing of a frame is returned before its checksum has been compared. (A dump from another program may lack
//     checksums; then there is nothing to compare.)
//  3. Records come back in the order of the file. Nothing is sorted, joined or dropped: a restarted engine repeats its
//     sequence numbers, and equal times are common.
//  4. The same records written in the same way give the same bytes.
//  5. A record, a line, a frame and every list in them have a bound that is checked before memory is taken.
//  6. Whatever Write accepts, Next returns. Write and both readers check records with one function.
//  7. A dump holds prompts and salts: Create gives its file to the owner alone. Errors name places and fields, never
//     the values of tokens, salts, bodies or frames.
//
// # Concurrency
//
// A Reader or a Writer belongs to one goroutine at a time; the package starts none.
//
// # What it is not
//
// No decoder of event payloads (events and its engines do that), no player that keeps time, no store that can be
// searched.
package recording
