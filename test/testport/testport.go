package testport

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// Ports are below the range from which systems choose ports of their own, so that one stays free while its user begins, or
// is started again.
const (
	lowest = 10000
	behind = 32000
)

var taken struct {
	sync.Mutex // guards ports
	ports      map[int]bool
}

// Free returns the first of n free ports in a row, which are the test's until its end.
func Free(t testing.TB, n int) int {
	t.Helper()
	taken.Lock()
	defer taken.Unlock()
	if taken.ports == nil {
		taken.ports = make(map[int]bool)
	}
	for range 1000 {
		first := lowest + rand.IntN(behind-lowest-n)
		if allFree(first, n) {
			for p := first; p < first+n; p++ {
				taken.ports[p] = true
			}
			t.Cleanup(func() { release(first, n) })
			return first
		}
	}
	t.Fatalf("no %d free ports", n)
	return 0
}

func release(first, n int) {
	taken.Lock()
	defer taken.Unlock()
	for p := first; p < first+n; p++ {
		delete(taken.ports, p)
	}
}

func allFree(first, n int) bool {
	for p := first; p < first+n; p++ {
		if taken.ports[p] {
			return false
		}
		l, err := net.Listen("tcp", ":"+strconv.Itoa(p))
		if err != nil {
			return false
		}
		_ = l.Close() // it was not used
	}
	return true
}
