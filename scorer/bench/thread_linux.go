package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// threadMost bounds the callers that one thread drives: each wait looks at all their sockets.
const threadMost = 256

// thread drives lean callers in an open loop on one thread of the system, without Go's scheduler, timers and collector: on processors that it
// shares with the server these take turns that the server then waits for, and a timer that is due in less than a millisecond
// may come a millisecond late, which makes bunches of calls that are to come by chance.
type thread struct {
	conns    []*threadConn
	polls    []unix.PollFd
	counting *atomic.Bool
}

// threadConn is one caller of a thread.
type threadConn struct {
	*LeanCaller
	tally *tally
	pace  *pacer
	file  *os.File // its socket; nil: none is open
	fd    int      // of file
	calls int      // begun so far
	due   time.Time
	began time.Time // of the call under way; zero: none is
	rest  []byte    // of the message, not yet sent
}

// onThread tells how to drive callers on one thread, if they and this system allow for it. The sockets that it opens are
// closed by the function that it returns.
func onThread(ctx context.Context, callers []Caller, tallies []*tally, l Load, counting *atomic.Bool) (drive func(context.Context), ok bool) {
	// In a closed loop there is no timer, and two threads get more out of the server.
	if len(callers) > threadMost || l.Impatient || l.Rate <= 0 {
		return nil, false
	}
	t := &thread{counting: counting, polls: make([]unix.PollFd, len(callers))}
	for i, c := range callers {
		lean, ok := c.(*LeanCaller)
		if !ok {
			return nil, false
		}
		if lean.dial(ctx) == nil {
			if _, ok := lean.conn.(interface{ File() (*os.File, error) }); !ok {
				return nil, false // such as TLS
			}
		}
		t.conns = append(t.conns, &threadConn{LeanCaller: lean, tally: tallies[i], pace: newPacer(l.Rate/float64(len(callers)), false)})
	}
	return t.run, true
}

// run drives the callers until ctx ends.
func (t *thread) run(ctx context.Context) {
	defer ownThread()()
	// Timers of a thread are rounded to 50 us otherwise. It fails nowhere, and would only make them less exact.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	defer unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0)
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(1000)) // answers that are decoded are garbage, and the only one
	var ended atomic.Bool
	defer context.AfterFunc(ctx, func() { ended.Store(true) })()
	for _, c := range t.conns {
		defer c.hangUp()
		c.due = c.pace.draw()
	}
	for !ended.Load() {
		wait := t.begin()
		if err := t.wait(wait); err != nil {
			t.fail(err)
			return
		}
		t.serve()
	}
}

// fail tells what ended the thread.
func (t *thread) fail(err error) {
	for _, c := range t.conns {
		c.tally.count(fmt.Errorf("poll: %w", err))
	}
}

// begin begins all calls that are due and tells how long there is nothing else to begin.
func (t *thread) begin() time.Duration {
	now, wait := time.Now(), longestRawWait
	for _, c := range t.conns {
		switch {
		case !c.began.IsZero():
			if now.Sub(c.began) > callTimeout {
				t.end(c, now, os.ErrDeadlineExceeded)
			}
		case !c.due.After(now):
			if err := c.ask(); err != nil {
				t.end(c, now, err)
			}
			now = time.Now()
		default:
			wait = min(wait, c.due.Sub(now))
		}
	}
	return wait
}

// wait waits until a socket of a call under way is ready, but not for longer than d.
func (t *thread) wait(d time.Duration) error {
	for i, c := range t.conns {
		p := unix.PollFd{Fd: -1}
		if !c.began.IsZero() {
			p = unix.PollFd{Fd: int32(c.fd), Events: unix.POLLIN}
			if len(c.rest) > 0 {
				p.Events |= unix.POLLOUT
			}
		}
		t.polls[i] = p
	}
	if err := rawPoll(t.polls, d); err != nil && !errors.Is(err, syscall.EINTR) {
		return err
	}
	return nil
}

// serve goes on with the calls whose sockets are ready.
func (t *thread) serve() {
	for i, c := range t.conns {
		if t.polls[i].Revents == 0 || c.began.IsZero() {
			continue
		}
		done, err := c.goOn(t.polls[i].Revents)
		if done || err != nil {
			t.end(c, time.Now(), err)
		}
	}
}

// end counts a call that has ended, and plans the next.
func (t *thread) end(c *threadConn, now time.Time, err error) {
	took := now.Sub(c.began)
	n := c.calls
	c.calls++
	if err == nil {
		i := c.message(n)
		err = c.check(i, wholly(n, len(c.messages)))
		if !c.answer.keep {
			c.hangUp()
		}
	} else {
		c.hangUp()
	}
	if t.counting.Load() {
		c.tally.add(took, err)
	}
	c.began, c.due = time.Time{}, c.pace.draw()
	if err != nil && reasonOf(err) == ReasonConnection {
		c.due = now.Add(brokenPause)
	}
}

// ask begins the call that is due.
func (c *threadConn) ask() error {
	c.began = c.due
	if c.file == nil {
		if err := c.open(); err != nil {
			return err
		}
	}
	c.answer.begin()
	c.rest = c.messages[c.message(c.calls)]
	return c.send()
}

// open takes the socket from the connection, so that Go's poller does not watch it.
func (c *threadConn) open() error {
	if err := c.dial(context.Background()); err != nil {
		return err
	}
	socket, ok := c.conn.(interface{ File() (*os.File, error) })
	if !ok {
		return errors.ErrUnsupported
	}
	file, err := socket.File()
	if err != nil {
		return err
	}
	c.Close()
	c.file, c.fd = file, int(file.Fd()) // Fd lets it block again, so it is asked but once
	return syscall.SetNonblock(c.fd, true)
}

func (c *threadConn) hangUp() {
	if c.file != nil {
		c.file.Close()
		c.file = nil
	}
	c.Close()
}

// send sends as much as the socket takes.
func (c *threadConn) send() error {
	for len(c.rest) > 0 {
		n, err := rawWrite(c.fd, c.rest)
		switch {
		case err == syscall.EAGAIN:
			return nil
		case err == syscall.EINTR:
		case err != nil:
			return err
		default:
			c.rest = c.rest[n:]
		}
	}
	return nil
}

// goOn sends and reads what it can, and says whether the answer is complete.
func (c *threadConn) goOn(ready int16) (done bool, err error) {
	if ready&unix.POLLOUT != 0 {
		if err := c.send(); err != nil && ready&unix.POLLIN == 0 {
			return false, err
		}
	}
	for ready&^unix.POLLOUT != 0 {
		room := c.answer.room()
		n, err := rawRead(c.fd, room)
		switch {
		case err == syscall.EAGAIN:
			return false, nil
		case err == syscall.EINTR:
			continue
		case err != nil:
			return false, err
		case n == 0:
			return false, io.ErrUnexpectedEOF
		}
		if done, err := c.answer.took(n); done || err != nil || n < len(room) {
			c.answer.keep = c.answer.keep && len(c.rest) == 0
			return done, err
		}
	}
	return false, nil
}
