// Package render turns a request body into the exact prompt tokens that an engine will run.
//
// # Data in and out
//
// In: a Request, the path and the body bytes of an OpenAI-style completion call. Out: a Result, one Prompt per prompt
// of the body, each with its token ids and, for multimodal prompts, the content hash and the place of every item. The
// interface is Renderer. Client asks a remote engine's renderer; package render/local renders in process; Cache keeps
// the results of either; Models chooses one by the request's model.
//
//	Request -> Models -> Cache -> Client: POST path/render, body unchanged -> answer, read as a stream -> Result
//	                                                                       \-> refusal, dead end, odd answer -> *Error
//
// # Invariants
//
//  1. A failed render is an error with a Reason. No path returns a nil error and a prompt without tokens (rule 14).
//  2. The body goes out byte for byte: key order, number form and unknown fields change tokens. What must change is
//     spliced (Edit): return_mm_kwargs for a body with media here, the rules of the gateway by the caller.
//  3. Ids are taken from the one field of the configured protocol. An answer in another engine's form is ErrContract,
//     and so is one that says the field twice. Ids that the renderer does not vouch for are ErrUntrusted.
//  4. Everything that comes from the renderer is bounded before it is allocated: bytes, prompts, tokens, items, names,
//     nesting, and the text of a refusal (rule 17). What is not used is skipped while it streams by.
//  5. At most Options.Concurrency calls are on the wire and at most Options.Queue wait; the next one gets ErrOverloaded
//     at once. No call lasts longer than its deadline, waiting included.
//  6. A POST is sent once more only if nothing was rendered: no connection could be made, or the route does not exist and
//     the protocol has another. net/http repeats one only if a kept connection died before anything was written.
//  7. Redirects are not followed and no proxy is taken from the environment: prompts go where the configuration says.
//     A bearer token goes only over TLS or to loopback, unless Options.PlaintextToken says otherwise.
//  8. Error texts hold no body text, no token ids and no credentials. The renderer's own words are in Error.Message
//     only. They may quote the prompt, so they are for the caller who sent it and never for a log.
//  9. A renderer that fails every call is left alone for a while, and Ready says so. A refused body, a caller without
//     patience and media that take long do not count.
//  10. A cached result answers only the very bytes, path, model and header that it came from; equal hashes prove nothing.
//
// # Concurrency
//
// Everything here is safe for concurrent use. A Client starts no goroutine of its own; those of its connections end with
// Close. Watch runs on the caller's.
// A Request's body and header must not be changed from the call on, not even after it: net/http may still be sending
// when an early answer has arrived.
//
// # What it is not
//
// It does not know workers, blocks, namespaces and scores. It imports no other package of the project.
package render
