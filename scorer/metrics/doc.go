// Package metrics tells Prometheus what the service does.
//
// In: the statistics of the services. Out: metrics named kvscout_<noun>_<unit>, in base units.
// docs/observability.md lists each; a test compares both.
//
// Invariants:
//
//  1. Nothing is counted twice: what the services count already is read at a scrape.
//  2. No label holds what a caller sent: values are names of our own (methods, codes, reasons, states, tiers), and ids and
//     models of workers.
//
// Concurrency: everything may be called from anywhere; nothing here starts a goroutine.
//
// It is not a place for decisions: whatever acts on these numbers lies outside.
package metrics
