// Package chaos holds one test: many simulated engines over real ZMQ, behind proxies that cut, stall, lose and corrupt, with
// engines that restart, die, reset, pause, count anew unseen, and whose clocks jump. When it stops and settles, the index
// must hold exactly what each engine holds, and nothing may be leaked.
//
// Invariants that the test asserts, per source:
//
//  1. With a replay buffer that reaches back to the start of the engine's life: what the index says of every prompt that
//     was served (of 300 of them, if there were more) equals the engine's own cache, and so does the number of blocks.
//  2. With a buffer that does not: the index never says more than the engine holds, and does not call it exact unless it is.
//     After the engine's next reset it is exact.
//  3. Every source is live, or in a gap where batches are lost for good.
//  4. Without workers the index is empty; after the fleet is closed no goroutine, no file descriptor and no memory is left.
//
// What is corrupted are headers, topics and sequence numbers. Flipped bits in a payload are out of scope: TCP's checksum is
// what guards them, and ZMTP has none, so that no receiver could tell a wrong token from a right one.
//
// It is short by default, as in `make test`; `make chaos` runs 200 engines for two minutes, `make chaos-nightly` for thirty.
package chaos
