package indexer

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// epochs say when memory may be used again that readers may still look at. A reader notes the epoch in which it entered
// and forgets it when it leaves; it never waits and never tries again. What is retired in an epoch is released when no
// reader is left that entered in it or before. Between enter and leave a reader calls nothing that could block, so
// retired memory waits for as long as a lookup takes; how much of it waits is in Stats.Retired.
type epochs struct {
	now   atomic.Uint64
	slots atomic.Pointer[[]*epochSlot]
	mu    sync.Mutex // guards changes of slots; no writer of the index holds it
}

// epochSlot is one reader's, on a cache line of its own.
type epochSlot struct {
	_       [64]byte
	entered atomic.Uint64 // 0: not inside
	_       [56]byte
}

func (e *epochs) init() {
	e.now.Store(1)
	e.slots.Store(new([]*epochSlot))
}

// join makes a slot for a reader, which goes when the reader does.
func (e *epochs) join(r *Reader) *epochSlot {
	s := new(epochSlot)
	e.mu.Lock()
	next := append(slices.Clone(*e.slots.Load()), s)
	e.slots.Store(&next)
	e.mu.Unlock()
	runtime.AddCleanup(r, e.part, s)
	return s
}

// part forgets a slot.
func (e *epochs) part(s *epochSlot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	next := slices.DeleteFunc(slices.Clone(*e.slots.Load()), func(o *epochSlot) bool { return o == s })
	e.slots.Store(&next)
}

func (e *epochs) enter(s *epochSlot) { s.entered.Store(e.now.Load()) }
func (e *epochs) leave(s *epochSlot) { s.entered.Store(0) }

// oldest begins a new epoch and is the oldest one that a reader may be in.
func (e *epochs) oldest() uint64 {
	safe := e.now.Add(1)
	for _, s := range *e.slots.Load() {
		if in := s.entered.Load(); in != 0 && in < safe {
			safe = in
		}
	}
	return safe
}

// retired is memory that readers may still look at.
type retired struct {
	epoch uint64
	id    uint32
	class uint8
	kind  retiredKind
}

type retiredKind uint8

const (
	retiredKeys retiredKind = iota
	retiredMembers
	retiredChain
)
