package main

import (
	"log/slog"
	"math"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// gcPercent trades memory for time: the index has nothing for the collector to scan, so a collection frees little.
const gcPercent = 400

// memoryShare of what the container may use is where the collector stops to be lazy; the rest is for what it does not see.
const memoryShare = 0.9

// tuneGC makes the collector lazy as long as there is memory, unless the user's GOGC and GOMEMLIMIT say how it is to be.
// limit is what the process may use, by its cgroup. The function that it returns undoes that.
func tuneGC(limit memlimit.Provider, log *slog.Logger) (undo func()) {
	percent, bytes := debug.SetGCPercent(-1), debug.SetMemoryLimit(-1)
	debug.SetGCPercent(percent)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		// It fails where there is no cgroup, or none with a limit.
		if n, err := memlimit.ApplyRatio(limit, memoryShare)(); err == nil && n > 0 && n < math.MaxInt64 {
			debug.SetMemoryLimit(int64(n))
			log.Info("memory limit of the cgroup", "collect_above_bytes", n)
		}
	}
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(bytes)
	}
}
