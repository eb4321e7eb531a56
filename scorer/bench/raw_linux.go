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

// longestRawWait bounds a wait that Go's scheduler is not told of: the collector of garbage waits for it, too.
const longestRawWait = time.Millisecond

// rawPoll waits for at most d, of longestRawWait. Told of it, Go's scheduler would look
// every 20 us whether to give the processor to others, and wake threads that the server's then wait for.
func rawPoll(fds []unix.PollFd, d time.Duration) error {
	until := unix.NsecToTimespec(int64(d))
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(unsafe.SliceData(fds))), uintptr(len(fds)),
		uintptr(unsafe.Pointer(&until)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// pause waits for at most d on a thread that is this goroutine's alone (ownThread). time.Sleep may take a millisecond longer. It is
// done as rawPoll.
func pause(d time.Duration) {
	t := unix.NsecToTimespec(int64(min(d, longestRawWait)))
	_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0) // one that is interrupted is short
}
