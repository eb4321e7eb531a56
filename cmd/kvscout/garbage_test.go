package main

import (
	"errors"
	"log/slog"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

func TestTuneGC(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	none := func() (uint64, error) { return 0, errors.New("no cgroup") }
	percent := func() int {
		p := debug.SetGCPercent(-1)
		debug.SetGCPercent(p)
		return p
	}
	beforePercent, before := percent(), debug.SetMemoryLimit(-1)
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	undo := tuneGC(memlimit.Limit(10<<30), log)
	if got := debug.SetMemoryLimit(-1); got != 9<<30 || percent() != 400 {
		t.Errorf("limit %d, percent %d", got, percent())
	}
	undo()
	undo = tuneGC(none, log)
	if got := debug.SetMemoryLimit(-1); got != before || percent() != 400 {
		t.Errorf("without a cgroup: limit %d, percent %d", got, percent())
	}
	undo()
	t.Setenv("GOGC", "100")
	t.Setenv("GOMEMLIMIT", "20GiB")
	undo = tuneGC(memlimit.Limit(10<<30), log)
	if got := debug.SetMemoryLimit(-1); got != before || percent() != beforePercent {
		t.Errorf("with the user's own: limit %d, percent %d", got, percent())
	}
	undo()
}

// A small heap is not collected before it has grown by a share of the memory, of which ballast itself takes none.
func TestBallast(t *testing.T) {
	for memory, want := range map[uint64]int{0: 0, 1 << 30: 16 << 20, 4 << 30: 64 << 20, 1 << 40: 64 << 20} {
		if got := len(ballast(memory, 2)); got != want {
			t.Errorf("of %d bytes: %d, want %d", memory, got, want)
		}
	}
	if got := len(ballast(1<<40, 1)); got != 0 {
		t.Errorf("on one processor: %d", got)
	}
}
