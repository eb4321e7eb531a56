package plain

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

type key struct{}

// Invariant 4: who hangs up ends the call, as a context that has others below it.
func TestCall_EndsWithItsCaller(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan error)
	r := start(t, func(c *Call) {
		if _, err := c.Body(); err != nil {
			t.Error(err)
		}
		below, cancel := context.WithTimeout(context.WithValue(c, key{}, 1), time.Hour)
		defer cancel()
		close(begun)
		<-below.Done()
		ended <- errors.Join(below.Err(), c.Err(), context.Cause(c))
	})
	c := r.dial(t)
	c.write(t, posted("x"))
	<-begun
	_ = c.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) || strings.Count(err.Error(), context.Canceled.Error()) != 3 {
		t.Error(err)
	}
}

// What comes while the call is waited for belongs to the next.
func TestCall_NextRequestWhileWaiting(t *testing.T) {
	waited := make(chan struct{})
	r := start(t, func(c *Call) {
		body, err := c.Body()
		if string(body) == "first" {
			select {
			case <-c.Done():
				t.Error("the call ended:", c.Err())
			case <-waited:
			}
		}
		if err != nil || string(body) != "first" && string(body) != "second" {
			t.Errorf("%q, %v", body, err)
		}
		echo2(c, string(body))
	})
	c := r.dial(t)
	c.write(t, posted("first"))
	time.Sleep(20 * time.Millisecond) // or the second may come with the first, which is well, too
	c.write(t, posted("second"))
	time.Sleep(20 * time.Millisecond)
	close(waited)
	for _, want := range []string{"first", "second"} {
		if _, got := c.answer(t); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func echo2(c *Call, text string) { _ = c.Send(http.StatusOK, append(c.Room(), text...)) }

// A context that is kept beyond its call has ended.
func TestCall_KeptContext(t *testing.T) {
	kept := make(chan *Call, 3)
	r := start(t, func(c *Call) {
		if c.Err() != nil {
			t.Error(c.Err())
		}
		if c.RequestID == "waited-for" {
			c.Done()
		}
		kept <- c
		echo(c)
	})
	c := r.dial(t)
	for _, id := range []string{"waited-for", "not"} {
		c.write(t, posted("x", "X-Request-Id: "+id))
		c.answer(t)
	}
	c.write(t, posted("x"))
	c.answer(t) // so the second has ended
	for range 2 {
		k := <-kept
		<-k.Done()
		if k.Err() == nil {
			t.Errorf("%s goes on", k.RequestID)
		}
	}
}

// Invariant 5: idle connections end at once, calls under way are answered, and nothing begins.
func TestServer_Shutdown(t *testing.T) {
	begun, leave := make(chan struct{}), make(chan struct{})
	r := start(t, func(c *Call) {
		if c.Path == "/a.Service/Other" {
			close(begun)
			<-leave
		}
		echo(c)
	})
	idle, fresh, active := r.dial(t), r.dial(t), r.dial(t)
	idle.write(t, posted("x"))
	idle.answer(t)
	active.write(t, strings.Replace(posted("x"), "/One", "/Other", 1))
	<-begun
	ended := make(chan error)
	go func() { ended <- r.Shutdown(context.Background()) }() // waited for below
	idle.isClosed(t)
	fresh.isClosed(t)
	close(leave)
	if resp, got := active.answer(t); got != "/a.Service/Otherx" || !resp.Close {
		t.Errorf("%q, header %v", got, resp.Header)
	}
	active.isClosed(t)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	r.dial(t).isClosed(t)
}

// A shutdown that takes too long says so, and Close ends what is left.
func TestServer_ShutdownInTime(t *testing.T) {
	begun := make(chan struct{})
	r := start(t, func(c *Call) {
		if _, err := c.Body(); err != nil {
			t.Error(err)
		}
		close(begun)
		<-c.Done()
	})
	c := r.dial(t)
	c.write(t, posted("x"))
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := r.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	r.Server.Close()
	if err := r.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
