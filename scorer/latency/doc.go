// Package latency counts how long calls took, cheaply enough for the path of a request.
//
// In: durations. Out: Counts, which can be subtracted to see what happened between two moments, and asked for quantiles.
//
// Invariants:
//
//  1. Buckets never change: four to each doubling from 1.024 us to 68.7 s, so that a quantile is off by less than a fifth
//     of itself; one below and one above.
//  2. Add takes no lock, allocates nothing and costs two atomic additions.
//  3. The memory of a Histogram is fixed, whatever is added.
//
// Concurrency: a Histogram is safe for concurrent use; its Counts are read while others add, so a duration that is just
// being added may be in the sum and not in a bucket.
//
// It is not a registry of metrics: it knows no names and no labels.
package latency
