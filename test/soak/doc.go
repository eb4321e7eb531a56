// Package soak lets a day of traffic pass over the index in minutes and looks at what is left of it.
//
// # Data in and out
//
//	in:  a seed, and the time that passes between two requests
//	out: live heap and indexer.Stats, once for each hour of the simulated day
//
// # What happens
//
// Sixteen sources serve conversations that grow, each in a cache of a fixed number of blocks: it gives up the
// conversations that were not used for longest, from their ends, from their beginnings, in no order, or a hole now and
// its rest later; some blocks move to host memory first. System prompts, conversations, salts and adapters go out of use
// and new ones come. Sources leave and others come under new names; they lose their cache at once (a restart, a gap, a
// clear). Some name blocks as all others do, some as no other does, some by small numbers. Meanwhile a reader asks.
//
// # Invariants that are tested
//
//  1. The heap is flat: what it takes for each block that a source holds is, in the day's last third, within 5 % of what
//     it was in the third after warming up.
//  2. Stats.Bytes tells the heap of the index within the factor that the test states.
//  3. Every source's residents are counted exactly, hour by hour; nothing is rejected, nothing waits.
//  4. In the end every source is closed and nothing is left: no block, no scope, no goroutine.
//
// The clock is simulated: no time is waited for. make test lets a request come about every second
// of the day, make soak dozens.
//
// # Concurrency
//
// The fleet is written from the test's goroutine; one more asks.
//
// # What it is not
//
// It opens no socket and decodes no payload: test/e2e does. It compares no answers with a model: test/model does.
package soak
