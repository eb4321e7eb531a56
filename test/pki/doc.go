// Package pki makes certificates for tests: an authority, and what it signs, as PEM files in a folder of the test.
//
// It imports nothing of the project and is for tests alone. Its functions may be called concurrently.
package pki
