// Package bench measures the index on fixed workloads: on two of them as other indexes are measured.
//
// # Data in and out
//
//	in:  a workload.Pinned or workload.Mooncake; Wide makes its own
//	out: a report: speeds, latencies, bytes, and the answers that were given; ErrWrong if any of them is not the right one
//
// # How the workloads reach the index
//
// Through the same calls as everything else: decoded events into Ledger.Apply, queries into Reader.Holders. A block of
// the workload is a block of 2 tokens, the halves of its content, so the key that the index computes follows from the
// content. Its engine hash is the workload's key, or differs from holder to holder (OwnHashes). Each holder is a source
// of its own. Queries come as keys, made before, since the peers' drivers hand over contents that need no hashing
// either.
//
// # What is timed
//
//   - Fill and writes: Ledger.Apply for one batch per operation, on one goroutine, keys computed in it. To make the
//     events, as a decoder would, is not in it.
//   - A find: one Reader.Holders, from the call to its return: who holds how much, which is all that the peers' drivers
//     ask. Caps, tiers and bounds of every source, which a Score needs, are not in it. Two reads of the clock are. Cells
//     are timed in their first pass over an index that nobody has asked before, but for the few probes of the fill.
//   - Wide: one Reader.Holders, and one Reader.Lookup, of a prompt with very many holders. Its heap for one more holder of
//     a block is what is live when all hold the prompt, less when one does, every source holding another prompt before.
//   - Beside: finds, alone and beside a goroutine that applies batches without a pause, in turn.
//   - GC: what the runtime tells of its cycles (runtime/metrics), and finds meanwhile.
//   - Heap: what is live after a collection, less what was live before the index was made. RSS: what the kernel counts
//     at the end of the fill, less what it counted before, garbage not yet collected included.
//
// # Invariants
//
//  1. What is measured is checked: depths and matches of every set of queries, blocks held in the end, nothing rejected,
//     every source exact. A number without its check is not reported.
//  2. The index counts copies. Where a workload takes a repeated store for no copy, the removal names the block once for
//     each copy (809 more blocks among pinned's 13,498,103). Then pinned is run once more, untimed, with each removal
//     announced once, and must hold what counted copies leave.
//  3. Memory that the driver needs is taken before the base is read.
//  4. Figures of several repetitions are medians, each of its own column.
//
// # Concurrency
//
// A run stays on the caller's goroutine, but for the writer of Beside and GC, which has ended when they return. Nothing
// else should run in the process.
//
// # What it is not
//
// It compares nothing: test/bench has the peers.
package bench
