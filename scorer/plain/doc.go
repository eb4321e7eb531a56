// Package plain answers unary calls by HTTP/1.1 in their plain form: a POST to a path that it knows, with a content type that
// it knows, a length, and no header that asks for anything more. That is what clients of Connect send, and it is read here in
// place, with no object for each header and no goroutine beside.
//
// In: connections, and what was read of them. Out: calls for Options.Answer, and connections for Options.Else.
//
// Invariants:
//
//  1. A request is answered here only if net/http would read the same out of it. Anything else (another path, a chunked or
//     compressed body, Expect, a line that ends oddly) leaves its connection to Options.Else, with every byte from
//     that request on, and for good. So nothing is refused here, and no rule of HTTP is decided here.
//  2. A head is at most maxHead bytes and comes within Options.HeadTime; a call, from its head to the last byte of its answer, ends
//     within Options.CallTimeout. A connection without a request is closed after Options.IdleTime (rule 17).
//  3. What is allocated for a body grows with what has come of it, beyond the first claimed bytes. What connections keep between
//     requests is bounded for all together, but for a small buffer each (rule 17).
//  4. A call's context ends with its deadline, and when its caller hangs up, once somebody waits for that.
//  5. After Shutdown no request begins; those under way are answered, with Connection: close.
//
// Concurrency: one goroutine for each connection, started by Take and ended by the connection's end, Shutdown or Close, which
// Shutdown waits for; and one for a call whose context somebody waits for, ended before the call is. A Call
// is for the goroutine that answers it; as a context it may be used from anywhere.
//
// It is not a server of HTTP: whoever knows less than a caller asks for leaves it to one.
package plain
