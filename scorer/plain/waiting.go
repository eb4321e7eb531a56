package plain

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"
)

// waiting is the context of a call. Few calls are waited for by anybody, so it becomes one with a timer, and the connection is
// watched, once somebody asks for its end.
type waiting struct {
	deadline time.Time // not changed once the call is answered

	mu      sync.Mutex // guards what follows
	inner   context.Context
	cancel  context.CancelFunc
	peer    *conn // to be watched; nil before the body was read, and where more was read already
	ended   bool
	watched chan struct{} // closed when nobody watches any more; nil if nobody did
	early   []byte        // what came while it was watched
}

// Deadline implements context.Context.
func (w *waiting) Deadline() (time.Time, bool) { return w.deadline, true }

// Done implements context.Context.
func (w *waiting) Done() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.become().Done()
}

// Err implements context.Context.
func (w *waiting) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inner == nil && !w.ended && time.Now().Before(w.deadline) {
		return nil
	}
	return w.become().Err()
}

// Value implements context.Context.
func (w *waiting) Value(key any) any {
	w.mu.Lock()
	inner := w.inner
	w.mu.Unlock()
	if inner == nil {
		return nil
	}
	return inner.Value(key)
}

// become is the context that can be waited for. mu is held.
func (w *waiting) become() context.Context {
	if w.inner == nil {
		w.inner, w.cancel = context.WithDeadline(context.Background(), w.deadline)
		if w.ended {
			w.cancel()
		}
		w.look()
	}
	return w.inner
}

// watch lets the connection be watched, of which nothing is to be read before the call ends.
func (w *waiting) watch(c *conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.peer = c
	w.look()
}

// look watches the connection if somebody waits and it may be read. mu is held.
func (w *waiting) look() {
	if w.inner == nil || w.peer == nil || w.ended {
		return
	}
	watched := make(chan struct{})
	w.watched = watched
	_ = w.peer.SetReadDeadline(time.Time{})       // fails only for a connection that is closed
	go func(c *conn, cancel context.CancelFunc) { // ended by end, which waits for it
		defer close(watched)
		var one [1]byte
		n, err := c.Conn.Read(one[:])
		w.early = append(w.early, one[:n]...)
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			cancel()
		}
	}(w.peer, w.cancel)
}

// end ends the context.
func (w *waiting) end() {
	w.mu.Lock()
	w.ended = true
	watched, cancel := w.watched, w.cancel
	w.mu.Unlock()
	if watched != nil {
		_ = w.peer.SetReadDeadline(past)
		<-watched
	}
	if cancel != nil {
		cancel()
	}
}
