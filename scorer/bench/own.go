package bench

import (
	"runtime"
	"sync"
)

// owned are the threads that goroutines have for themselves.
var owned struct {
	sync.Mutex // guards what follows
	threads    int
	before     int // GOMAXPROCS without any
}

// ownThread gives the goroutine a thread for itself, and Go's scheduler one more for the others: waits that it is not told of hold none
// of them up. The goroutine gives it back by the function that it returns.
func ownThread() (release func()) {
	runtime.LockOSThread()
	count(1)
	return func() {
		count(-1)
		runtime.UnlockOSThread()
	}
}

func count(n int) {
	owned.Lock()
	defer owned.Unlock()
	if owned.threads == 0 {
		owned.before = runtime.GOMAXPROCS(0)
	}
	owned.threads += n
	runtime.GOMAXPROCS(owned.before + owned.threads)
}
