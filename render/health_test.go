package render

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// TestClient_Breaker: a renderer that fails every call is left alone, is then not ready, and comes back by itself.
func TestClient_Breaker(t *testing.T) {
	for name, c := range map[string]struct {
		broken http.HandlerFunc
		want   error // of the calls before and after the circuit opens
	}{
		"down":       {answering(502, ``), ErrDown},
		"html":       {answering(200, `<html>`), ErrContract},
		"error body": {answering(200, `{"error":{"message":"no"}}`), ErrContract},
		"huge ids":   {answering(200, `{"token_ids":[2147483648]}`), ErrContract},
		"redirect":   {answering(302, ``, "Location", "/"), ErrContract},
		"no route":   {answering(404, ``), ErrNoRoute},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			var well atomic.Bool
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				if well.Load() {
					answering(200, `{"token_ids":[1]}`)(w, r)
					return
				}
				c.broken(w, r)
			}, func(o *Options) { o.BreakAfter, o.BreakFor = 3, 50*time.Millisecond })
			for i := range 5 {
				if ready := client.Ready() == nil; ready != (i < 3) {
					t.Fatalf("ready %v before call %d", ready, i)
				}
				if _, err := chat(t, client); !errors.Is(err, c.want) {
					t.Fatalf("call %d: got %v, want %v", i, err, c.want)
				}
			}
			if n := asked.Load(); n != 3 {
				t.Errorf("the renderer was asked %d times, want 3", n)
			}
			if err := client.Ready(); !errors.Is(err, c.want) {
				t.Errorf("ready says %v, want %v", err, c.want)
			}
			well.Store(true)
			deadline := time.Now().Add(5 * time.Second)
			for _, err := chat(t, client); err != nil; _, err = chat(t, client) {
				if time.Now().After(deadline) {
					t.Fatalf("still %v", err)
				}
			}
			if err := client.Ready(); err != nil {
				t.Errorf("ready says %v of a renderer that is back", err)
			}
		})
	}
}

// TestClient_BreakerIsFair: neither a refused body, nor a caller in a hurry or gone, opens the circuit.
func TestClient_BreakerIsFair(t *testing.T) {
	var hang atomic.Bool
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if hang.Load() {
			hanging(w, r)
			return
		}
		answering(400, `{}`)(w, r)
	}, func(o *Options) { o.BreakAfter = 2 })
	for range 5 {
		if _, err := chat(t, client); !errors.Is(err, ErrBadRequest) {
			t.Fatal(err)
		}
	}
	hang.Store(true)
	for range 5 {
		if _, err := client.Render(within(t, 5*time.Millisecond), Request{Path: PathChat, Body: []byte(`{}`)}); !errors.Is(err, ErrTimeout) {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		cancel()
		_, _ = client.Render(ctx, Request{Path: PathChat, Body: []byte(`{}`)})
	}
	if err := client.Ready(); err != nil {
		t.Errorf("ready says %v", err)
	}
}

// TestClient_Slow: a renderer that takes longer than it may does open it.
func TestClient_Slow(t *testing.T) {
	client := serve(t, hanging, func(o *Options) { o.BreakAfter, o.Timeout = 2, 10*time.Millisecond })
	for range 2 {
		if _, err := chat(t, client); !errors.Is(err, ErrTimeout) {
			t.Fatal(err)
		}
	}
	if err := client.Ready(); !errors.Is(err, ErrDown) {
		t.Errorf("ready says %v", err)
	}
}

// TestClient_Watch: readiness follows the renderer's health without any call.
func TestClient_Watch(t *testing.T) {
	var well atomic.Bool
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/health" {
			t.Errorf("got %s %s", r.Method, r.URL.Path)
		}
		if !well.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); client.Watch(ctx, time.Millisecond) }() // ended by cancel, waited for below
	defer func() { cancel(); <-done }()
	until := func(want bool) {
		t.Helper()
		for deadline := time.Now().Add(5 * time.Second); (client.Ready() == nil) != want; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("ready says %v", client.Ready())
			}
		}
	}
	until(false)
	well.Store(true)
	until(true)
	well.Store(false)
	until(false)
}

// TestClient_DialsOnceMore: a connection that could not be made is tried once more, since nothing was sent.
func TestClient_DialsOnceMore(t *testing.T) {
	server := httptest.NewServer(answering(200, `{"token_ids":[1]}`))
	defer server.Close()
	var dials atomic.Int32
	transport := newTransport(1)
	dialTCP := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dials.Add(1) == 1 {
			addr = "127.0.0.1:1" // nobody listens there
		}
		return dialTCP(ctx, network, addr)
	}
	defer transport.CloseIdleConnections()
	c := dial(t, server.URL, func(o *Options) { o.Transport = transport })
	if _, err := chat(t, c); err != nil || dials.Load() != 2 {
		t.Errorf("%v after %d dials", err, dials.Load())
	}
}
