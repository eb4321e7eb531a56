package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// usage is processor time that was used up to a moment.
type usage struct {
	at             time.Time
	client, server time.Duration
	serverKnown    bool
}

// spent is what was used between two moments.
type spent struct {
	lasted, client, server time.Duration
	serverKnown            bool
}

// readUsage reads it of this process and of the server's (0: not known).
func readUsage(pid int) usage {
	u := usage{at: time.Now()}
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) == nil {
		u.client = time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	u.server, u.serverKnown = ProcessorTime(pid)
	return u
}

func (u usage) since(before usage) spent {
	return spent{u.at.Sub(before.at), u.client - before.client, u.server - before.server, u.serverKnown && before.serverKnown}
}

// ProcessorTime is what a process of this machine has used so far, from /proc, to 10 ms. It says no where that cannot be read.
func ProcessorTime(pid int) (time.Duration, bool) {
	if pid <= 0 {
		return 0, false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	end := bytes.LastIndexByte(stat, ')') // of the name, which may have spaces
	if err != nil || end < 0 {
		return 0, false
	}
	fields := bytes.Fields(stat[end+1:])
	if len(fields) < 13 {
		return 0, false
	}
	var ticks int64
	for _, f := range fields[11:13] { // user and system time, in ticks of 10 ms
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, false
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, true
}
