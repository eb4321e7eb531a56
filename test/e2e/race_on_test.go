//go:build race

package e2e

// buildFlags builds the server with the race detector when the tests have it.
var buildFlags = []string{"-race"}

// memoryFactor is how much more memory the server then needs.
const memoryFactor = 10
