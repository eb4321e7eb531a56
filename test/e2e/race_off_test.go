//go:build !race

package e2e

var buildFlags []string

const memoryFactor = 1
