package main

import (
	"log/slog"
	"math"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// gcPercent trades memory for time: the index has nothing for the collector to scan, so a collection frees little.
const gcPercent = 400

// leastGrowth is by how many bytes the heap grows at least before it is collected, as long as that is at most growthShare of
// the memory. Beside a small index calls fill the heap several times a second, and during each collection, of some 8 ms,
// calls wait: that was the slowest hundredth of them. On one processor all this is not so: there the runtime sweeps a heap
// that has grown without a look at the network, 0.1 ms for each MB, so a large one would be worse.
const (
	leastGrowth = 256 << 20
	growthShare = 16
)

// memoryShare of what the container may use is where the collector stops to be lazy; the rest is for what it does not see.
const memoryShare = 0.9

// ballast is memory that is never touched, so it takes none, but the heap's growth counts from it.
func ballast(memory uint64, processors int) []byte {
	if processors < 2 {
		return nil
	}
	return make([]byte, min(leastGrowth, memory/growthShare)*100/gcPercent)
}

// tuneGC makes the collector lazy as long as there is memory, unless the user's GOGC and GOMEMLIMIT say how it is to be.
// limit is what the process may use, by its cgroup. The function that it returns undoes that.
func tuneGC(limit memlimit.Provider, log *slog.Logger) (undo func()) {
	percent, bytes := debug.SetGCPercent(-1), debug.SetMemoryLimit(-1)
	debug.SetGCPercent(percent)
	memory, limited := available(limit)
	var unused []byte
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
		unused = ballast(min(memory, uint64(bytes)), runtime.GOMAXPROCS(0))
	}
	if os.Getenv("GOMEMLIMIT") == "" && limited {
		debug.SetMemoryLimit(int64(memoryShare * float64(memory)))
		log.Info("memory limit of the cgroup", "collect_above_bytes", int64(memoryShare*float64(memory)))
	}
	return func() {
		runtime.KeepAlive(unused)
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(bytes)
	}
}

// available is the memory that the process may use: limited by its cgroup, or all there is.
func available(limit memlimit.Provider) (bytes uint64, limited bool) {
	// It fails where there is no cgroup, or none with a limit.
	if n, err := limit(); err == nil && n > 0 && n < math.MaxInt64 {
		return n, true
	}
	n, err := memlimit.FromSystem()
	if err != nil {
		return 0, false
	}
	return n, false
}
