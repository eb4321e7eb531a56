// Package zmqtest runs a real ZeroMQ publisher (pyzmq over libzmq) for tests, with the live and replay sockets of an
// engine, and plays hostile peers.
//
// In: commands of the test. Out: what the publisher answers. It is for tests only; it fails them when the Python that
// it needs is missing (package test/testpython).
//
// A Publisher is used by one goroutine.
package zmqtest
