// Package accuracy compares predictions with what engines report, and says why they miss.
//
// In: outcomes, each a prediction beside the engine's own number, in tokens. Out: a Report for each source: counts since
// it was registered, the share of equal ones among the recent outcomes and, where that is low, the likely cause.
//
// Invariants:
//
//  1. Outcomes = Equal + Over + Under. Wrong counts exact answers that differ and bounds that did not hold, as package
//     verify does.
//  2. An upper bound that held says nothing about accuracy and is left out of the recent share: it is allowed to be over.
//  3. A source is flagged when under half of at least 16 recent outcomes were equal, and no longer when that has passed.
//  4. A cause needs half of the recent misses to point to it. The first of the list that has them counts.
//  5. A source that leaves takes its outcomes with it; one of the same name begins anew.
//
// Concurrency: a Tally belongs to its caller. A Book is safe for concurrent use; reading from it waits for nobody.
//
// It is no judge of the index: what it compares may have changed between the prediction and the engine's run.
package accuracy
