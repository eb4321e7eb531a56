package bench

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
)

// memory is what the process uses, in bytes.
type memory struct {
	heap int // live
	rss  int // -1 where the kernel does not tell
}

// baseMemory is what is used before an index is made, everything free given back to the kernel.
func baseMemory() memory {
	debug.FreeOSMemory()
	return memory{heap: liveHeap(), rss: residentSet()}
}

// usedMemory is what is used now: the resident set as it is, then the heap after a collection.
func usedMemory() memory {
	rss := residentSet()
	return memory{heap: liveHeap(), rss: rss}
}

// per is what was added since base for each of n blocks; rss is nil where the kernel does not tell.
func (m memory) per(n int, base memory) (heap float64, rss *float64) {
	heap = float64(m.heap-base.heap) / float64(max(n, 1))
	if m.rss >= 0 && base.rss >= 0 {
		v := float64(m.rss-base.rss) / float64(max(n, 1))
		rss = &v
	}
	return heap, rss
}

func liveHeap() int {
	runtime.GC() // the second one frees what the first one's finalizers let go
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func residentSet() int {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return -1
	}
	fields := bytes.Fields(data)
	if len(fields) < 2 {
		return -1
	}
	pages, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return -1
	}
	return pages * os.Getpagesize()
}
