package bench

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawRead and rawWrite are calls of the system that do not wait, so Go's scheduler need not be told of them.

func rawRead(fd int, b []byte) (int, error) { return raw(syscall.SYS_READ, fd, b) }

func rawWrite(fd int, b []byte) (int, error) { return raw(syscall.SYS_WRITE, fd, b) }

func raw(call uintptr, fd int, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// pause waits for d on a thread that is this goroutine's alone. time.Sleep may take a millisecond longer.
func pause(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil) // one that is interrupted is short
}
