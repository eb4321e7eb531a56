package model

import (
	"fmt"
	"runtime/debug"

	"github.com/kvscout/kvscout/events"
)

// outcome is what playing a script showed.
type outcome struct {
	// faults is empty if index and model agreed. at is the operation after which they did not, or the number of
	// operations if that showed in the end.
	faults   []string
	at       int
	credited int
}

func (o outcome) failed() bool { return len(o.faults) > 0 }

// play plays a script one operation after the other, or its sources side by side if it says so, until index and model
// differ. A panic is a difference like any other, unless it is on a goroutine of its own.
func play(s *script) outcome { return misheard(s, nil) }

// misheard is play with an index that hears something else.
func misheard(s *script, mishear func(events.Batch) events.Batch) (out outcome) {
	w := newWorld(s)
	w.mishear = mishear
	defer func() {
		if p := recover(); p != nil {
			w.fail("panic: %v\n%s", p, debug.Stack())
		}
		out.faults, out.credited = w.faults, w.credited
	}()
	if s.Beside {
		out.at = len(s.Ops)
		w.beside()
		return out
	}
	for out.at = range s.Ops {
		o := &s.Ops[out.at]
		w.run(w.list[o.Source], o.step)
		w.counts(w.list[o.Source])
		for _, a := range o.Asks {
			w.check(a)
		}
		if w.failed() {
			return out
		}
	}
	out.at = len(s.Ops)
	w.finish()
	return out
}

func (o outcome) String() string {
	return fmt.Sprintf("after operation %d: %s", o.at, o.faults[0])
}
