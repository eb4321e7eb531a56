// Package zmq receives ZeroMQ messages from engines over connections that no peer can use to hurt this process.
//
// In: an endpoint and topics. Out: calls of a Handler, one per message, with the message's frames as they came; and the
// batches of a replay.
//
// It uses the connection layer of github.com/go-zeromq/zmq4 (handshake, and writing) and none of its sockets: those do
// not reconnect reliably, never answer heartbeats, let one silent client block all others, and panic in goroutines of
// their own. Between zmq4 and the network stands a guard that follows the framing itself. After the handshake the guard
// reads messages by itself: zmq4 allocates what a header claims.
//
// Invariants:
//
//  1. A length that a peer claims is checked before anything is allocated for it: frames, frames per message, bytes
//     per message, commands. Memory then follows the bytes that came, and a Budget bounds it over all connections; a
//     message must be whole in MessageTime.
//  2. zmq4 reads only during the handshake, in goroutines of this package and under recover. Afterwards the guard answers
//     PING and swallows other commands, also between the frames of a message.
//  3. A connection is written to by the goroutine that reads it, and by no other.
//  4. A peer that does not finish the handshake in time, or answers no heartbeat, loses its connection. It holds up
//     nobody else.
//  5. Dial never gives up before its context ends. Every connection subscribes anew.
//  6. No TCP address is dialled that Control refuses, for the live stream or a replay, whatever name leads to it.
//  7. No function returns before its goroutines have ended.
//
// Concurrency: Dial and Replay call back from the goroutine that called them. Listen calls back from one goroutine per
// connection; see Handler. A handler that blocks stops the reading of its own connection only, so TCP slows the
// publisher down; while it blocks, heartbeats of the peer are not answered.
//
// It is not a general ZeroMQ library: it has SUB and DEALER, the NULL mechanism and ZMTP 3 only. It has no CURVE,
// for zmq4 has none: what engines publish is as open as their port, and Peers is what keeps strangers out. It knows
// nothing of sequence numbers, restarts and gaps: package stream does.
package zmq
