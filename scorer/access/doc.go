// Package access says who calls, what that caller may do and how much of it, before anything of the call is read.
//
// In: headers, certificate and address of a call; a file of callers, and files of keys, which are read again when they
// change. Out: the call goes on, or is refused with a reason in the form of its protocol.
//
// Invariants:
//
//  1. Every method has a role, and one that has none in the table needs the highest (methods.go).
//  2. A call is refused by its headers: its body is neither waited for nor kept. Over HTTP/1.1 a bounded part of it is thrown
//     away after the answer, for clients that write it whole before they read.
//  3. Tokens are kept as SHA-256 only and compared in constant time. No token, no digest and no line of the file gets into
//     a log, a counter or an error.
//  4. A file that is wrong changes nothing: what was last read without fault stays in force, and the fault is told and
//     counted. At the start there is nothing to stay with, so New fails.
//  5. Callers that are remembered are bounded; those forgotten start anew (rule 17).
//  6. Each refusal is counted by its reason.
//
// Concurrency: a Guard is safe for concurrent use. Run reads the files until its context ends; nothing else runs by itself.
//
// It is not a place for the secrets of the event plane or the render plane, and it judges nothing of a call's content.
package access
