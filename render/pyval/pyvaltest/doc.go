// Package pyvaltest reads what Python wrote for tests to compare with: JSON objects, packed by zstd.
//
// It is for tests alone. Its functions may be called concurrently.
package pyvaltest
