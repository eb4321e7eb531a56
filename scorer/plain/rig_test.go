package plain

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// pool counts what it lends.
type pool struct {
	mu      sync.Mutex // guards what follows
	lent    map[*[]byte]int
	largest int
}

func (p *pool) Get(n int) *[]byte {
	made := make([]byte, n, 1<<bits.Len(uint(n)))
	b := &made
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lent[b] = n
	p.largest = max(p.largest, n)
	return b
}

func (p *pool) Put(b *[]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.lent[b]; !ok {
		panic("given back twice, or never lent")
	}
	delete(p.lent, b)
	clear((*b)[:cap(*b)]) // who reads it still, reads wrong
}

// held is how much is lent now, and at most at once in one piece.
func (p *pool) held() (now, largest int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.lent {
		now += n
	}
	return now, p.largest
}

// passed is a listener whose connections are passed on to it.
type passed struct {
	net.Listener
	conns chan net.Conn
	ended chan struct{}
	once  sync.Once
}

func (l *passed) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

func (l *passed) Close() error {
	l.once.Do(func() { close(l.ended) })
	return l.Listener.Close()
}

// begun is a connection of which something was read.
type begun struct {
	net.Conn
	head io.Reader
}

func (c *begun) Read(p []byte) (int, error) {
	if n, err := c.head.Read(p); n > 0 || err == nil {
		return n, nil
	}
	return c.Conn.Read(p)
}

// rig is a server behind a listener, and net/http for what it leaves.
type rig struct {
	*Server
	addr string
	pool *pool
}

// echo answers with the body, behind the path.
func echo(c *Call) {
	body, err := c.Body()
	if err != nil {
		_ = c.Send(http.StatusRequestTimeout, append(c.Room(), err.Error()...))
		return
	}
	_ = c.Send(http.StatusOK, append(append(c.Room(), c.Path...), body...), Field{"X-Request-Id", c.RequestID}, Field{"Content-Type", c.Kind})
}

func start(t *testing.T, answer func(*Call), edit ...func(*Options)) *rig {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	rest := &passed{Listener: l, conns: make(chan net.Conn), ended: make(chan struct{})}
	r := &rig{addr: l.Addr().String(), pool: &pool{lent: make(map[*[]byte]int)}}
	opts := Options{
		Paths: []string{"/a.Service/One", "/a.Service/Other"}, Kinds: []string{"application/proto"}, MaxBody: 8 << 20,
		HeadTime: 10 * time.Second, CallTime: 10 * time.Second, IdleTime: 10 * time.Second, Buffers: r.pool, Answer: answer,
		Else: func(c net.Conn, unread []byte) bool {
			rest.conns <- &begun{c, strings.NewReader(string(unread))}
			return true
		},
	}
	for _, e := range edit {
		e(&opts)
	}
	r.Server = New(opts)
	hs := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		_, _ = fmt.Fprintf(w, "%s %s %d %v", req.Method, req.URL, len(body), err)
	})}
	var wg sync.WaitGroup
	wg.Go(func() { _ = hs.Serve(rest) }) // ended by Close, waited for below
	wg.Go(func() {                       // ended by the listener's end, likewise
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if !r.Take(c, nil) {
				_ = c.Close()
			}
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		r.Server.Close()
		if err := r.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		_ = hs.Close()
		wg.Wait()
		if now, _ := r.pool.held(); now != 0 {
			t.Errorf("%d bytes of buffers were not given back", now)
		}
	})
	return r
}

// caller is the other end of a connection.
type caller struct {
	net.Conn
	in *bufio.Reader
}

func (r *rig) dial(t *testing.T) *caller {
	t.Helper()
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &caller{c, bufio.NewReader(c)}
}

func (c *caller) write(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// answer reads one.
func (c *caller) answer(t *testing.T) (*http.Response, string) {
	t.Helper()
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// isClosed waits until the server has closed the connection.
func (c *caller) isClosed(t *testing.T) {
	t.Helper()
	if n, err := c.in.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
		t.Errorf("%d bytes, %v", n, err)
	}
}
