// Package workload makes the two fixed workloads on which indexes are compared, the same bit for bit wherever they run.
//
// # Data in and out
//
//	in:  a scale                         -> NewPinned
//	     a trace file, capacity, copies  -> ReadTrace, NewMooncake
//	out: operations (Op) in their order, queries (block contents), and the right answers to them (Answer)
//
// Pinned has 256 holders that share prefixes in families of 1, 8 and 64, each with a tail of its own, and stores them
// interleaved, with repeats and removals from the middle. Mooncake replays a trace of real conversations over 16
// workers that evict their least recently used leaves.
//
// # Invariants
//
//  1. Everything follows from a seed or from the trace, by 64-bit integer arithmetic. The one use of floating point, the
//     lengths of pinned's families, is checked: at full scale the counts must be the published ones, or there is no
//     workload.
//  2. The right answers are computed from how the workload was made, by no index. At full scale, and on the published
//     trace, they must be the published ones.
//  3. A store names a parent that its holder has stored before and not removed; a removal names blocks that its holder
//     has.
//  4. Nothing here is timed, and no memory is handed out that a later call changes.
//  5. A trace is bounded before it is kept; one that is not a tree of prefixes is refused.
//
// # Concurrency
//
// A workload is not changed once it is made; any number of goroutines may read it.
//
// # What it is not
//
// It knows no index, no events and no clock: package bench drives an index with it.
package workload
