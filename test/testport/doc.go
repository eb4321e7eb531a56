// Package testport hands out free ports to tests that must know a port before somebody listens there.
//
// Invariants:
//
//  1. A port belongs to one test until its end; no other of the process is handed it meanwhile.
//  2. It lies below the range from which systems choose ports of their own.
//
// It is for tests alone. Its functions may be called concurrently.
package testport
