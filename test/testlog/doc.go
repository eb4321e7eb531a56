// Package testlog gathers what a running program or server writes, for tests that look at it meanwhile.
//
// It imports nothing of the project and is for tests alone. A Buffer may be used concurrently.
package testlog
