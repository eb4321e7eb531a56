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
