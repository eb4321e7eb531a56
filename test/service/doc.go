// Package service proves what `kvscout serve` does as a process when things go badly: it is killed in the middle of everything,
// or asked for more than it can do. It has tests only.
//
// In: the repository and a Go toolchain; the program is built once. Out: test results. Seeds are printed, and given again by
// -service.seed.
//
// Rules of the package:
//
//  1. Expected numbers come from the other side: the caches of simulated engines, and what was published.
//  2. Nothing is asserted about how fast the machine is; every wait polls for a condition.
//  3. A test kills what it started, and shows what it wrote when it fails.
//
// `make overload` lets the overload last a minute.
package service
