package indexer

import (
	"sync/atomic"
	"unsafe"
)

// words is a list of 64-bit words that one writer changes beside readers. It is one piece of memory, so that a reader
// waits for memory once: word 0 is the number of words that follow, with room for more behind them. What is appended is
// written before it is counted; a list that has to move is copied, and the old one stays as it was.
type words struct {
	first atomic.Pointer[atomic.Uint64]
	room  uint32 // the writer's
}

// view is the words as published now, which do not change as long as only add and replace are called.
func (w *words) view() []uint64 {
	p := w.first.Load()
	if p == nil {
		return nil
	}
	n := p.Load()
	return unsafe.Slice((*uint64)(unsafe.Pointer(p)), n+1)[1:]
}

// atoms is view for words that change in place.
func (w *words) atoms() []atomic.Uint64 {
	p := w.first.Load()
	if p == nil {
		return nil
	}
	return unsafe.Slice(p, p.Load()+1)[1:]
}

// touch reads the list here and there, so that it is on its way from memory when it is needed.
func (w *words) touch() (sum uint64) {
	list := w.atoms()
	for i := 0; i < len(list) && i < 128; i += 8 {
		sum += list[i].Load()
	}
	return sum
}

func (w *words) full() bool {
	p := w.first.Load()
	return p == nil || uint32(p.Load()) == w.room
}

// add appends a word and returns how many bytes the list grew. ahead is how many more are about to follow.
func (w *words) add(v uint64, ahead int) (grown int) {
	if w.full() {
		grown = w.replace(w.view(), ahead)
	}
	p := w.first.Load()
	n := p.Load()
	unsafe.Slice(p, w.room+1)[n+1].Store(v)
	p.Store(n + 1)
	return grown
}

// replace makes list the words, with room for at least one more and ahead, and returns how many bytes it grew.
func (w *words) replace(list []uint64, ahead int) (grown int) {
	before := w.size()
	next := append([]uint64(nil), make([]uint64, max(4, len(list)+2+max(ahead, len(list)/8)))...)
	next = next[:cap(next)] // what the allocator gives anyway
	next[0] = uint64(len(list))
	copy(next[1:], list)
	w.room = uint32(len(next) - 1)
	w.first.Store((*atomic.Uint64)(unsafe.Pointer(&next[0])))
	return w.size() - before
}

// size is the memory of the list in bytes.
func (w *words) size() int {
	if w.first.Load() == nil {
		return 0
	}
	return int(w.room+1) * 8
}
