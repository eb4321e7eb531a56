package plain

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"
)

func posted(body string, more ...string) string {
	return request(append(more, fmt.Sprintf("Content-Length: %d", len(body)))...) + body
}

// Requests of any size, in any pieces, one behind the other, are answered in turn.
func TestServer_AnyPieces(t *testing.T) {
	r := start(t, echo)
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	sizes := []int{0, 1, 100, 4000, 4096, 5000, 65544, 131072, 140000, 1 << 20, 3 << 20}
	for range 20 {
		c := r.dial(t)
		var bodies []string
		var text strings.Builder
		for range 1 + random.IntN(6) {
			n := sizes[random.IntN(len(sizes))]
			bodies = append(bodies, strings.Repeat(string(rune('a'+random.IntN(26))), n))
			text.WriteString(posted(bodies[len(bodies)-1], fmt.Sprint("X-Request-Id: ", len(bodies))))
		}
		sent := make(chan struct{})
		pieces := []int{3, 200, 4096, 100000, 1 << 22}[random.IntN(5)]
		go func() { // ends with what it has to write, or with the connection
			defer close(sent)
			for rest := text.String(); rest != ""; {
				n := min(len(rest), 1+random.IntN(pieces))
				if pieces == 3 && len(rest) > 2000 {
					n = len(rest) - 2000 // or it would take long
				}
				if _, err := c.Write([]byte(rest[:n])); err != nil {
					return
				}
				rest = rest[n:]
			}
		}()
		for i, want := range bodies {
			resp, got := c.answer(t)
			if resp.StatusCode != http.StatusOK || got != "/a.Service/One"+want || resp.Header.Get("X-Request-Id") != fmt.Sprint(i+1) || resp.Close {
				t.Fatalf("request %d of %d bytes: status %d, %d bytes, header %v", i, len(want), resp.StatusCode, len(got), resp.Header)
			}
		}
		<-sent
		_ = c.Close()
	}
}

// A request that is not plain is net/http's with all of its bytes, and so is what follows.
func TestServer_HandsOver(t *testing.T) {
	r := start(t, echo)
	for _, before := range []int{0, 1, 3} {
		for _, together := range []bool{true, false} {
			c := r.dial(t)
			plain, other := posted("body"), "PUT /any?x=1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nchunk\r\n0\r\n\r\n"
			if together {
				c.write(t, strings.Repeat(plain, before)+other+plain)
			}
			for range before {
				if !together {
					c.write(t, plain)
				}
				if _, got := c.answer(t); got != "/a.Service/Onebody" {
					t.Fatal(got)
				}
			}
			if !together {
				c.write(t, other+plain)
			}
			if _, got := c.answer(t); got != "PUT /any?x=1 5 <nil>" {
				t.Errorf("the other one: %q", got)
			}
			if _, got := c.answer(t); got != "POST /a.Service/One 4 <nil>" {
				t.Errorf("what follows: %q", got)
			}
		}
	}
}

// Invariant 2: what does not come in time ends.
func TestServer_Times(t *testing.T) {
	short := 50 * time.Millisecond
	t.Run("head", func(t *testing.T) {
		r := start(t, echo, func(o *Options) { o.HeadTime = short })
		c := r.dial(t)
		c.write(t, "POST /a.Serv")
		c.isClosed(t)
	})
	t.Run("idle", func(t *testing.T) {
		r := start(t, echo, func(o *Options) { o.IdleTime = short })
		r.dial(t).isClosed(t)
	})
	t.Run("body", func(t *testing.T) {
		r := start(t, echo, func(o *Options) { o.CallTime = 20 * short }) // the next request has no more
		c := r.dial(t)
		c.write(t, request()+"short")
		if resp, got := c.answer(t); resp.StatusCode != http.StatusRequestTimeout || got != context.DeadlineExceeded.Error() {
			t.Errorf("status %d, %q", resp.StatusCode, got)
		}
		// The rest of it is not taken for a request.
		c.write(t, ".."+posted("next"))
		if _, got := c.answer(t); got != "/a.Service/Onenext" {
			t.Error(got)
		}
	})
	t.Run("the caller's timeout", func(t *testing.T) {
		r := start(t, func(c *Call) {
			<-c.Done()
			_ = c.Send(http.StatusOK, append(c.Room(), c.Err().Error()...))
		})
		c := r.dial(t)
		c.write(t, posted("", "Connect-Timeout-Ms: 30"))
		if _, got := c.answer(t); got != context.DeadlineExceeded.Error() {
			t.Error(got)
		}
	})
	t.Run("an answer that nobody reads", func(t *testing.T) {
		failed := make(chan error, 1)
		r := start(t, func(c *Call) { failed <- c.Send(http.StatusOK, append(c.Room(), make([]byte, 32<<20)...)) }, func(o *Options) { o.CallTime = short })
		c := r.dial(t)
		c.write(t, posted(""))
		if err := <-failed; err == nil {
			t.Error("it was written")
		}
	})
}

// An idle connection keeps a small buffer once it is cold, and none of a large body's.
func TestServer_IdleMemory(t *testing.T) {
	r := start(t, echo)
	c := r.dial(t)
	for _, size := range []int{60000, 1 << 20} {
		c.write(t, posted(strings.Repeat("x", size)))
		c.answer(t)
		deadline := time.Now().Add(20 * time.Second)
		for {
			if now, _ := r.pool.held(); now == idleRoom {
				break
			} else if time.Now().After(deadline) {
				t.Fatalf("%d bytes are kept after a body of %d", now, size)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// Rule 17: what connections keep between requests is bounded, however many they are.
func TestRule17_WarmConnections(t *testing.T) {
	const conns = 2 * warmMost / warmRoom
	r := start(t, echo)
	body := posted(strings.Repeat("x", 100000))
	for range conns {
		c := r.dial(t)
		c.write(t, body)
		c.answer(t)
	}
	deadline := time.Now().Add(warmTime / 2) // then they would give it back anyhow
	for {                                    // until the last ones wait again
		now, _ := r.pool.held()
		if now <= warmMost+conns*idleRoom {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are kept by %d connections", now, conns)
		}
		time.Sleep(time.Millisecond)
	}
}

// Invariant 3 and rule 17: a length that is only claimed is given little.
func TestRule17_ClaimedBody(t *testing.T) {
	r := start(t, echo)
	c := r.dial(t)
	c.write(t, request(fmt.Sprintf("Content-Length: %d", 8<<20))+strings.Repeat("x", 10000))
	time.Sleep(50 * time.Millisecond) // longer can only be worse
	if _, largest := r.pool.held(); largest > warmRoom {
		t.Errorf("a buffer of %d bytes", largest)
	}
}

// A call that is answered without its body keeps its connection, and none of the body is taken for a request.
func TestServer_AnswersWithoutTheBody(t *testing.T) {
	r := start(t, func(c *Call) { _ = c.Send(http.StatusForbidden, append(c.Room(), "no"...)) })
	c := r.dial(t)
	for _, size := range []int{0, 10, 100000, 2 << 20} {
		c.write(t, posted(strings.Repeat("x", size)))
		if resp, got := c.answer(t); resp.StatusCode != http.StatusForbidden || got != "no" {
			t.Errorf("%d bytes: status %d, %q", size, resp.StatusCode, got)
		}
	}
}

// Headers that need more than there is reserved are written all the same.
func TestServer_LongHeader(t *testing.T) {
	long := strings.Repeat("x", 3*Reserve)
	r := start(t, func(c *Call) { _ = c.Send(http.StatusOK, append(c.Room(), "body"...), Field{"X-Long", long}) })
	c := r.dial(t)
	c.write(t, posted(""))
	if resp, got := c.answer(t); got != "body" || resp.Header.Get("X-Long") != long {
		t.Errorf("%q, header %v", got, resp.Header)
	}
}

// A call that nobody answers ends its connection and no other.
func TestServer_CallWithoutAnswer(t *testing.T) {
	r := start(t, func(c *Call) {
		if c.Path == "/a.Service/Other" {
			echo(c)
		}
	})
	good, bad := r.dial(t), r.dial(t)
	bad.write(t, posted("x"))
	bad.isClosed(t)
	good.write(t, strings.Replace(posted("x"), "/One", "/Other", 1))
	if _, got := good.answer(t); got != "/a.Service/Otherx" {
		t.Error(got)
	}
}
