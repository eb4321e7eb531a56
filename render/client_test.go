package render

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestClient_Path(t *testing.T) {
	var asked atomic.Int32
	c := serve(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	for _, path := range []string{"", "/", "/v1/responses", "/v1/messages", "/v1/chat/completions/", "/v1/chat/completions/render", "/v1/completions?x=1", "/../v1/completions"} {
		if _, err := c.Render(t.Context(), Request{Path: path, Body: []byte("{}")}); !errors.Is(err, ErrPath) {
			t.Errorf("%q: got %v, want ErrPath", path, err)
		}
	}
	if asked.Load() != 0 {
		t.Error("the renderer was asked")
	}
}

func TestClient_BodyLimit(t *testing.T) {
	c := serve(t, answering(200, `{"token_ids":[1]}`), func(o *Options) { o.MaxBody = 4 })
	if _, err := c.Render(t.Context(), Request{Path: PathChat, Body: []byte("1234")}); err != nil {
		t.Error(err)
	}
	if _, err := c.Render(t.Context(), Request{Path: PathChat, Body: []byte("12345")}); !errors.Is(err, ErrBodyTooLarge) {
		t.Errorf("got %v, want ErrBodyTooLarge", err)
	}
}

// TestClient_Header: the caller's headers go out, those of the hop do not come from it.
func TestClient_Header(t *testing.T) {
	var got http.Header
	var path string
	answer := answering(200, `{"token_ids":[1]}`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, path = r.Header, r.URL.Path
		answer(w, r)
	}))
	defer server.Close()
	c := dial(t, server.URL+"/base/", func(o *Options) { o.BearerToken = "own" })
	_, err := c.Render(t.Context(), Request{Path: PathCompletions, Header: http.Header{
		"X-Tenant-Id": {"a", "b"}, "x-lower": {"1"}, "Authorization": {"Bearer theirs"}, "authorization": {"Bearer theirs"},
		"Cookie": {"c"}, "Content-Type": {"text/plain"}, "Content-Length": {"3"}, "Accept-Encoding": {"gzip"},
		"Transfer-Encoding": {"chunked"}, "Expect": {"100-continue"}, "Idempotency-Key": {"k"}, "Host": {"elsewhere"},
	}})
	if !errors.Is(err, ErrContract) { // an object where completions answer an array
		t.Fatalf("got %v", err)
	}
	want := http.Header{
		"X-Tenant-Id": {"a", "b"}, "X-Lower": {"1"}, "Authorization": {"Bearer own"}, "Content-Type": {"application/json"},
		"Content-Length": {"0"}, "Accept": {"application/json"}, "Accept-Encoding": {"identity"}, "User-Agent": {"kvscout"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers differ (-want +got):\n%s", diff)
	}
	if path != "/base/v1/completions/render" {
		t.Errorf("path %q", path)
	}
	for name, h := range map[string]http.Header{
		"name": {"X Y": {"1"}}, "empty name": {"": {"1"}}, "value": {"X-Y": {"1\r\nInjected: 2"}}, "size": {"X-Y": {strings.Repeat("a", maxHeader)}},
	} {
		if _, err := c.Render(t.Context(), Request{Path: PathChat, Header: h}); !errors.Is(err, ErrHeader) {
			t.Errorf("%s: got %v, want ErrHeader", name, err)
		}
	}
}

func TestClient_Redirect(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		var asked atomic.Int32
		answer := answering(200, `{"token_ids":[1]}`)
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			if r.URL.Path == "/elsewhere" {
				answer(w, r)
				return
			}
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
		})
		if _, err := chat(t, c); !errors.Is(err, ErrContract) || asked.Load() != 1 {
			t.Errorf("%d: got %v after %d requests, want ErrContract after 1", status, err, asked.Load())
		}
	}
}

func TestClient_Down(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	c := dial(t, server.URL)
	if _, err := chat(t, c); !errors.Is(err, ErrDown) {
		t.Errorf("refused connection: got %v, want ErrDown", err)
	}
	if err := c.Health(t.Context()); !errors.Is(err, ErrDown) {
		t.Errorf("health: got %v, want ErrDown", err)
	}
}

// TestClient_BrokenConnection: a connection that breaks is ErrDown wherever it breaks, and nothing is sent twice.
func TestClient_BrokenConnection(t *testing.T) {
	for name, said := range map[string]string{
		"before the answer":  "",
		"in the status line": "HTTP/1.1 20",
		"in the header":      "HTTP/1.1 200 OK\r\nContent-Le",
		"in the body":        "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"token_ids\":[1,2",
		"in a chunk":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n{\"token_ids\":[1,2",
		"after the json":     "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"token_ids\":[1,2]}",
		"no http":            "220 smtp ready\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			answer := answering(200, `{"token_ids":[1]}`)
			var broken atomic.Bool
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				if !broken.Load() {
					answer(w, r)
					return
				}
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				fmt.Fprint(conn, said)
				conn.Close()
			})
			if _, err := chat(t, c); err != nil { // leaves a connection to be used again
				t.Fatal(err)
			}
			broken.Store(true)
			if _, err := chat(t, c); !errors.Is(err, ErrDown) {
				t.Errorf("got %v, want ErrDown", err)
			}
			if asked.Load() != 2 {
				t.Errorf("server got %d requests, want 2", asked.Load())
			}
		})
	}
}

// TestClient_KeptConnectionClosed: a connection that the renderer closed between two calls costs no call.
func TestClient_KeptConnectionClosed(t *testing.T) {
	server := httptest.NewServer(answering(200, `{"token_ids":[1]}`))
	defer server.Close()
	noticed := make(chan struct{}, 8)
	transport := newTransport(1)
	dialTCP := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dialTCP(ctx, network, addr)
		return closeTeller{conn, noticed}, err
	}
	c := dial(t, server.URL, func(o *Options) { o.Transport = transport })
	for range 3 {
		if _, err := chat(t, c); err != nil {
			t.Fatal(err)
		}
		server.CloseClientConnections()
		<-noticed
	}
}

// closeTeller is a connection that tells when the client's side closes it.
type closeTeller struct {
	net.Conn
	closed chan<- struct{}
}

func (c closeTeller) Close() error {
	defer func() { c.closed <- struct{}{} }()
	return c.Conn.Close()
}

func TestClient_Timeout(t *testing.T) {
	c := serve(t, hanging, func(o *Options) { o.Timeout, o.MediaTimeout = 30*time.Millisecond, time.Minute })
	if _, err := chat(t, c); !errors.Is(err, ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("own timeout: got %v", err)
	}
	if err := c.Health(t.Context()); !errors.Is(err, ErrTimeout) {
		t.Errorf("health: got %v", err)
	}
	// Media bodies get longer, but not longer than the caller allows.
	for _, hint := range []string{"image_url", "input_audio", "audio_url", "video_url"} {
		body := []byte(`{"messages":[{"content":[{"type":"` + hint + `"}]}]}`)
		if got := c.patience(body); got != time.Minute {
			t.Errorf("%s: patience %v", hint, got)
		}
	}
	ctx := within(t, 30*time.Millisecond)
	if _, err := c.Render(ctx, Request{Path: PathChat, Body: []byte(`"image_url"`)}); !errors.Is(err, ErrTimeout) {
		t.Errorf("caller's deadline: got %v", err)
	}
	// An answer that begins and stalls is late too.
	stall := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"token_ids":[1,`)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}, func(o *Options) { o.Timeout = 30 * time.Millisecond })
	if _, err := chat(t, stall); !errors.Is(err, ErrTimeout) {
		t.Errorf("stalled answer: got %v", err)
	}
}

// TestClient_Case159_Cancel: the caller's cancellation comes back as such, at once, whether on the wire or waiting.
func TestClient_Case159_Cancel(t *testing.T) {
	arrived := make(chan struct{})
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		hanging(w, r)
	}, func(o *Options) { o.Concurrency, o.Timeout = 1, time.Minute })
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan error)
	for range 2 { // one gets the slot, one waits; each ends by cancel and is received below
		go func() {
			_, err := c.Render(ctx, Request{Path: PathChat})
			results <- err
		}()
	}
	<-arrived
	waitFor(t, func() bool { return c.Stats().Waiting == 1 })
	cancel()
	for range 2 {
		err := <-results
		var e *Error
		if !errors.Is(err, context.Canceled) || errors.As(err, &e) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	}
	if s := c.Stats(); s.Canceled != 2 || s.InFlight != 0 || s.Waiting != 0 {
		t.Errorf("stats %+v", s)
	}
	if _, err := c.Render(ctx, Request{Path: PathChat}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: got %v", err)
	}
}

// TestClient_Case113_NoPileUp: against a renderer that takes for ever, each of 200 calls is back by its deadline, no more
// than Concurrency are on the wire at once, and nothing is left behind.
func TestClient_Case113_NoPileUp(t *testing.T) {
	var now, most atomic.Int32
	ctx := within(t, time.Second) // long enough for a busy machine to start 200 calls
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		// After the deadline the server may still hold a call that the client has given up.
		for m := most.Load(); ctx.Err() == nil && n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		hanging(w, r)
	}, func(o *Options) { o.Concurrency, o.Queue = 4, 96 })
	start := time.Now()
	var calls sync.WaitGroup
	var timeouts, overloads atomic.Int32
	for range 200 {
		calls.Go(func() { // ends with ctx
			_, err := c.Render(ctx, Request{Path: PathChat})
			switch {
			case errors.Is(err, ErrTimeout):
				timeouts.Add(1)
			case errors.Is(err, ErrOverloaded):
				overloads.Add(1)
			default:
				t.Errorf("got %v", err)
			}
		})
	}
	calls.Wait()
	if took := time.Since(start); took > 3*time.Second { // 1.01 s on an idle machine; a single hung call waits 5 s
		t.Errorf("took %v", took)
	}
	// At the deadline, waiting calls may still be handed a slot, and time out.
	if timeouts.Load() < 4 || overloads.Load() < 100 || timeouts.Load()+overloads.Load() != 200 || most.Load() > 4 {
		t.Errorf("%d timeouts, %d overloads, at most %d on the wire", timeouts.Load(), overloads.Load(), most.Load())
	}
	if s := c.Stats(); s.InFlight != 0 || s.Waiting != 0 || s.Calls != 200 || s.Errors[ReasonTimeout]+s.Errors[ReasonOverloaded] != 200 {
		t.Errorf("stats %+v", s)
	}
}

// TestRule17_QueueIsBounded: with every slot and every place to wait taken, the next call is turned away at once.
func TestRule17_QueueIsBounded(t *testing.T) {
	release := make(chan struct{})
	answer := answering(200, `{"token_ids":[1]}`)
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		<-release
		answer(w, r)
	}, func(o *Options) { o.Concurrency, o.Queue, o.Timeout = 1, 1, time.Minute })
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() { // ends after release; Wait below
			if _, err := c.Render(t.Context(), Request{Path: PathChat}); err != nil {
				t.Error(err)
			}
		})
	}
	waitFor(t, func() bool { s := c.Stats(); return s.InFlight == 1 && s.Waiting == 1 })
	if _, err := chat(t, c); !errors.Is(err, ErrOverloaded) {
		t.Errorf("got %v, want ErrOverloaded", err)
	}
	close(release)
	calls.Wait()
	want := Stats{Calls: 3, OK: 2, BytesReceived: 2 * uint64(len(`{"token_ids":[1]}`))}
	want.Errors[ReasonOverloaded] = 1
	if diff := cmp.Diff(want, c.Stats()); diff != "" {
		t.Errorf("stats differ (-want +got):\n%s", diff)
	}
}

func TestClient_Health(t *testing.T) {
	for status, want := range map[int]error{200: nil, 204: nil, 401: ErrUnauthorized, 404: ErrNoRoute, 500: ErrDown, 503: ErrDown, 302: ErrContract} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || r.URL.Path != "/health" {
				t.Errorf("got %s %s", r.Method, r.URL.Path)
			}
			w.WriteHeader(status)
		})
		if err := c.Health(t.Context()); !errors.Is(err, want) {
			t.Errorf("%d: got %v, want %v", status, err, want)
		}
	}
}

// waitFor polls until ok, for at most 10 s.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for start := time.Now(); !ok(); time.Sleep(time.Millisecond) {
		if time.Since(start) > 10*time.Second {
			t.Fatal("condition never came true")
		}
	}
}
